//! Making certificates, for clusters without an issuer of their own. No node does this: whoever holds a key that signs is a
//! target, so it stays on the machine of an operator.
//!
//! | module | what |
//! |---|---|
//! | `authority` | the two issuers of a cluster, in a directory |
//! | `request` | requests for certificates, whose keys stay elsewhere |
//! | `record` | which certificates were issued, and which are revoked |
//! | `revocation` | lists of revoked certificates |
//! | `store` | writing files so that whoever reads them finds the old or the new one |

mod authority;
mod record;
mod request;
mod revocation;
mod store;

use tripod_proto::code::Code;

pub(crate) use authority::{Authority, Issued, Wanted};
pub(crate) use record::Line;
pub(crate) use request::Request;

use crate::failure::Failure;

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Code::PkiFailed, format!("the certificate could not be made: {error}"))
}
