//! Getting an id.

use tonic::metadata::MetadataValue;
use tripod_proto::metadata::RAY_EXTENDED;
use tripod_proto::ray::RegisterObjStoreRequest;
use tripod_proto::ray::scheduler_client::SchedulerClient;

use super::{Endpoints, Session};
use crate::error::Error;
use crate::ids::StoreId;

/// Registers the store under its address, as soon as a node answers.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) async fn register(
    endpoints: &Endpoints,
    session: &mut Session,
    address: &str,
) -> Result<StoreId, Error> {
    let request = || {
        let mut request = session.stamped(RegisterObjStoreRequest { objstore_address: address.to_owned() });
        request.metadata_mut().insert(RAY_EXTENDED, MetadataValue::from_static("1"));
        request
    };
    let send =
        |channel, request| async move { SchedulerClient::new(channel).register_obj_store(request).await };
    let answer = endpoints.call("RegisterObjStore", request, send).await;
    session.answered();
    match answer {
        Ok(reply) => Ok(StoreId(reply.objstoreid)),
        Err(refused) => {
            let message = refused.status.message().to_owned();
            Err(Error::Refused { endpoint: refused.endpoint, message })
        }
    }
}
