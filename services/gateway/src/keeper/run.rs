//! The loop that looks at the timers and proposes what has run out.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tripod_raft::Leadership;
use tripod_state::ids::{Incarnation, JobId, TaskId, Term, TimeMs};
use tripod_state::job::Poll;
use tripod_state::level::Rule;
use tripod_state::task::Phase;
use tripod_state::{Command, Envelope, Scope, State, barrier, session, task};

use super::barriers::{Instance, instance};
use super::tasks::{Connected, Due, Silent};
use super::{Keeper, Memory, WhyLost, meetings};
use crate::awake::Awake;
use crate::backend::{Replica, look};
use crate::clock::millis;
use crate::node_events::Kind;

const TICK: Duration = Duration::from_millis(50);
/// A proposal without an answer by then is made again while its reason holds.
const PROPOSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often idle sessions are looked for.
const SESSIONS_EVERY: Duration = Duration::from_secs(60);
/// How long a node's session may be idle, and below feature level 5 a client's.
const SESSION_IDLE_MS: u64 = 24 * 3600 * 1000;
/// How long a client's session may be idle: longer than any call is tried, and no longer than it takes to notice that a
/// client has gone.
const CLIENT_SESSION_IDLE_MS: u64 = 15 * 60 * 1000;

/// Runs until the backend is gone.
pub(super) async fn run(keeper: Arc<Keeper>, mut leadership: watch::Receiver<Leadership>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The node may have taken long to start; that was no pause.
    keeper.memory.lock().awake = Awake::default();
    let mut sessions_due = Instant::now() + SESSIONS_EVERY;
    loop {
        ticks.tick().await;
        let Some(backend) = keeper.backend.get().and_then(Weak::upgrade) else { return };
        keeper.wake();
        let now = *leadership.borrow_and_update();
        keeper.note_leader(now);
        let Some(led) = keeper.follow(backend.as_ref(), now) else { continue };
        keeper.arm_fresh(backend.as_ref());
        keeper.look_at_tasks(&backend, led);
        keeper.expire_barriers(&backend, led);
        keeper.count_barriers(backend.as_ref());
        if Instant::now() >= sessions_due {
            sessions_due = Instant::now() + SESSIONS_EVERY;
            keeper.expire_sessions(&backend, led);
            keeper.forget_idle_sets();
        }
    }
}

impl Keeper {
    /// Notes since when that leader leads.
    fn note_leader(&self, now: Leadership) {
        let mut memory = self.memory.lock();
        let named = now.leader.map(|leader| (leader, now.term));
        let before = memory.named.map(|(named, _)| named);
        if before == named {
            return;
        }
        memory.named = named.map(|named| (named, Instant::now()));
        drop(memory);
        let (kind, of, text) = match (named, before) {
            (Some((leader, term)), _) => (Kind::LeaderKnown, leader, format!("leads in term {}", term.0)),
            (None, Some((leader, term))) => {
                (Kind::LeaderGone, leader, format!("is heard as leader of term {} no more", term.0))
            }
            (None, None) => return,
        };
        self.events.note(kind, (&format!("node {}", of.0), text), 1);
    }

    /// Begins or ends leading. Gives the term in which this node leads, if it does.
    fn follow(&self, backend: &dyn Replica, now: Leadership) -> Option<Term> {
        let led = now.ready_here.then_some(now.term);
        let mut memory = self.memory.lock();
        if memory.led == led {
            return led;
        }
        // What happens from here on is noted, so that nothing falls between this and the look at the
        // state; a task that is noted twice is armed once.
        memory.led = led;
        memory.tasks.clear();
        memory.barriers.clear();
        memory.meetings.clear();
        memory.sets.clear();
        memory.fresh.clear();
        self.leading.store(led.is_some(), Ordering::Release);
        drop(memory);
        if let Some(term) = led {
            self.arm_all(backend, term);
        }
        led
    }

