//! Dialect N, `xla.coordination.CoordinationService`: jaxlib 0.10.0 and later.

mod decode;
mod encode;
mod service;

pub(crate) use service::Service;
