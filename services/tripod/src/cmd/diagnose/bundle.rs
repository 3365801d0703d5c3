//! Everything that is known of a job and of the cluster now, as one file for whoever looks at it elsewhere.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
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
/// Nodes that are asked what they have seen: more than a cluster has.
const NODES_MAX: usize = 64;
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
    for node in members(&answers).into_iter().take(NODES_MAX) {
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
    output::json_text(&bundle).and_then(|text| keep(file, &text)).map_err(|error| {
        Failure::new(Code::OutputFailed, format!("{} cannot be written: {error}", file.display()))
    })?;
    output::note(&format!("the bundle is in {}", file.display()));
    Ok(())
}

/// Puts the text there, whole or not at all, and for this user only whatever lay there: a file that others read, or a link.
fn keep(file: &Path, text: &str) -> io::Result<()> {
    match fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "what is there is no file; give another name",
            ));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    match fs::remove_file(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut to = files::options().write(true).create_new(true).open(&part)?;
    to.write_all(text.as_bytes())?;
    to.sync_all()?;
    fs::rename(&part, file)
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
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_cannot_be_had_is_there_as_the_reason() {
        assert_eq!(told(Ok(7)), json!(7));
        let failure = Failure::new(Code::NoLeader, "nobody leads");
        let value = told::<u64>(Err(failure.clone()));
        assert_eq!(value["error"], failure.to_string());
    }

    #[test]
    fn a_bundle_is_for_its_user_only_whatever_lay_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let (file, other) = (path("b.json"), path("other"));
        fs::write(&file, "of before, for all to read").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("its own file");
        fs::write(&other, "untouched").expect("written");
        symlink(&other, path("b.json.part")).expect("linked");
        keep(&file, "{}").expect("written");
        assert_eq!(fs::read_to_string(&file).expect("there"), "{}");
        assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);
        symlink(&other, path("link")).expect("linked");
        let refused = keep(&path("link"), "{}").expect_err("root would write into another one's file");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert!(keep(directory.path(), "{}").is_err());
        assert_eq!(fs::read_to_string(&other).expect("there"), "untouched");
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
