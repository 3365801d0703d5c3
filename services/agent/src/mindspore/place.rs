//! Where the node in use serves the job to nodes of MindSpore: each node has a port of its own for it, and tells it.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Response, Status};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{GetJobRequest, StatusRequest, StatusResponse};

use crate::upstream::{Link, root_cause};

/// As nodes name the protocol.
const PROTOCOL: &str = "mindspore";

/// Why there is no such place.
#[derive(Debug)]
pub(super) enum NoPlace {
    /// The node did not say.
    Unanswered(String),
    /// It has none; why.
    Closed(String),
}

/// Where the node of `link` serves the job now. Asked before each connection: when a job is deleted, its port may be another
/// job's next.
pub(super) async fn find(link: &Link, job: &str, limit: Duration) -> Result<String, NoPlace> {
    let mut jobs = JobsClient::new(link.wire.clone()).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX);
    let found = answer(limit, jobs.get(GetJobRequest { name: job.to_owned(), ..Default::default() })).await?;
    let mut cluster =
        ClusterClient::new(link.wire.clone()).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX);
    let status = answer(limit, cluster.status(StatusRequest::default())).await?;
    of(&status, found.id).map_err(|why| NoPlace::Closed(format!("{} {why}", link.address)))
}

async fn answer<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, NoPlace> {
    match timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(NoPlace::Unanswered(root_cause(&status))),
        Err(_) => Err(NoPlace::Unanswered(format!("no answer within {:.1} s", limit.as_secs_f64()))),
    }
}

/// What a node tells of its place for a job, or why it has none.
fn of(status: &StatusResponse, job: u64) -> Result<String, String> {
    let port = status.own_job_ports.iter().find(|port| port.job_id == job && port.protocol == PROTOCOL);
    match port {
        None => Err("has no port for it; start it with --mindspore-ports".to_owned()),
        Some(port) if port.address.is_empty() => {
            Err(format!("has no port for it: {}; lengthen its --mindspore-ports", port.reason))
        }
        Some(port) if !port.reason.is_empty() => {
            Err(format!("cannot open {}: {}", port.address, port.reason))
        }
        Some(port) => Ok(port.address.clone()),
    }
}

#[cfg(test)]
mod tests {
    use tripod_proto::tripod::v1::OwnJobPort;

    use super::*;

    #[test]
    fn a_node_without_a_port_for_the_job_is_told_with_what_to_do() {
        let port = |job_id, protocol: &str, address: &str, reason: &str| {
            let (protocol, address, reason) = (protocol.into(), address.into(), reason.into());
            OwnJobPort { job_id, protocol, address, reason }
        };
        let status = |own_job_ports| StatusResponse { own_job_ports, ..StatusResponse::default() };
        let others = vec![port(3, PROTOCOL, "a:8400", ""), port(4, "lines", "a:9", "")];
        let none = of(&status(others.clone()), 4).expect_err("none");
        assert_eq!(none, "has no port for it; start it with --mindspore-ports");
        let with = |own| of(&status([others.clone(), vec![own]].concat()), 4);
        assert_eq!(with(port(4, PROTOCOL, "a:8401", "")), Ok("a:8401".to_owned()));
        let taken = with(port(4, PROTOCOL, "a:8401", "taken")).expect_err("closed");
        assert_eq!(taken, "cannot open a:8401: taken");
        let short = with(port(4, PROTOCOL, "", "too short")).expect_err("closed");
        assert_eq!(short, "has no port for it: too short; lengthen its --mindspore-ports");
    }
}
