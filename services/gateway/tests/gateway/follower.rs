//! A node that follows: it forwards to a leader in memory and has a state of its own, which catches
//! up only when it is told to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_gateway::{
    Admin, Future, Gateway, Leadership, MemoryBackend, Options, Parts, ProposeError, Replica, Status,
};
use tripod_raft::{Applied, Hooks, NodeSilence};
use tripod_state::ids::{LogIndex, NodeId, Term};
use tripod_state::{Command, Envelope, State};

pub(crate) struct Follower {
    leader: Arc<MemoryBackend>,
    state: RwLock<State>,
    applied: Arc<watch::Sender<LogIndex>>,
    leadership: watch::Sender<Leadership>,
    hooks: OnceLock<Hooks>,
    /// When it says that the leader last answered it.
    last_contact: Mutex<Option<Instant>>,
    /// What happens after how many more looks at the state.
    meddling: Mutex<Option<(u32, Command)>>,
    /// How many more questions about members it gives no answer to.
    silent: AtomicU32,
}

impl Follower {
    pub(crate) fn start(leader: &Arc<MemoryBackend>, options: Options) -> (Gateway, Arc<Self>) {
        let leadership = Leadership { leader: Some(NodeId(1)), term: Term(1), ready_here: false };
        let parts = Parts::new(options);
        let follower = Arc::new(Self {
            leader: Arc::clone(leader),
            state: RwLock::default(),
            applied: Arc::new(watch::Sender::new(LogIndex(0))),
            leadership: watch::Sender::new(leadership),
            hooks: OnceLock::new(),
            last_contact: Mutex::new(None),
            meddling: Mutex::new(None),
            silent: AtomicU32::new(0),
        });
        assert!(follower.hooks.set(parts.hooks()).is_ok());
        (Gateway::over(Arc::clone(&follower), parts), follower)
    }

    /// Takes over all that the leader has applied.
    pub(crate) fn catch_up(&self) {
        let index = self.leader.applied_index();
        *self.state.write() = self.leader.state();
        self.applied.send_replace(index);
        (self.hooks.get().expect("set at the start").replaced)();
    }
}

impl Follower {
    /// Members give no answer to so many questions, and refuse the next one.
    pub(crate) fn be_silent(&self, times: u32) {
        self.silent.store(times, Ordering::Relaxed);
    }

    /// It is answered now, and has applied so much.
    pub(crate) fn answered(&self, applied: LogIndex) {
        *self.last_contact.lock() = Some(Instant::now());
        self.applied.send_replace(applied);
    }

    /// Between the `looks`-th look at the state from now on, and whatever the looker does next, a
    /// command comes in and is applied here.
    pub(crate) fn meddle_behind(&self, looks: u32, command: Command) {
        *self.meddling.lock() = Some((looks, command));
    }

    fn looked(&self) {
        let due = self.meddling.lock().take_if(|(looks, _)| {
            *looks -= 1;
            *looks == 0
        });
        if let Some((_, command)) = due {
            let proposal = self.leader.propose(Envelope { stamp: None, command });
            proposal.now_or_never().expect("a backend in memory answers at once").expect("it leads");
            self.catch_up();
        }
    }
}

impl Replica for Follower {
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        self.leader.propose(envelope)
    }

    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>> {
        let (barrier, mut applied) = (self.leader.read_barrier(), self.applied.subscribe());
        Box::pin(async move {
            let index = barrier.await?;
            applied.wait_for(|applied| *applied >= index).await.expect("the sender outlives the test");
            Ok(index)
        })
    }

    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>> {
        let mut applied = self.applied.subscribe();
        Box::pin(async move {
            applied.wait_for(|applied| *applied >= index).await.expect("the sender outlives the test");
            Ok(())
        })
    }

    fn read(&self, look: &mut dyn FnMut(&State)) {
        look(&self.state.read());
        self.looked();
    }

    fn applied_index(&self) -> LogIndex {
        *self.applied.borrow()
    }

    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    fn last_contact(&self) -> Option<Instant> {
        *self.last_contact.lock()
    }

    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>> {
        self.leader.ask_leader(question)
    }

    fn ask_node(&self, _: NodeId, _: Bytes, _: Duration) -> Future<Result<Bytes, NodeSilence>> {
        let before = self.silent.load(Ordering::Relaxed);
        self.silent.store(before.saturating_sub(1), Ordering::Relaxed);
        let error =
            if before > 0 { NodeSilence::Silent } else { NodeSilence::Refuses("it was asked".into()) };
        Box::pin(std::future::ready(Err(error)))
    }
}

impl Admin for Follower {
    fn status(&self) -> Status {
        self.leader.status()
    }
}
