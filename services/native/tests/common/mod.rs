//! What the test programs of this crate share.

use tonic::service::Routes;
use tripod_gateway::{FrontEnd as _, Gateway, JobBinding};
use tripod_native::Native;

/// Everything of this crate.
pub(crate) fn routes(gateway: &Gateway) -> Routes {
    Native::alone(gateway.clone()).add_to(Routes::default(), &JobBinding::Named("default".to_owned()))
}