    /// Gives every connected task and every open barrier its full time, from now.
    fn arm_all(&self, backend: &dyn Replica, term: Term) {
        let (tasks, barriers) = look(backend, |state| (state.connected_tasks(), state.open_barriers()));
        let mut memory = self.memory.lock();
        let now = memory.awake.now();
        for (job, task, incarnation, silence) in tasks {
            let from = now.plus(self.options.grace);
            memory.tasks.arm(Connected { job, task, incarnation }, from, silence);
        }
        for open in barriers {
            memory.meetings.found(&open);
            let deadline = now.plus(open.timeout);
            memory.barriers.arm(open.job, open.barrier, open.counter, deadline);
        }
        tracing::info!(
            term = term.0,
            tasks = memory.tasks.len(),
            barriers = memory.barriers.len(),
            "timers armed"
        );
    }

    /// Notices a pause of this process.
    fn wake(&self) {
        let mut memory = self.memory.lock();
        if let Some(pause) = memory.awake.tick() {
            // Nobody waited for one that followed.
            if memory.led.is_some() {
                memory.paused = Some((pause, Instant::now()));
            }
            let text = format!("this process did not run for {:.1} s", pause.as_secs_f64());
            self.events.note(Kind::Paused, ("", text), 1);
            tracing::warn!(pause_ms = millis(pause), "this process did not run; all timers are put off");
        }
    }

    /// Arms the tasks that connected since the last tick.
    fn arm_fresh(&self, backend: &dyn Replica) {
        let fresh = std::mem::take(&mut self.memory.lock().fresh);
        if fresh.is_empty() {
            return;
        }
        let silences = look(backend, |state| {
            let silence = |who: &Connected| state.silence(who.job, who.task, who.incarnation, None);
            fresh.iter().map(|(who, _)| silence(who)).collect::<Vec<_>>()
        });
        let mut memory = self.memory.lock();
        for ((who, connected), silence) in fresh.into_iter().zip(silences) {
            // Without one the job is gone again.
            if let Some(silence) = silence {
                memory.tasks.connected(who, connected, silence);
            }
        }
    }

    /// Suspects the tasks that missed a beat, and proposes the end of those whose time is up.
    fn look_at_tasks(self: &Arc<Self>, backend: &Arc<dyn Replica>, led: Term) {
        let due = {
            let mut memory = self.memory.lock();
            let now = memory.awake.now();
            memory.tasks.take_due(now)
        };
        if due == Due::default() {
            return;
        }
        let (overdue, silent, told) = look(backend.as_ref(), |state| {
            let jobs = due.overdue.keys().chain(due.silent.keys());
            let told: BTreeSet<JobId> = jobs.copied().filter(|job| tells(state, *job)).collect();
            (still_connected(state, &due.overdue), still_connected(state, &due.silent), told)
        });
        let mut memory = self.memory.lock();
        if memory.led == Some(led) {
            memory.suspect(&due, &overdue, &silent, &told);
        }
        drop(memory);
        for (job, silent) in silent {
            tracing::info!(job = job.0, tasks = silent.len(), "heartbeat timeout");
            let command = Command::Task(task::Command::Expire { job, silent: silent.clone() });
            let keeper = Arc::clone(self);
            self.propose(backend, led, command, move |memory, replied| {
                if replied {
                    keeper.tally.lost(WhyLost::Silent, silent.len());
                    memory.tasks.acquit(job, &silent);
                } else {
                    let now = memory.awake.now();
                    memory.tasks.put_back(job, &silent, now);
                }
            });
        }
    }

    fn expire_barriers(self: &Arc<Self>, backend: &Arc<dyn Replica>, led: Term) {
        let (due, sweep) = {
            let mut memory = self.memory.lock();
            let now = memory.awake.now();
            (memory.barriers.take_due(now), memory.barriers.wants_sweep())
        };
        if due.is_empty() && !sweep {
            return;
        }
        let open: BTreeSet<Instance> =
            look(backend.as_ref(), State::open_barriers).into_iter().map(instance).collect();
        if sweep {
            self.memory.lock().barriers.sweep(&open);
        }
        for due in due.into_iter().filter(|due| open.contains(due)) {
            let (job, barrier, counter) = due.clone();
            let command = Command::Barrier(barrier::Command::Expire { job, barrier, counter });
            self.propose(backend, led, command, move |memory, replied| {
                if !replied {
                    let now = memory.awake.now();
                    memory.barriers.put_back(due, now);
                }
            });
        }
    }

