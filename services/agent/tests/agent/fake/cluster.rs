//! What the fake nodes have in common: the state that real ones would replicate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use tripod_proto::tripod::v1::{BeatSet, ClientBeat, Job, JobSpec, Presence, SetWord};

/// One attempt of a client's call, as a node saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) node: usize,
    pub(crate) method: String,
    pub(crate) stamp: Option<String>,
    pub(crate) job: String,
    pub(crate) lasting: bool,
    pub(crate) encoding: Option<String>,
    /// By a stream of calls.
    pub(crate) by_stream: bool,
    pub(crate) message: Bytes,
}

/// The common state. Nodes wait for its changes.
pub(crate) struct Cluster {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
pub(crate) struct State {
    sessions: u64,
    expired: BTreeSet<u64>,
    replies: BTreeMap<String, Bytes>,
    /// Method of every command that took effect.
    pub(crate) executed: Vec<String>,
    pub(crate) counter: i64,
    pub(crate) attempts: Vec<Attempt>,
    /// Nodes that were asked whether they can serve.
    pub(crate) probes: Vec<usize>,
    pub(crate) batches: Vec<(usize, Vec<ClientBeat>)>,
    /// Digest and count of the set that each agent has offered last, by its session.
    pub(crate) sets: BTreeMap<Bytes, (u64, u32)>,
    /// How many heartbeats of a set were told in each word.
    pub(crate) words: Vec<u32>,
    /// What was told of clients that have sent no heartbeat yet.
    pub(crate) presences: Vec<Presence>,
    /// Whether barriers pass and keys exist.
    pub(crate) open: bool,
    /// What a get is answered.
    pub(crate) value: Bytes,
    pub(crate) job: Option<Job>,
    pub(crate) members: Vec<String>,
}

impl State {
    /// What becomes of a set.
    pub(crate) fn told_set(&mut self, set: &BeatSet) -> SetWord {
        let is = (set.digest, set.count);
        if !set.members.is_empty() {
            self.sets.insert(set.session.clone(), is);
            return SetWord::Kept;
        }
        if self.sets.get(&set.session) != Some(&is) {
            return SetWord::Unknown;
        }
        self.words.push(set.made.iter().map(|byte| byte.count_ones()).sum());
        SetWord::Same
    }
}

impl Cluster {
    /// A cluster with the job `train`.
    pub(crate) fn new() -> Arc<Self> {
        let spec = JobSpec { tasks: 2, heartbeat_timeout_ms: 1000, ..JobSpec::default() };
        let job = Job { name: "train".into(), spec: Some(spec), ..Job::default() };
        let state = State { job: Some(job), ..State::default() };
        Arc::new(Self { state: Mutex::new(state), changed: watch::Sender::new(()) })
    }

    /// Changes the state, and wakes who waits for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock());
        self.changed.send_replace(());
        changed
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    pub(crate) async fn until(&self, mut holds: impl FnMut(&State) -> bool) {
        let mut changes = self.changed.subscribe();
        while !self.look(&mut holds) {
            changes.changed().await.expect("the sender is here");
        }
    }

    pub(crate) fn open_session(&self) -> u64 {
        self.change(|state| {
            state.sessions += 1;
            state.sessions
        })
    }

    /// Forgets all sessions of now.
    pub(crate) fn expire_sessions(&self) {
        self.change(|state| state.expired = (1..=state.sessions).collect());
    }

    /// Executes a command once for each stamp; `None`: its session is not known.
    pub(crate) fn execute(
        &self,
        method: &str,
        stamp: Option<&str>,
        effect: impl FnOnce(&mut State) -> Bytes,
    ) -> Option<Bytes> {
        self.change(|state| {
            let stamp = stamp.expect("commands are stamped");
            let session: u64 = stamp.split('.').next()?.parse().ok()?;
            if session == 0 || session > state.sessions || state.expired.contains(&session) {
                return None;
            }
            if let Some(reply) = state.replies.get(stamp) {
                return Some(reply.clone());
            }
            state.executed.push(method.to_owned());
            let reply = effect(state);
            state.replies.insert(stamp.to_owned(), reply.clone());
            Some(reply)
        })
    }

    /// The attempts at one method so far.
    pub(crate) fn attempts(&self, method: &str) -> Vec<Attempt> {
        self.look(|state| state.attempts.iter().filter(|attempt| attempt.method == method).cloned().collect())
    }

    /// How often a command of this method took effect.
    pub(crate) fn executions(&self, method: &str) -> usize {
        self.look(|state| state.executed.iter().filter(|executed| *executed == method).count())
    }
}
