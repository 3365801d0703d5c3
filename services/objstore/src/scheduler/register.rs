//! Getting an id.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataValue;
use tripod_proto::metadata::{RAY_EXTENDED, RAY_REASON};
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::ray::{RegisterObjStoreReply, RegisterObjStoreRequest};

use super::endpoints::Refused;
use super::{Endpoints, Session};
use crate::error::Error;
use crate::ids::StoreId;

/// The reason of refusals that end when the cluster's feature level rises.
const LEVEL: &str = "level";
const LEVEL_PAUSE: Duration = Duration::from_millis(250);

/// Registers the store under its address, as soon as a node answers.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) async fn register(
    endpoints: &Endpoints,
    session: &mut Session,
    address: &str,
) -> Result<StoreId, Error> {
    let mut told = false;
    loop {
        match ask(endpoints, session, address).await {
            Ok(reply) => return Ok(StoreId(reply.objstoreid)),
            // A cluster that was just started or upgraded raises its level by itself.
            Err(refused) if has_reason(&refused.status, LEVEL) => {
                if !std::mem::replace(&mut told, true) {
                    let reason = refused.status.message();
                    tracing::info!(reason, "the cluster does not know schedulers yet: the store waits");
                }
                tokio::time::sleep(LEVEL_PAUSE).await;
            }
            Err(refused) => {
                let message = refused.status.message().to_owned();
                return Err(Error::Refused { endpoint: refused.endpoint, message });
            }
        }
    }
}

async fn ask(
    endpoints: &Endpoints,
    session: &mut Session,
    address: &str,
) -> Result<RegisterObjStoreReply, Refused> {
    let request = || {
        let mut request = session.stamped(RegisterObjStoreRequest { objstore_address: address.to_owned() });
        request.metadata_mut().insert(RAY_EXTENDED, MetadataValue::from_static("1"));
        request
    };
    let send =
        |channel, request| async move { SchedulerClient::new(channel).register_obj_store(request).await };
    let answer = endpoints.call("RegisterObjStore", request, send).await;
    // That refusal came before the scheduler saw the number, which therefore is not used up.
    if !answer.as_ref().is_err_and(|refused| has_reason(&refused.status, LEVEL)) {
        session.answered();
    }
    answer
}

fn has_reason(status: &Status, wanted: &str) -> bool {
    status.metadata().get(RAY_REASON).is_some_and(|reason| reason.as_bytes() == wanted.as_bytes())
}
