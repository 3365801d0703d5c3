//! What upstream plays twice: with the agent itself, and with the client that JAX has around it. A play is given
//! its job, because these two are used in different kinds.

pub(crate) mod barriers;
pub(crate) mod keys;
pub(crate) mod life;
