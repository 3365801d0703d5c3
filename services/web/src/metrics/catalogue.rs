//! Every metric. docs/metrics.md tells what each means and when to be alarmed; a test keeps the two together.

/// The ends of names that say what is counted.
const UNITS: [&str; 4] = ["seconds", "bytes", "entries", "index"];

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows, until the process ends. Its name ends with `_total`.
    Counter,
    /// Durations by size.
    Histogram,
}

/// One metric. A unit is the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// What it means, in one line.
    pub help: &'static str,
    /// The labels that it has, with commas between them.
    pub label: Option<&'static str>,
}

impl Kind {
    /// The word that scrapers know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// What is counted; `1` for things, and for what is so or is not.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        let end = |unit: &&str| name.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_'));
        UNITS.into_iter().find(end).unwrap_or("1")
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, help, label: None }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, help, label: None }
}

const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, help, label: None }
}

const fn by(label: &'static str, metric: Metric) -> Metric {
    Metric { label: Some(label), ..metric }
}

macro_rules! catalogue {
    ($($constant:ident = $metric:expr;)*) => {
        $(pub(super) const $constant: Metric = $metric;)*
        /// All of them, in the order of the page `/metrics`.
        pub const METRICS: &[&Metric] = &[$(&$constant),*];
    };
}

