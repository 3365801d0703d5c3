//! One call to one task.

use std::error::Error;
use std::time::Duration;

use tonic::Request;
use tonic::transport::Endpoint;
use tripod_proto::tensorflow as pb;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;
use tripod_state::job::Listener;

/// How long upstream waits for a task's answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// What came of a call.
pub(super) struct Told {
    pub(super) listener: Listener,
    /// Or why not.
    pub(super) outcome: Result<(), String>,
}

/// Calls the task at its own address, in plain text: TensorFlow knows no other way.
pub(super) async fn tell(listener: Listener, message: pb::ReportErrorToTaskRequest) -> Told {
    let outcome = match tokio::time::timeout(DEADLINE, call(&listener.address, message)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {DEADLINE:?}")),
    };
    Told { listener, outcome }
}

async fn call(address: &str, message: pb::ReportErrorToTaskRequest) -> Result<(), String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| reasons(&error))?;
    let channel = endpoint.connect().await.map_err(|error| reasons(&error))?;
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
