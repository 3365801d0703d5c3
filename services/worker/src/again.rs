//! Puts of a task that runs again.
//!
//! The n-th put of every attempt is one object, and the first attempt that writes it decides its value: others may have
//! read it. An attempt that would put another value goes on with references to the first one, so whoever wrote the
//! function must be told that it is not the same every time.

use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use tripod_client::wire::RayRun;
use tripod_proto::ray::Obj;

use crate::process::Process;
use crate::reference::ObjectRef;

/// How long the object may take to come. It may be lost, too.
const COME_WITHIN: Duration = Duration::from_secs(30);

/// The attempt that puts.
pub(crate) struct Attempt {
    pub(crate) run: RayRun,
    pub(crate) function: Arc<str>,
}

/// Says so if the object that is there is another one than this attempt would have put.
pub(crate) async fn compare(process: Process, attempt: Attempt, object: ObjectRef, wanted: Obj) {
    let id = object.id().0;
    let Attempt { run: RayRun { operationid: task, attempt }, function } = attempt;
    match tokio::time::timeout(COME_WITHIN, process.fetched(id)).await {
        // Bytes: what is not a number equals nothing.
        Ok(Ok(found)) if found.encode_to_vec() == wanted.encode_to_vec() => {}
        Ok(Ok(_)) => tracing::warn!(
            object = id,
            task,
            attempt,
            %function,
            "this attempt puts another value than an earlier one did, whose value stays; what is not the same every \
             time should be an argument or a result of the task"
        ),
        Ok(Err(error)) => {
            tracing::debug!(object = id, %error, "what an earlier attempt put cannot be looked at");
        }
        Err(_) => tracing::debug!(object = id, "what an earlier attempt put does not come"),
    }
}