    /// Counts the barriers that have ended since the last tick.
    fn count_barriers(&self, backend: &dyn Replica) {
        loop {
            let changed = self.memory.lock().meetings.take_changed();
            if changed.is_empty() {
                return;
            }
            let ended = look(backend, |state| meetings::ended(changed, state));
            let mut memory = self.memory.lock();
            for ended in &ended {
                self.tally.barrier_ended(ended.ending, ended.waited);
                memory.meetings.forget(ended);
            }
        }
    }

    fn expire_sessions(self: &Arc<Self>, backend: &Arc<dyn Replica>, led: Term) {
        let idle_for = |idle_ms| TimeMs((self.clock)().0.saturating_sub(idle_ms));
        let nodes_before_ms = idle_for(SESSION_IDLE_MS);
        let command = if look(backend.as_ref(), |state| Rule::OwnedSessions.holds_at(state.level())) {
            let clients_before_ms = idle_for(CLIENT_SESSION_IDLE_MS);
            session::Command::ExpireOwned { clients_before_ms, nodes_before_ms }
        } else {
            session::Command::ExpireIdle { before_ms: nodes_before_ms }
        };
        let command = Command::Session(command);
        // The next round is soon enough.
        self.propose(backend, led, command, |_, _| {});
    }

    /// Proposes once, unstamped: apply checks whether the reason still holds. `settle` learns whether
    /// there was a reply, unless leading has ended meanwhile.
    fn propose(
        self: &Arc<Self>,
        backend: &Arc<dyn Replica>,
        led: Term,
        command: Command,
        settle: impl FnOnce(&mut Memory, bool) + Send + 'static,
    ) {
        let proposal = backend.propose(Envelope { stamp: None, command });
        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            let error = match tokio::time::timeout(PROPOSAL_TIMEOUT, proposal).await {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer in time".into()),
            };
            if let Some(error) = &error {
                tracing::debug!(error, "expiry not proposed");
            }
            let mut memory = keeper.memory.lock();
            if memory.led == Some(led) {
                settle(&mut memory, error.is_none());
            }
        });
    }
}

impl Memory {
    /// Suspects those of the due tasks that are still connected (`overdue`, `silent`), in the jobs
    /// whose tasks are `told`.
    fn suspect(&mut self, due: &Due, overdue: &Silent, silent: &Silent, told: &BTreeSet<JobId>) {
        let now = self.awake.now();
        for (job, tasks) in &due.silent {
            self.tasks.acquit(*job, tasks);
        }
        for job in told {
            if let Some(tasks) = overdue.get(job) {
                self.tasks.accuse(*job, tasks);
            }
            if let Some(tasks) = silent.get(job) {
                self.tasks.convict(*job, tasks, now);
            }
        }
    }
}

/// Those of the tasks that the state still holds for connected: the others left in peace, and need no
/// command.
fn still_connected(state: &State, silent: &Silent) -> Silent {
    let connected = |job: JobId, silent: &[(TaskId, Incarnation)]| {
        let ids: Vec<TaskId> = silent.iter().map(|(task, _)| *task).collect();
        // A fault means that the job is gone.
        let report = state.tasks(Scope { job, service: None }, &ids).ok()?;
        let alive: BTreeSet<_> = report
            .tasks
            .into_iter()
            .filter(|info| info.phase == Phase::Connected)
            .map(|info| (info.task, info.incarnation))
            .collect();
        let silent: Vec<_> = silent.iter().copied().filter(|who| alive.contains(who)).collect();
        (!silent.is_empty()).then_some((job, silent))
    };
    silent.iter().filter_map(|(job, silent)| connected(*job, silent)).collect()
}

/// Whether the tasks of the job learn from the replies to their beats that one of them has died.
fn tells(state: &State, job: JobId) -> bool {
    state.job(job).is_some_and(|job| job.spec.poll == Poll::Release && !job.spec.recoverable)
}
