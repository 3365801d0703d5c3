//! What is known, by whom, and how old it is. Ages are in milliseconds before the moment at which it was gathered.

use std::collections::BTreeMap;

use crate::words::plain;

/// Everything that is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Milliseconds since the Unix epoch, by the time of the log: no node's clock can be compared with when the state says
    /// that something happened.
    pub now_ms: u64,
    pub job: Job,
    /// By number, from 0 on without a gap.
    pub tasks: Vec<Task>,
    /// Where tasks wait for each other now.
    pub places: Vec<Place>,
    /// How many more there are, opened later.
    pub places_left_out: u64,
    pub calls: BTreeMap<i32, Calls>,
    /// Keys that somebody waits for, as far as they were looked up.
    pub keys: BTreeMap<String, Key>,
    /// Open calls of the job of which nobody knows whose they are, and those that no node had room to enter.
    pub of_nobody: u64,
    pub not_entered: u64,
    /// The leader has said when it heard the tasks.
    pub ages_told: bool,
    pub cluster: Cluster,
    /// All this is what one node remembers: nobody leads.
    pub memory: Option<Memory>,
    pub patience: Patience,
}

/// Up to where a node remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    pub index: u64,
    /// Milliseconds since the Unix epoch of that entry.
    pub at_ms: u64,
    pub why: String,
}

/// How long somebody must have waited before anybody is blamed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For one that is seen to stand elsewhere, or is not there.
    pub wait_ms: u64,
    /// For one that is alive and in no call: it may be computing.
    pub busy_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { wait_ms: 10_000, busy_ms: 30_000 }
    }
}

/// The job that is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    pub name: String,
    pub heartbeat_timeout_ms: u64,
}

/// Where a task stands, as the state says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    #[default]
    NeverCame,
    Registering,
    Connected,
    Left,
    Lost,
    Ended,
    Failed,
}

impl Standing {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NeverCame,
        Self::Registering,
        Self::Connected,
        Self::Left,
        Self::Lost,
        Self::Ended,
        Self::Failed,
    ];

    /// As `job show` has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NeverCame => "never-came",
            Self::Registering => "registering",
            Self::Connected => "connected",
            Self::Left => "left",
            Self::Lost => "lost",
            Self::Ended => "ended",
            Self::Failed => "error",
        }
    }
}

/// One task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    pub standing: Standing,
    pub incarnation: u64,
    /// Where its process runs; empty: nobody has said it.
    pub host: String,
    /// What else is known of where its process comes from.
    pub origin: Origin,
    /// How long it may be silent: longer than the job's timeout if its program sends heartbeats more rarely.
    pub silence_limit_ms: u64,
    /// How long ago the leader heard it; `None`: it does not say, or has not since it leads.
    pub beat_age_ms: Option<u64>,
    /// Its process does not run, as whoever started it says now.
    pub held: Option<Held>,
    /// As whoever started it saw.
    pub end: Option<End>,
    /// What it is in error of.
    pub error: Option<TaskError>,
}

/// Why a process does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldState {
    /// Somebody has stopped it.
    Stopped,
    /// It waits in the kernel, for a disk as a rule.
    Disk,
}

/// A process that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub state: HeldState,
    /// The kernel's function in which it waits; empty: not known.
    pub waits_in: String,
    /// For how long, at least.
    pub since_ago_ms: u64,
}

/// Where the process of a task comes from, besides its host: what is empty or 0, nobody has said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub pid: u32,
    /// What the client calls itself.
    pub client: String,
    /// The build of the agent by which it came.
    pub agent: String,
    /// Who started it, and as which of its own.
    pub launcher: String,
}

/// The error of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskError {
    pub text: String,
    /// It is the task's own, and not that of others by which it was ended.
    pub is_own: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// As words behind its name: `was ended by SIGKILL`.
    pub how: String,
    pub out_of_memory: bool,
    /// Milliseconds since the Unix epoch, by the clock of its host.
    pub at_ms: u64,
    /// The last line that it wrote to its standard error; empty: not known.
    pub last_line: String,
}

/// What tasks wait for at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceKind {
    Registration,
    Barrier,
    Shutdown,
    Devices,
}

/// A place where tasks wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub kind: PlaceKind,
    /// As the program calls it; empty unless it is a barrier.
    pub name: String,
    /// Milliseconds since the Unix epoch; `None`: not known.
    pub opened_ms: Option<u64>,
    pub timeout_ms: Option<u64>,
    pub arrived_count: u32,
    pub missing_count: u32,
    /// Who they are, ascending; fewer than that many where not all are known.
    pub arrived: Vec<i32>,
    pub missing: Vec<i32>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    Registration,
    Barrier,
    Shutdown,
    Devices,
    Key,
    Alive,
    Tasks,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Passed,
    Refused,
    HungUp,
}

/// A call of a task on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub kind: CallKind,
    /// The barrier or the key.
    pub subject: String,
    pub since_ago_ms: u64,
    /// How it ended, and how long ago; `None`: it waits.
    pub ended: Option<(Outcome, u64)>,
    pub node: u64,
}

