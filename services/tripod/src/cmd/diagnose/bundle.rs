//! Everything that is known of a job and of the cluster now, as one file for whoever looks at it elsewhere.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tripod_client::{Client, NodeAnswer, wire};
use tripod_local::files;
use tripod_proto::code::Code;

use crate::cmd::events;
use crate::failure::Failure;
use crate::output;
use crate::view::cluster::ClusterView;
use crate::view::events::EventsView;
use crate::view::job::JobView;
use crate::view::time;

/// How long nodes may take to say how they are.
const STATUS_LIMIT: Duration = Duration::from_secs(5);
/// So far back events of the cluster and of nodes are taken.
const BEFORE_MS: u64 = 24 * 3_600 * 1_000;

/// Gathers all of it. What cannot be had is there as the reason why not. No value of a key is in it.
///
/// # Errors
/// The file cannot be written.
pub(super) async fn write(
    client: &Client,
    job: &str,
    found: &wire::DiagnoseJobResponse,
    file: &Path,
) -> Result<(), Failure> {
    let since_ms = time::now_ms().saturating_sub(BEFORE_MS);
    let lately = || wire::EventFilter { since_ms, ..wire::EventFilter::default() };
    let answers = client.status(STATUS_LIMIT, false).await;
    let mut nodes = Vec::new();
    for node in members(&answers) {
        let events = events::of_node(client, node, lately()).await;
        nodes.push(json!({ "node": node, "events": told(events.map(|answer| EventsView::of(&answer))) }));
    }
    let shown = client.jobs().get_or_remembered(job).await.map_err(Failure::from);
    let of_job = client.job_events(job, wire::EventFilter::default()).await.map_err(Failure::from);
    let of_cluster = client.cluster_events(lately()).await.map_err(Failure::from);
    let bundle = json!({
        "made_ms": time::now_ms(),
        "by": concat!("tripod ", env!("CARGO_PKG_VERSION")),
        "job_name": job,
        "text": found.text,
        "diagnosis": serde_json::from_str::<Value>(&found.json).unwrap_or(Value::Null),
        "job": told(shown.map(|job| job.map(|job| JobView::full(&job)))),
        "job_events": told(of_job.map(|answer| answer.map(|answer| EventsView::of(&answer)))),
        "cluster_events": told(of_cluster.map(|answer| EventsView::of(&answer))),
        "status": told(Ok(ClusterView::of(&answers, false))),
        "nodes": nodes,
    });
    let failed = |error: std::io::Error| {
        Failure::new(Code::OutputFailed, format!("{} cannot be written: {error}", file.display()))
    };
    let mut to = files::create(file).map_err(failed)?;
    to.write_all(bundle.to_string().as_bytes()).map_err(failed)?;
    output::note(&format!("the bundle is in {}", file.display()));
    Ok(())
}

/// All members that some node knows.
fn members(answers: &[NodeAnswer]) -> Vec<u64> {
    let told = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    let mut ids: Vec<u64> = told.flat_map(|status| &status.members).map(|member| member.node_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// As JSON, or why there is nothing.
fn told<T: Serialize>(part: Result<T, Failure>) -> Value {
    match part.map(|part| serde_json::to_value(part)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => json!({ "error": error.to_string() }),
        Err(failure) => json!({ "error": failure.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_there_as_the_reason() {
        assert_eq!(told(Ok(7)), json!(7));
        let failure = Failure::new(Code::NoLeader, "nobody leads");
        let value = told::<u64>(Err(failure.clone()));
        assert_eq!(value["error"], failure.to_string());
    }

    #[test]
    fn every_member_is_asked_once_by_whomever_it_is_known() {
        let status = |ids: &[u64]| {
            let member = |id: &u64| wire::Member { node_id: *id, ..Default::default() };
            wire::StatusResponse { members: ids.iter().map(member).collect(), ..Default::default() }
        };
        let answer = |ids: &[u64]| NodeAnswer { endpoint: "a:1".into(), status: Ok(status(ids)) };
        assert_eq!(members(&[answer(&[1, 3]), answer(&[3, 2])]), [1, 2, 3]);
        assert_eq!(members(&[]), Vec::<u64>::new());
    }
}
