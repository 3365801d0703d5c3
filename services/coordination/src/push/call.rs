//! One call to one task.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tonic::Request;
use tonic::transport::{Channel, Endpoint};
use tripod_dial::Callee;
use tripod_proto::tensorflow as pb;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;
use tripod_state::job::Listener;

/// How long upstream waits for a task's answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// How a connection to a task is made.
pub type Connect = Arc<dyn Fn(Endpoint) -> Connecting + Send + Sync>;
/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

/// What came of a call.
pub(super) struct CallOutcome {
    pub(super) listener: Listener,
    /// Or why not.
    pub(super) outcome: Result<(), String>,
}

/// Calls the task at its own address, in plain text: TensorFlow knows no other way.
pub(super) async fn tell(
    listener: Listener,
    message: pb::ReportErrorToTaskRequest,
    connect: &Connect,
) -> CallOutcome {
    let outcome = match tokio::time::timeout(DEADLINE, call(&listener.address, message, connect)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {DEADLINE:?}")),
    };
    CallOutcome { listener, outcome }
}

async fn call(address: &str, message: pb::ReportErrorToTaskRequest, connect: &Connect) -> Result<(), String> {
    let endpoint = tripod_dial::endpoint(address, Callee::Task).map_err(|error| reasons(&error))?;
    let channel = connect(endpoint).await.map_err(|error| reasons(&error))?;
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    let answer = CoordinationServiceClient::new(channel).report_error_to_task(request).await;
    answer.map(|_| ()).map_err(|status| status.to_string())
}

/// An error with everything behind it: a transport's own text says only that it failed.
fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(reason) = cause {
        text = format!("{text}: {reason}");
        cause = reason.source();
    }
    text
}