/// The calls of a task on all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// The oldest first.
    pub open: Vec<Call>,
    /// The newest first.
    pub last: Vec<Call>,
}

/// A key that somebody waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Key {
    pub exists: bool,
    /// Keys beside it, in the same directory.
    pub siblings: u64,
}

/// The members of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The node that has asked the others.
    pub told_by: u64,
    pub nodes: Vec<Node>,
    /// A change of them is under way.
    pub is_changing: bool,
}

/// A member, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub node: u64,
    pub voter: bool,
    pub said: Said,
}

/// What a member has said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Word(NodeWord),
    /// Its port refuses: the process is down.
    PortRefuses,
    /// Nothing in time.
    Silent,
    /// It cannot be reached, and why.
    Unreachable(String),
    /// It answers, but not this: an earlier build, or one that starts.
    Refuses(String),
}

/// What a member knows by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeWord {
    pub leader: Option<u64>,
    pub committed: u64,
    pub applied: u64,
    /// How long ago it was in contact with a quorum; `None`: not yet.
    pub contact_ago_ms: Option<u64>,
    pub held_calls: u64,
    pub flush_p99_us: Option<u64>,
    pub flush_under_way_ms: Option<u64>,
    /// The last time that its process did not run: how long, and how long ago that ended.
    pub pause: Option<(u64, u64)>,
    /// On the leader: how long ago each other member answered last.
    pub heard: BTreeMap<u64, u64>,
}

impl Cluster {
    /// The members that answer, with what they say.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&Node, &NodeWord)> {
        self.nodes.iter().filter_map(|node| match &node.said {
            Said::Word(word) => Some((node, word)),
            _ => None,
        })
    }

    /// The leader, if it answers as such.
    pub(crate) fn leader(&self) -> Option<(&Node, &NodeWord)> {
        self.words().find(|(node, word)| word.leader == Some(node.node))
    }

    /// Whether every member has said what waits there.
    pub(crate) fn all_answer(&self) -> bool {
        self.words().count() == self.nodes.len()
    }
}

impl Facts {
    pub(crate) fn task(&self, task: i32) -> Option<&Task> {
        self.tasks.get(usize::try_from(task).ok()?)
    }

    /// Where the process of a task is, as far as that is known.
    pub(crate) fn process(&self, task: i32) -> Option<String> {
        self.task(task)?.process()
    }

    pub(crate) fn open(&self, task: i32) -> &[Call] {
        self.calls.get(&task).map_or(&[], |calls| &calls.open)
    }

    pub(crate) fn last(&self, task: i32) -> &[Call] {
        self.calls.get(&task).map_or(&[], |calls| &calls.last)
    }

    /// How long somebody has waited at a place: since it was opened, or as long as a call there waits.
    pub(crate) fn waited_ms(&self, place: &Place) -> u64 {
        match place.opened_ms {
            Some(opened) => self.now_ms.saturating_sub(opened),
            None => {
                let calls = place.arrived.iter().flat_map(|task| self.open(*task));
                calls.filter(|call| place.is_of(call)).map(|call| call.since_ago_ms).max().unwrap_or(0)
            }
        }
    }

    /// The longest that a task has waited of late at a barrier that it passed.
    pub(crate) fn longest_wait_ms(&self) -> u64 {
        let all = self.calls.values().flat_map(|calls| &calls.last);
        let passed = all.filter(|call| call.kind == CallKind::Barrier);
        let waited = passed.filter_map(|call| match call.ended {
            Some((Outcome::Passed, ago)) => Some(call.since_ago_ms.saturating_sub(ago)),
            _ => None,
        });
        waited.max().unwrap_or(0)
    }
}

impl Task {
    /// Where its process is, as far as that is known: `host a3-7 pid 4711`.
    fn process(&self) -> Option<String> {
        let host = (!self.host.is_empty()).then(|| format!("host {}", plain(&self.host)));
        let pid = (self.origin.pid != 0).then(|| format!("pid {}", self.origin.pid));
        match (host, pid) {
            (Some(host), Some(pid)) => Some(format!("{host} {pid}")),
            (host, pid) => host.or(pid),
        }
    }
}

impl Place {
    /// Whether a call waits here.
    pub(crate) fn is_of(&self, call: &Call) -> bool {
        match (self.kind, call.kind) {
            (PlaceKind::Barrier, CallKind::Barrier) => match call.subject.strip_prefix("...") {
                Some(end) => self.name.ends_with(end),
                None => self.name == call.subject,
            },
            (PlaceKind::Registration, CallKind::Registration)
            | (PlaceKind::Shutdown, CallKind::Shutdown)
            | (PlaceKind::Devices, CallKind::Devices) => true,
            _ => false,
        }
    }

    /// The place as it is called in a sentence: "have not come to ...".
    pub(crate) fn called(&self) -> String {
        match self.kind {
            PlaceKind::Registration => "the registration".to_owned(),
            PlaceKind::Barrier => format!("`{}`", plain(&self.name)),
            PlaceKind::Shutdown => "the shutdown".to_owned(),
            PlaceKind::Devices => "the exchange of devices".to_owned(),
        }
    }
}
