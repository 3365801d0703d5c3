//! What a witness says when all is over.

use std::collections::BTreeMap;

use super::observation::Violation;

/// How much was judged. A rule that judged nothing proves nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Judged {
    /// Leaders that were elected.
    pub leaders: u64,
    /// Entries that one node applied after another.
    pub entries: u64,
    /// Digests that two nodes had at the same index.
    pub digests: u64,
    /// Acknowledged writes that were looked for in the end.
    pub writes: u64,
    /// Instances of barriers.
    pub barriers: u64,
    /// Acknowledgements to lives of tasks.
    pub lives: u64,
    /// Lists of the members that were committed.
    #[serde(default)]
    pub memberships: u64,
    /// Attempts of scheduled tasks that a worker began.
    #[serde(default)]
    pub attempts: u64,
    /// Objects of schedulers that a driver read.
    #[serde(default)]
    pub results: u64,
    /// Looks at a whole scheduler.
    #[serde(default)]
    pub schedulers: u64,
    /// Looks at a cluster of MindSpore.
    #[serde(default)]
    pub clusters: u64,
}

/// What a witness says in the end.
pub(crate) struct End {
    pub(crate) violations: Vec<Violation>,
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) lines: Vec<String>,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) judged: Judged,
}
