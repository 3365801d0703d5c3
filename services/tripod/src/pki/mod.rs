//! Making certificates, for clusters without an issuer of their own. No node does this: whoever holds a key that signs is a
//! target, so it stays on the machine of an operator.
//!
//! | module | what |
//! |---|---|
//! | `authority` | the two issuers of a cluster, in a directory |
//! | `store` | writing files so that whoever reads them finds the old or the new one |

mod authority;
mod store;

pub(crate) use authority::{Authority, Issued};
