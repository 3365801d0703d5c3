//! A maker of frames: looks four times a second whether something was applied, unless it rests, and says once for all viewers
//! what has changed by it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tripod_gateway::{Consistency, Gateway, HeartbeatAges};
use tripod_state::ids::{JobId, LogIndex};
use tripod_state::{Scope, State};

use crate::ui::behind::Behind;
use crate::ui::facts::{cluster, job, jobs};
use crate::ui::frames::{Frame, Latest, Shown};
use crate::ui::pace::Pace;
use crate::ui::past::Past;

/// Between two frames.
const FRAME_EVERY: Duration = Duration::from_millis(250);
/// Between two questions to the leader about a job's heartbeats.
const AGES_EVERY: Duration = Duration::from_secs(2);
/// Between two looks at lists that are shown as a whole.
const LISTS_EVERY: Duration = Duration::from_secs(2);
/// How long a maker works for nobody: a page that is loaded again finds it.
const IDLE: Duration = Duration::from_secs(5);
/// Frames that a viewer may be behind before it gets the whole again.
const BEHIND_MAX: usize = 8;

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Watched {
    Overview,
    Job(String),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Maker {
    latest: Mutex<Latest>,
    /// Of the job that is watched, as the leader last said; for who looks at one of its tasks.
    ages: Mutex<Option<Arc<HeartbeatAges>>>,
    frames: broadcast::Sender<Arc<Frame>>,
}

/// What one maker has in hand.
struct Work {
    gateway: Gateway,
    watched: Watched,
    past: Past,
    ages: Option<Arc<HeartbeatAges>>,
    asked: Option<JoinHandle<Option<HeartbeatAges>>>,
    asked_at: Option<Instant>,
    /// Of the job, as it was last seen.
    job: Option<(JobId, u32)>,
    /// When its lists were last seen.
    lists_at: Option<Instant>,
    leaderless_since: Option<Instant>,
    behind: Behind,
    /// The index of what was last seen, and the log's time there.
    seen: (LogIndex, u64),
}

/// What was found by one look.
pub(crate) struct Looked {
    index: LogIndex,
    now_ms: u64,
    pub(crate) shown: Shown,
    /// Fields that were not looked at and are as they were.
    kept: &'static [&'static str],
    /// How long it kept a core.
    cost: Duration,
}

impl Maker {
    pub(crate) fn new() -> Arc<Self> {
        let frames = broadcast::Sender::new(BEHIND_MAX);
        Arc::new(Self { latest: Mutex::default(), ages: Mutex::default(), frames })
    }

    /// Frames from now on, and the whole before them with its number.
    pub(crate) fn join(&self) -> (broadcast::Receiver<Arc<Frame>>, u64, Bytes) {
        let mut latest = self.latest.lock();
        let frames = self.frames.subscribe();
        let (number, whole) = latest.whole();
        (frames, number, whole)
    }

    /// Whether nobody watches.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.frames.receiver_count() == 0
    }

    /// What was last shown, once there is something.
    pub(crate) fn shown(&self) -> Option<Shown> {
        let latest = self.latest.lock();
        let shown = latest.shown();
        (!shown.fields.is_empty()).then(|| shown.clone())
    }

    /// When the leader last heard the tasks of the job, if it has said so.
    pub(crate) fn ages(&self) -> Option<Arc<HeartbeatAges>> {
        self.ages.lock().clone()
    }

    fn show(&self, shown: Shown, kept: &[&'static str]) {
        let mut latest = self.latest.lock();
        // Nobody may be there to get it.
        let _ = self.frames.send(latest.follow(shown, kept));
    }

    /// Shows the same once more, with how old it is now.
    fn show_again(&self, as_of: Value) {
        let mut latest = self.latest.lock();
        let _ = self.frames.send(latest.again("as_of", as_of));
    }

    /// Makes frames until nobody has watched for a while, and `retired` agrees, or the node ends.
    pub(crate) async fn run(
        self: Arc<Self>,
        gateway: Gateway,
        watched: Watched,
        mut ending: watch::Receiver<bool>,
        retired: impl Fn() -> bool,
    ) {
        let mut pace = Pace::new(matches!(watched, Watched::Job(_)));
        let mut work = Work::new(gateway, watched);
        let mut tick = interval(FRAME_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut heard, mut idle_since) = (false, None);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                _ = ending.changed() => return,
            }
            let now = Instant::now();
            let since = *idle_since.get_or_insert(now);
            if !self.is_unwatched() {
                idle_since = None;
            } else if now.duration_since(since) > IDLE && retired() {
                return;
            }
            heard |= work.hear(now).await;
            work.behind.note(work.gateway.admin().status().committed, now);
            let news = heard || work.gateway.applied_index() != work.seen.0;
            if pace.is_due(news, now)
                && let Some(Looked { shown, kept, cost, .. }) = work.look().await
            {
                let showing = std::time::Instant::now();
                self.show(shown, kept);
                pace.looked(cost + showing.elapsed(), now);
                self.ages.lock().clone_from(&work.ages);
                heard = false;
            } else if pace.is_silent(now) {
                self.show_again(work.as_of());
                pace.said(now);
            }
        }
    }
}

