//! Values that mean something where a target runs: without them nearly every input would be refused for a job or a task that
//! is not there, and nothing behind that would be reached.

use crate::source::Source;

/// The service life of the job that targets run with.
pub(crate) const SERVICE: u64 = 77;
/// The client's session that is open there.
pub(crate) const SESSION: u64 = 4_242;

/// A number by the name of its field, or of its type; `None` where the name says nothing.
pub(crate) fn number(source: &mut Source, name: &str) -> Option<u64> {
    // One in eight is anything.
    if source.one_in(8) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let ends = |ending: &str| name.ends_with(ending);
    // The oldest dialect calls the service's life a session.
    if ends("service_incarnation") || ["service", "serviceincarnation", "session_id"].contains(&&*name) {
        Some(SERVICE)
    } else if ends("incarnation") || ends("client_id") || ["leader_id", "job", "jobid"].contains(&&*name) {
        Some(1 + source.bits() % 2)
    } else if name == "session" || name == "sessionid" {
        Some(SESSION)
    } else if name == "protocol_version" {
        Some(1)
    } else if name == "session_high" {
        Some(0)
    } else if ends("level") || name == "featurelevel" {
        Some(source.bits() % 8)
    } else if ends("_ms") || name == "durationms" {
        Some(*source.pick(&[0, 1, 999, 10_000, 60_000, u64::MAX, u64::MAX / 2]))
    } else if ends("id") || ends("task") || ends("ids") || ends("tasks") || ends("sequence") || ends("worker")
    {
        Some(source.bits() % 6)
    } else {
        None
    }
}

/// Text by the name of its field, or of its type.
pub(crate) fn text(source: &mut Source, name: &str) -> Option<&'static str> {
    if source.one_in(6) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let words: &[&str] = if name.contains("address") || name.contains("peer") {
        &["10.0.0.1:7700", "10.0.0.2:1", "[::1]:7", "node:65535", "10.0.0.1:0", ""]
    } else if name.contains("key") || name.contains("directory") || name == "after" {
        &["a", "a/b", "a/b/c", "/a//b/", "n", ""]
    } else if name.contains("barrier") {
        &["b", "c", "Shutdown::0", ""]
    } else if name.contains("target") || name.contains("source") || name == "device_type" {
        &[
            "/job:worker/replica:0/task:0",
            "/job:worker/task:1",
            "/job:jax_worker/replica:0/task:3",
            "/job:",
            "CPU",
        ]
    } else if name.contains("job_name") {
        &["worker", "jax_worker", "chief", ""]
    } else if name.contains("job") {
        &["default", "other", "ps", ""]
    } else if name.contains("type_url") {
        &[
            "type.googleapis.com/envoy.config.listener.v3.Listener",
            "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
        ]
    } else if name == "path" {
        &[
            "/xla.coordination.CoordinationService/Heartbeat",
            "/tensorflow.CoordinationService/Heartbeat",
            "/xla.DistributedRuntimeService/Heartbeat",
            "/xla.coordination.CoordinationService/Barrier",
        ]
    } else if name == "role" {
        &["MS_WORKER", "MS_WORKER", "MS_PSERVER", "MS_SERVER", "MS_SCHED"]
    } else if name == "node_id" || name == "node_ids" {
        &["0", "1", "2", "node-a", ""]
    } else if name.contains("host_") {
        &["10.0.0.1", "10.0.0.2", "::1", ""]
    } else if name == "name" || name == "names" || name.contains("resource") || name.contains("funcname") {
        &["default", "f", "g", "worker", "default:1", "v"]
    } else {
        return None;
    };
    Some(words[source.below(words.len())])
}
