//! Metadata keys of ours on calls of every protocol, and their values.

/// Request: the name of the job that the call is about, whatever port it came in by.
pub const JOB: &str = "x-tripod-job";

/// Request: `SESSION.SEQUENCE.ACKNOWLEDGED_BELOW` in decimal. The command takes effect once however often
/// it is sent with the same stamp, and every attempt gets the first one's outcome.
pub const STAMP: &str = "x-tripod-stamp";

/// Request, value `1`: between the caller and the client is something that outlives the connection, so a
/// poll for errors may be held even in jobs that release polls.
pub const LASTING: &str = "x-tripod-lasting";

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