catalogue! {
    BUILD_INFO = by("version,level", gauge("tripod_build_info", "1; the build of this node, and the highest feature level it supports"));
    CLUSTER_INFO = by("cluster", gauge("tripod_cluster_info", "1; the id of the cluster that this node belongs to"));
    READY = gauge("tripod_ready", "1 while this node can serve, as /readyz tells");
    DRAINED = gauge("tripod_drained", "1 while an operator wants this node to lead nothing and have no clients");
    LEADER = gauge("tripod_leader", "1 while this node leads the cluster");
    LEADER_KNOWN = gauge("tripod_leader_known", "1 while a leader is known");
    TERM = gauge("tripod_term", "Raft term");
    LEADER_CHANGES =
        counter("tripod_leader_changes_total", "how often another node than before was found to lead");
    LEADER_SINCE = gauge("tripod_leader_since_seconds", "time since the leader leads that this node names");
    ELECTIONS = counter("tripod_elections_total", "how often this node stood for election");
    GAVE_UP = by("reason", counter("tripod_leader_gave_up_total", "how often this node gave up leading"));
    VOTERS = gauge("tripod_voters", "members with a vote");
    LEARNERS = gauge("tripod_learners", "members without a vote");
    CHANGE = gauge("tripod_membership_change", "1 while a change of members is under way");
    TOLERANCE = gauge("tripod_failure_tolerance", "so many more voters may fail, and the cluster goes on; on the leader");
    CHANGE_SAFE = gauge("tripod_change_safe", "1 while members can be changed safely; on the leader");

    LAST_LOG = gauge("tripod_last_log_index", "last index of this node's log");
    COMMITTED = gauge("tripod_committed_index", "last index known to be committed");
    APPLIED = gauge("tripod_applied_index", "last log index in the state");
    SNAPSHOT = gauge("tripod_snapshot_index", "last log index in the newest snapshot");
    PURGED = gauge("tripod_purged_index", "last log index given up for a snapshot");
    PEER_LAG =
        by("peer", gauge("tripod_peer_lag_entries", "committed entries that a member may not hold; on the leader"));
    PEER_SILENCE =
        by("peer", gauge("tripod_peer_silence_seconds", "time since a member answered last; on the leader"));
    ROUND_TRIP =
        by("peer", gauge("tripod_peer_round_trip_seconds", "time of a question to the leader and its answer; not on the leader"));
    CLOCK_OFFSET =
        by("peer", gauge("tripod_peer_clock_offset_seconds", "how far the leader's clock is ahead of this node's; not on the leader"));

    QUEUE =
        histogram("tripod_write_queue_seconds", "from a proposal to the log in memory; one of 32");
    APPEND =
        histogram("tripod_write_append_seconds", "from memory to the file, the oldest entry of each group");
    FLUSH = histogram("tripod_write_flush_seconds", "each fdatasync of the journal");
    REPLICATE = histogram("tripod_write_replicate_seconds", "from memory to a quorum; one of 32 proposals");
    APPLY = histogram("tripod_write_apply_seconds", "each batch of committed entries");
    REPLY = histogram("tripod_write_reply_seconds", "from applied to answered; one of 32 proposals");
    PROPOSALS = gauge("tripod_proposals", "proposals in this node's engine without an outcome");
    FORWARDING = gauge("tripod_forwarding", "proposals that wait to be sent to the leader");

    FLUSH_P99 = gauge("tripod_flush_p99_seconds", "the slowest hundredth of the flushes of the last minute");
    DISK_FREE = gauge("tripod_disk_free_bytes", "bytes that may still be written to the disk");
    DISK_RESERVE = gauge("tripod_disk_reserve_bytes", "bytes kept for votes, deletions and snapshots");
    DISK_FULL = gauge("tripod_disk_full", "1 while the disk is down to the reserve; alarm on it");
    GROWTH_REFUSED = gauge("tripod_growth_refused", "1 while the leader refuses what grows; alarm on it");

    SNAPSHOTS_BUILT = counter("tripod_snapshots_built_total", "snapshots written of this node's own state");
    SNAPSHOTS_SENT = counter("tripod_snapshots_sent_total", "snapshots sent to other nodes, whole");
    SNAPSHOTS_INSTALLED =
        counter("tripod_snapshots_installed_total", "snapshots of a leader put in the place of the state");
    SNAPSHOT_AGE = gauge("tripod_snapshot_age_seconds", "time since this node's newest snapshot was made or received");
    BACKUP_AGE = gauge("tripod_backup_age_seconds", "time since this node made or handed out a backup");
    COMPARED =
        gauge("tripod_compared_index", "last index at which the state was found to be that of a majority");
    DIVERGED =
        counter("tripod_diverged_total", "states of nodes found to differ; on the leader; alarm on it");

    CALLS = by("dialect,call,outcome", counter("tripod_calls_total", "calls of clients, by what became of them"));
    CALL_TIMES = by("dialect,call", histogram("tripod_call_seconds", "from a call to its answer; those that wait for others apart"));
    WAITING_CALL_TIMES =
        by("dialect,call", histogram("tripod_waiting_call_seconds", "the same of calls that wait for what other tasks do"));
    WAITING = gauge("tripod_waiting_calls", "calls that wait on this node");
    HELD = gauge("tripod_held_calls", "of those, calls that wait for a leader");
    HELD_TOTAL = counter("tripod_calls_held_total", "calls that have had to wait for a leader");
    TURNS_WAITING = gauge("tripod_turns_waiting", "calls of clients that wait for their turn");
    TURNS_WAITED = counter("tripod_turns_waited_total", "calls of clients that have had to wait for their turn");
    TURNS_REFUSED =
        counter("tripod_turns_refused_total", "calls that were given up because their turn did not come; alarm on it");
    CONNECTIONS = gauge("tripod_client_connections", "connections of clients, on all ports");
    CONNECTIONS_MAX = gauge("tripod_client_connections_max", "how many there may be");
    CONNECTIONS_REFUSED =
        counter("tripod_client_connections_refused_total", "connections that were closed because there was no place");
    UI_VIEWERS = gauge("tripod_ui_viewers", "browsers and others that watch the page of this node");
    TLS_HANDSHAKES =
        by("outcome", counter("tripod_tls_handshakes_total", "handshakes of TLS on all ports, by how they ended"));
    TLS_NOT_AFTER = gauge("tripod_tls_not_after_seconds", "when this node's certificate ends; 0 without TLS");
    TLS_RELOAD_FAILURES =
        counter("tripod_tls_reload_failures_total", "looks that found new certificates which were not taken; alarm on it");
    INSECURE = gauge("tripod_insecure", "1 if other machines can use a port of this node in plain text, as it was told; alarm on it");
    AUDIT_LOST = counter("tripod_audit_lost_total", "lines of the audit log that nothing has written; alarm on it");
    AUTHORISED_CALLS =
        by("outcome", counter("tripod_authorised_calls_total", "calls on all ports of gRPC, by what who calls may"));
    TOKENS_REFUSED =
        by("reason", counter("tripod_tokens_refused_total", "tokens that calls and requests have shown in vain, by what was wrong"));
    CLIENT_BYTES = gauge("tripod_client_bytes", "bytes of requests, waiting calls and answers held for clients");
    CLIENT_LIMIT = gauge("tripod_client_limit_bytes", "how many there may be");
    CLIENT_BYTES_REFUSED =
        counter("tripod_client_bytes_refused_total", "calls and answers for which there was no room");
    SESSIONS = gauge("tripod_sessions", "open sessions of clients and of nodes");
    JOBS = gauge("tripod_jobs", "jobs in the state");
    JOBS_WAITING = gauge("tripod_jobs_waiting", "jobs in which somebody has waited at a barrier for more than a minute");
    TASKS = by("state", gauge("tripod_tasks", "tasks of all jobs that are connected, in error or late"));
    TASKS_LOST = by("why", counter("tripod_tasks_given_up_total", "tasks that were given up"));
    BEATS = counter("tripod_beats_total", "heartbeats of tasks that came to this node");
    BEAT_HANDLING = histogram("tripod_beat_handling_seconds", "from a heartbeat to the word of the leader");
    BARRIERS = gauge("tripod_barriers_open", "barriers of all jobs at which somebody waits");
    BARRIER_WAITS =
        histogram("tripod_barrier_wait_seconds", "how long barriers took that passed, from the first task to the last; on the leader");
    BARRIERS_FAILED = by("reason", counter("tripod_barriers_failed_total", "barriers that failed; on the leader"));
    KEYS = gauge("tripod_keys", "keys of all jobs");
    KEY_BYTES = gauge("tripod_key_bytes", "bytes of all keys and values");
    STATE_BYTES = gauge("tripod_state_bytes", "what the whole state takes of memory, roughly");
    STATE_LIMIT = gauge("tripod_state_limit_bytes", "how much the whole state may take while this node leads");
    JOB_BYTES_LARGEST = gauge("tripod_job_largest_bytes", "of that, the job that takes most");
    JOB_LIMIT = gauge("tripod_job_limit_bytes", "how much each job may take while this node leads");

    STREAMS = gauge("tripod_call_streams", "streams of calls that clients have open");
    STREAMS_ENDED =
        by("reason", counter("tripod_call_streams_ended_total", "streams of calls that ended or were not opened"));
    STREAM_OPS = counter("tripod_call_stream_ops_total", "calls that came by streams");
    STREAM_OPS_WAITING =
        gauge("tripod_call_stream_ops_waiting", "calls that came by streams and are not answered yet");
    STREAM_FRAMES =
        by("direction", counter("tripod_call_stream_frames_total", "frames of streams, from and to clients"));

    WORKERS = gauge("tripod_scheduler_workers", "living workers of all jobs' schedulers");
    STORES = gauge("tripod_scheduler_stores", "living object stores of all jobs' schedulers");
    SCHEDULED = by("state", gauge("tripod_scheduler_tasks", "tasks of all jobs' schedulers that are not done"));
    ENDED = by("state", gauge("tripod_scheduler_tasks_ended", "tasks that ended, since each job began"));
    OBJECTS = gauge("tripod_scheduler_objects", "objects of all jobs' schedulers");
    ORDERS = gauge("tripod_scheduler_orders", "what workers and object stores are still to be told");

    MEMORY = gauge("process_resident_memory_bytes", "memory of this process that is in use");
    CPU = counter("process_cpu_seconds_total", "time that this process's threads have run");
    FDS = gauge("process_open_fds", "open files and connections of this process");
    FDS_MAX = gauge("process_max_fds", "how many there may be");
    STARTED = gauge("process_start_time_seconds", "when this process started, since 1970");
}
