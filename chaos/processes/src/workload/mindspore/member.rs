//! One node of a cluster of the parameter server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::time::Instant;
use tripod_checkers::history::{Act, Rank, Reply};

use super::life::{Heard, Life, Whose};
use super::server::Gang;
use super::{AGAIN_PAUSE, BEAT_EVERY, FORM_PATIENCE};

/// What each node does until all finish.
const STEPS: usize = 12;
/// Events in a row: more than one is under way then.
const BURST_MAX: usize = 4;
const REST_MAX_MS: u64 = 150;
/// How long a node waits for what others were answered to have told; what has not come by then is missed.
const EVENTS_PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for the others, and to be told that all have finished.
const FINISH_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Member {
    whose: Whose,
    gang: Arc<Gang>,
    random: StdRng,
    life: Life,
    place: usize,
    /// What was told before this process knew of the others.
    before: BTreeSet<u32>,
    last_beat: Instant,
}

impl Member {
    /// Plays the node; what is left of it, which still answers.
    ///
    /// # Errors
    /// It cannot listen.
    pub(super) async fn run(
        whose: Whose,
        gang: Arc<Gang>,
        place: usize,
        restarts: bool,
    ) -> anyhow::Result<Life> {
        let random = whose.setting.random(whose.id);
        let life = Life::begin(&whose, place).await?;
        let (before, last_beat) = (BTreeSet::new(), Instant::now());
        let mut member = Self { whose, gang, random, life, place, before, last_beat };
        let done = member.live(restarts).await;
        // Nobody waits for a node that has nothing to tell.
        if !matches!(done, Ok(true)) {
            member.gang.busy.send_modify(|busy| *busy = busy.saturating_sub(1));
            // It gives up its place, if it has one: the next cluster needs it.
            let _ = member.life.node.finish().await;
        }
        done?;
        Ok(member.life)
    }

    /// Whether it came to the end of what it has to tell.
    async fn live(&mut self, restarts: bool) -> anyhow::Result<bool> {
        if !self.join().await {
            return Ok(false);
        }
        for step in 0..STEPS {
            if !self.whose.setting.goes_on() {
                break;
            }
            if restarts && step == STEPS / 2 && !self.begin_again().await? {
                return Ok(false);
            }
            if self.random.random_ratio(1, 2) {
                for _ in 0..self.random.random_range(1..=BURST_MAX) {
                    self.tell().await;
                }
            }
            self.beat().await;
            self.whose.setting.rest(&mut self.random, REST_MAX_MS).await;
        }
        self.gang.busy.send_modify(|busy| *busy = busy.saturating_sub(1));
        self.finish().await;
        Ok(true)
    }

    /// Until it has a place and knows of the others.
    async fn join(&mut self) -> bool {
        let deadline = Instant::now() + FORM_PATIENCE;
        loop {
            let pending = self.life.scribe.begin(Act::Join);
            let told = self.life.node.register().await;
            self.life.scribe.end(pending, told.as_ref().map(|rank| Reply::Rank(Rank(*rank))));
            if told.is_ok() {
                break;
            }
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
        let has_list = self.wait(FORM_PATIENCE, |_, heard| heard.has_list).await;
        self.before.clone_from(&self.gang.told.lock());
        has_list
    }

    /// As another process, at another port, of which the one before knows nothing.
    async fn begin_again(&mut self) -> anyhow::Result<bool> {
        self.life.scribe.note(Act::End);
        self.place += 1;
        self.life = Life::begin(&self.whose, self.place).await?;
        Ok(self.join().await)
    }

    /// Once: sent again, it would be another event.
    async fn tell(&mut self) {
        let Ok(event) = u32::try_from(self.whose.setting.fresh()) else { return };
        let pending = self.life.scribe.begin(Act::Tell { event });
        let told = self.life.node.event(event).await;
        if told.is_ok() {
            self.gang.told.lock().insert(event);
        }
        self.life.scribe.end(pending, told.as_ref().map(|()| Reply::Done));
    }

    /// When nobody has anything left to tell, and it has heard all of it.
    async fn finish(&mut self) {
        self.wait(FINISH_PATIENCE, |member, _| *member.gang.busy.borrow() == 0).await;
        self.wait(EVENTS_PATIENCE, |member, heard| {
            member
                .gang
                .told
                .lock()
                .iter()
                .all(|event| member.before.contains(event) || heard.events.contains(event))
        })
        .await;
        let deadline = Instant::now() + FINISH_PATIENCE;
        loop {
            let pending = self.life.scribe.begin(Act::Finish);
            let told = self.life.node.finish().await;
            self.life.scribe.end(pending, told.as_ref().map(|()| Reply::Done));
            if told.is_ok() || Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
        self.wait(FINISH_PATIENCE, |_, heard| heard.has_finished).await;
    }

    /// Beats until something is so; whether it came to be.
    async fn wait(&mut self, patience: Duration, is_so: impl Fn(&Self, &Heard) -> bool) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let heard = self.life.heard.borrow_and_update().clone();
            if is_so(self, &heard) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            self.beat().await;
            // Whichever comes first: what is waited for may be of others.
            let _ = tokio::time::timeout(LOOK_PAUSE, self.life.heard.changed()).await;
        }
    }

    /// If it is time. One that was not answered is repeated with the next look, over another connection.
    async fn beat(&mut self) {
        if self.last_beat.elapsed() >= BEAT_EVERY && self.life.node.beat().await.is_ok() {
            self.last_beat = Instant::now();
        }
    }
}
