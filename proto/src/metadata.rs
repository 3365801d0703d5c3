//! Metadata keys of ours on calls of every protocol, and their values.

/// Request: the name of the job that the call is about, whatever port it came in by.
pub const JOB: &str = "x-tripod-job";

/// Request: `SESSION.SEQUENCE.ACKNOWLEDGED_BELOW` in decimal. The command takes effect once however often
/// it is sent with the same stamp, and every attempt gets the first one's outcome.
pub const STAMP: &str = "x-tripod-stamp";

/// Request, value `1`: between the caller and the client is something that outlives the connection, so a
/// poll for errors may be held even in jobs that release polls.
pub const LASTING: &str = "x-tripod-lasting";

/// Request, binary: the message by which the client of an agent registered, where the call itself does not say who makes it.
pub const REGISTRATION: &str = "x-tripod-registration-bin";

/// Registration, binary: a `tripod.v1.TaskOrigin` that says where the client comes from, as whoever passes it on knows.
pub const ORIGIN: &str = "x-tripod-where-bin";

/// Request of an agent with `EnumerateDevices`: `digest` has the answer name itself and nothing else, `whole` has it name itself
/// besides. Answer: its name, which every answer of the same bytes has from the same build, and no other has.
pub const DEVICES: &str = "x-tripod-devices";
/// The two values of [`DEVICES`] in a request.
pub const DEVICES_DIGEST: &str = "digest";
pub const DEVICES_WHOLE: &str = "whole";

/// Trailer of a status that is not the domain's word but this node's own trouble: the call can be sent
/// again, to another node too. The value is one of the `OUTAGE_*` words.
pub const OUTAGE: &str = "x-tripod-outage";

/// No leader for longer than calls are held; nothing was executed.
pub const OUTAGE_NO_LEADER: &str = "no-leader";
/// This node stops; nothing was executed.
pub const OUTAGE_STOPPING: &str = "stopping";
/// Too many calls wait on this node; nothing was executed.
pub const OUTAGE_OVERLOADED: &str = "overloaded";
/// The command may have been executed: repeat it only with the same stamp.
pub const OUTAGE_UNKNOWN: &str = "unknown";
/// The stamp's session is not known (any more); this attempt was not executed.
pub const OUTAGE_SESSION: &str = "session";

/// Requests to a scheduler, exactly once: the client's session, 32 hexadecimal digits that its process draws at
/// start.
pub const RAY_SESSION: &str = "x-tripod-session";
/// The place of a mutating call in its session, from 1, the same when it is sent again. The first opens the session.
pub const RAY_SEQ: &str = "x-tripod-seq";
/// Every call up to this place was answered.
pub const RAY_ACKED: &str = "x-tripod-acked";
/// The worker or driver whose references are charged.
pub const RAY_WORKER: &str = "x-tripod-worker";
/// With `ObjReady`, `AliasObjectIDs` and `ReadyForNewTask`: the task that is meant.
pub const RAY_OP: &str = "x-tripod-op";
/// With the same: its attempt, from 1.
pub const RAY_ATTEMPT: &str = "x-tripod-attempt";
/// With `SubmitTask` and `PutObj`: the place of the call among those of the running task, from 0.
pub const RAY_CHILD: &str = "x-tripod-child";
/// With `SubmitTask`: attempts after the first; -1: without limit. Without it 3.
pub const RAY_MAX_RETRIES: &str = "x-tripod-max-retries";
/// With `SubmitTask`, value `1`: exceptions are tried again too.
pub const RAY_RETRY_EXCEPTIONS: &str = "x-tripod-retry-exceptions";
/// With `RegisterWorker`: how many tasks the worker may be given at a time. Without it 1.
pub const RAY_SLOTS: &str = "x-tripod-slots";
/// With `RegisterWorker`: processors that the worker may use, in thousandths. Without it 1000.
pub const RAY_CPUS_MILLI: &str = "x-tripod-cpus-milli";
/// With `RegisterWorker`: bytes of memory that its tasks may use. Without it nobody knows, and no task may ask for any.
pub const RAY_MEMORY_BYTES: &str = "x-tripod-memory-bytes";
/// With `RegisterWorker`: other things that the worker has, in thousandths: `gpu=1000,licence=500`.
pub const RAY_RESOURCES_MILLI: &str = "x-tripod-resources-milli";
/// With `RegisterWorker` and `RegisterObjStore`, value `1`: the process sends heartbeats and knows the fields from
/// 1001 on.
pub const RAY_EXTENDED: &str = "x-tripod-extended";
/// With `SchedulerInfo` and `TaskInfo`: `linearizable` (as without it) or `stale`.
pub const RAY_READ: &str = "x-tripod-read";
/// Trailer of an answer that an earlier attempt of the same call got, value `1`.
pub const RAY_REPLAYED: &str = "x-tripod-replayed";
/// Trailer: why a call was refused, or an object cannot be had, in a word.
pub const RAY_REASON: &str = "x-tripod-reason";
/// Trailers: the leader's client address, its term, and the log index of the state that answered.
pub const RAY_LEADER: &str = "x-tripod-leader";
pub const RAY_TERM: &str = "x-tripod-term";
pub const RAY_INDEX: &str = "x-tripod-index";
/// Trailers of `SchedulerInfo`: the first object and the first operation that the lists show.
pub const RAY_BASE_OBJECT: &str = "x-tripod-base-object";
pub const RAY_BASE_OPERATION: &str = "x-tripod-base-operation";

/// Trailer of a refusal for want of room: when to try again, in milliseconds.
pub const RETRY_AFTER_MS: &str = "x-tripod-retry-after-ms";
/// With `mars.v1.Worker/PutMutableChunksData` from the first owner of a chunk to another one: the place of the first batch.
pub const MARS_COPY_FIRST: &str = "x-tripod-copy-first";
/// Trailer of its refusal when batches before that are missing: the place of the first one that is.
pub const MARS_COPY_NEXT: &str = "x-tripod-copy-next";