impl Work {
    fn new(gateway: Gateway, watched: Watched) -> Self {
        Self {
            gateway,
            watched,
            past: Past::default(),
            ages: None,
            asked: None,
            asked_at: None,
            job: None,
            lists_at: None,
            leaderless_since: None,
            behind: Behind::default(),
            seen: (LogIndex(0), 0),
        }
    }

    /// Has the leader asked about heartbeats when it is time, and takes its answer when it is there: then `true`.
    async fn hear(&mut self, now: Instant) -> bool {
        let mut heard = false;
        if self.asked.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(asked) = self.asked.take()
        {
            self.ages = asked.await.ok().flatten().map(Arc::new);
            heard = true;
        }
        let due = self.asked_at.is_none_or(|at| now.duration_since(at) >= AGES_EVERY);
        if let Some((job, tasks)) = self.job
            && due
            && self.asked.is_none()
        {
            let gateway = self.gateway.clone();
            self.asked = Some(tokio::spawn(async move { gateway.heartbeat_ages(job, tasks).await }));
            self.asked_at = Some(now);
        }
        heard
    }

    /// What there is to show. `None`: too many look just now.
    async fn look(&mut self) -> Option<Looked> {
        let mut looked = match self.watched.clone() {
            Watched::Overview => overview(&self.gateway).await?,
            Watched::Job(name) => self.look_at_job(name).await?,
        };
        self.seen = (looked.index, looked.now_ms);
        looked.shown.fields.insert("as_of", self.as_of());
        Some(looked)
    }

    /// Of which moment that is which was last seen.
    fn as_of(&mut self) -> Value {
        let leader = self.gateway.leadership().borrow().leader;
        let since = leader.is_none().then(|| *self.leaderless_since.get_or_insert_with(Instant::now));
        self.leaderless_since = since;
        let (index, now_ms) = self.seen;
        json!({
            "index": index.0,
            "now_ms": now_ms,
            "behind_ms": milliseconds(self.behind.of(index, Instant::now())),
            "node": self.gateway.admin().status().node.0,
            "leader": leader.map(|leader| leader.0),
            "leaderless_ms": since.map(|at| milliseconds(at.elapsed())),
        })
    }

    async fn look_at_job(&mut self, name: String) -> Option<Looked> {
        let ages = self.ages.clone();
        let are_due = self.lists_at.is_none_or(|at| at.elapsed() >= LISTS_EVERY);
        let known = self.job.map(|(id, _)| id);
        let look = move |index: LogIndex, state: &State| {
            let begun = std::time::Instant::now();
            // Those of another job of that name are others.
            let lists = are_due || state.job_named(&name) != known;
            let seen = job::look(state, &name, ages.as_deref(), lists);
            let scope = seen.as_ref().map(|seen| Scope { job: seen.id, service: None });
            let failed = scope.and_then(|scope| state.barriers(scope, 0).ok()).unwrap_or_default();
            (index, state.now_ms().0, seen, failed, begun.elapsed())
        };
        let (index, now_ms, seen, failed, cost) =
            self.gateway.read_aside(Consistency::Local, look).await.ok()?;
        let Some(seen) = seen else {
            self.job = None;
            let fields = [("gone", json!(true))].into_iter().collect();
            let shown = Shown { fields, ..Shown::default() };
            return Some(Looked { index, now_ms, shown, kept: &[], cost });
        };
        if self.job.is_none_or(|(id, _)| id != seen.id) {
            (self.past, self.ages) = (Past::default(), None);
        }
        self.job = Some((seen.id, seen.tasks));
        self.past.note(now_ms, &seen.gatherings, seen.all_gatherings, &failed);
        let mut shown = seen.shown;
        if !seen.lists {
            return Some(Looked { index, now_ms, shown, kept: &job::LISTS, cost });
        }
        self.lists_at = Some(Instant::now());
        shown.fields.insert("curves", self.past.curves(&seen.gatherings));
        shown.fields.insert("past", self.past.ended());
        Some(Looked { index, now_ms, shown, kept: &[], cost })
    }
}

fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The cluster and its jobs.
pub(crate) async fn overview(gateway: &Gateway) -> Option<Looked> {
    let node = gateway.clone();
    let look = move |index: LogIndex, state: &State| {
        let begun = std::time::Instant::now();
        let fields = [("cluster", cluster::look(&node, state)), ("jobs", jobs::list(state))];
        let shown = Shown { fields: fields.into_iter().collect(), ..Shown::default() };
        Looked { index, now_ms: state.now_ms().0, shown, kept: &[], cost: begun.elapsed() }
    };
    gateway.read_aside(Consistency::Local, look).await.ok()
}
