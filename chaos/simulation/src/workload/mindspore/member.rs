//! One node of a cluster of the parameter server.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;
use tripod_checkers::history::{Act, ClusterRole, Rank, Reply};
use tripod_proto::mindspore::ps_core::{ClusterState, HeartbeatRespMessage};

use super::ear::Heard;
use super::gang::{Call, Gang, LOOK_PAUSE, Numbers};
use super::process::{Process, Whose};
use super::way::outcome;
use crate::client::Client;
use crate::witness::now;

/// What each node does until all finish.
const STEPS: usize = 12;
/// Events in a row: more than one is under way then.
const BURST_MAX: usize = 4;
const REST_MAX_MS: u64 = 150;
/// Between two attempts.
const AGAIN_PAUSE_MS: u64 = 200;
const BEAT_EVERY: Duration = Duration::from_millis(400);
/// A scheduler that has not answered for so long is gone, and the process ends: before it is held for dead itself.
const SCHEDULER_PATIENCE: Duration = Duration::from_secs(4);
/// How long everybody may take to come, and to be told so: as long as it takes to find somebody dead when all leaders have
/// been replaced, and an election.
pub(super) const FORM_PATIENCE: Duration = Duration::from_secs(40);
/// How long a node waits for others that have something to do; one of them may wait for a place.
const BUSY_PATIENCE: Duration = Duration::from_secs(60);
/// How long it waits for what others were answered to have told; what has not come by then is missed.
const EVENTS_PATIENCE: Duration = Duration::from_secs(25);
/// How long it tries to finish, and then waits to be told that all have finished.
const FINISH_PATIENCE: Duration = Duration::from_secs(30);
/// How long one that leaves waits to be told of those who stay.
const LEAVE_PATIENCE: Duration = Duration::from_secs(3);

/// What happens to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Stays,
    /// It begins as another process in the middle.
    Restarts,
    /// It dies in the middle, and another node comes in its place.
    Dies,
    /// It comes when a node has died, in its place.
    Replaces,
    /// It comes when the cluster scales out. If that is taken back there is no place for it any more.
    IsAdded,
}

/// Why a process cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// It is at its end, or has lost its scheduler. The node still has its place.
    Process,
    /// The node does not belong to the cluster any more. Whoever comes in its place may have another rank, and is another node.
    Place,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It has finished with all others.
    Finished,
    Died,
    Left,
    /// It found no place, or lost its own.
    Lost,
}

pub(super) struct Member {
    whose: Whose,
    gang: Rc<Gang>,
    numbers: Numbers,
    client: Client,
    part: Part,
    process: Process,
    is_busy: bool,
    /// What was told before this process knew of the others.
    before: BTreeSet<u32>,
    /// Of how many scalings it knows that it has registered for.
    scales: u64,
    last_beat: Instant,
    last_answer: Instant,
    lost: Option<Lost>,
    /// It was answered that it has nothing left to do.
    has_finished: bool,
}

/// Plays a node; what is left of it, which still answers.
///
/// # Errors
/// It cannot listen.
pub(super) async fn run(
    whose: Whose,
    gang: Rc<Gang>,
    (numbers, mut client): (Numbers, Client),
    part: Part,
) -> io::Result<Option<Process>> {
    if matches!(part, Part::Replaces | Part::IsAdded) && !gang.called().await {
        gang.idle();
        return Ok(None);
    }
    let process = begin(&whose, &numbers, &mut client).await?;
    let (last_beat, last_answer) = (Instant::now(), Instant::now());
    let mut member = Member {
        whose,
        gang,
        numbers,
        client,
        part,
        process,
        is_busy: true,
        before: BTreeSet::new(),
        scales: 0,
        last_beat,
        last_answer,
        lost: None,
        has_finished: false,
    };
    let end = member.live().await;
    member.idle();
    if part == Part::Dies {
        // Who comes in its place comes if it died, and not if it was lost before.
        let is_dead = matches!(end, Ok(End::Died));
        member.gang.call.set(if is_dead { Call::Come } else { Call::StayAway });
    }
    let end = end?;
    let witness = &member.client.witness;
    witness.note(now(), "ms", format_args!("{} has ended: {end:?}", member.process.scribe.node));
    if end == End::Finished {
        witness.count("nodes of MindSpore that finished");
        return Ok(Some(member.process));
    }
    member.process.scribe.note(Act::End);
    member.gang.ranks.borrow_mut().remove(&member.whose.name);
    if end == End::Left {
        member.gang.has_left.set(true);
    }
    Ok(None)
}

async fn begin(whose: &Whose, numbers: &Numbers, client: &mut Client) -> io::Result<Process> {
    let place = client.dice.random_range(0..whose.setting.sites.len());
    Process::begin(whose, numbers.port(), place).await
}

impl Member {
    async fn live(&mut self) -> io::Result<End> {
        if !self.join().await? {
            return Ok(End::Lost);
        }
        for step in 0..STEPS {
            if self.process.heard().is_leaving {
                return Ok(self.leave().await);
            }
            match self.part {
                Part::Dies if step == STEPS / 2 => return Ok(End::Died),
                Part::Restarts if step == STEPS / 2 => self.lost = Some(Lost::Process),
                _ => {}
            }
            if self.lost.is_some() && !self.begin_again().await? {
                return Ok(End::Lost);
            }
            if self.client.dice.random_ratio(1, 2) {
                let mut left = self.client.dice.random_range(1..=BURST_MAX);
                while left > 0 && self.tell().await {
                    left -= 1;
                }
            }
            self.tend().await;
            self.client.pause(REST_MAX_MS).await;
        }
        self.idle();
        self.finish().await
    }

    fn idle(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            self.gang.idle();
        }
    }

    /// Until it has a place and knows of the others.
    async fn join(&mut self) -> io::Result<bool> {
        let (deadline, settled) = (Instant::now() + FORM_PATIENCE, self.client.settled());
        while Instant::now() < deadline {
            if self.lost.is_some() && !self.renew().await? {
                return Ok(false);
            }
            if !self.register().await {
                self.client.pause(AGAIN_PAUSE_MS).await;
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if self.wait(left, |_, heard| heard.has_list).await {
                self.before.clone_from(&self.gang.told.borrow());
                self.gang.formed.borrow_mut().insert(self.whose.name.clone());
                return Ok(true);
            }
        }
        if settled {
            let what = format!("{}: not {FORM_PATIENCE:?} after it came", self.process.scribe.node);
            self.client.witness.broken(now(), "nodes of MindSpore come together", what);
        }
        Ok(false)
    }

    /// As another process, at another port, of which the one before knows nothing.
    async fn begin_again(&mut self) -> io::Result<bool> {
        Ok(self.renew().await? && self.join().await?)
    }

    /// Whether it may: a place that scaling out had made may be gone.
    async fn renew(&mut self) -> io::Result<bool> {
        if self.part == Part::IsAdded {
            return Ok(false);
        }
        self.client.witness.count("nodes of MindSpore that began again");
        self.process.scribe.note(Act::End);
        if self.lost == Some(Lost::Place) {
            self.gang.ranks.borrow_mut().remove(&self.whose.name);
            self.whose.name.push('+');
        }
        self.process = begin(&self.whose, &self.numbers, &mut self.client).await?;
        (self.scales, self.lost, self.last_answer) = (0, None, Instant::now());
        Ok(true)
    }

    /// Whether it has a place.
    async fn register(&mut self) -> bool {
        let (scribe, process) = (self.process.scribe.clone(), &mut self.process);
        let made = async { outcome(process.register().await.map(|rank| Reply::Rank(Rank(rank)))) };
        let told = scribe.record(Act::Join, made).await;
        if told.acknowledged() {
            self.last_answer = Instant::now();
            if self.whose.role == ClusterRole::Server {
                self.gang.ranks.borrow_mut().insert(self.whose.name.clone(), self.process.rank());
            }
        }
        told.acknowledged()
    }

    /// Once: sent again, it would be another event. Whether it was answered.
    async fn tell(&mut self) -> bool {
        let event = self.numbers.event();
        let (scribe, process) = (self.process.scribe.clone(), &mut self.process);
        let made = async { outcome(process.event(event).await.map(|()| Reply::Done)) };
        let told = scribe.record(Act::Tell { event }, made).await;
        if told.acknowledged() {
            self.last_answer = Instant::now();
            self.gang.told.borrow_mut().insert(event);
        }
        told.acknowledged()
    }

    /// Does what it has been told to do, and beats.
    async fn tend(&mut self) {
        self.beat().await;
        let heard = self.process.heard();
        if !heard.is_leaving && heard.scales > self.scales && self.register().await {
            self.scales = heard.scales;
        }
        if let Some(scaling) = heard.owes {
            self.beat().await;
            // What was not noted is said once more.
            drop(self.process.done(scaling).await);
        }
    }

    /// If it is time. One that was not answered is repeated with the next look, over another connection.
    async fn beat(&mut self) {
        if self.last_beat.elapsed() < BEAT_EVERY {
            return;
        }
        let knows_others = self.process.heard().has_list;
        let Ok(told) = self.process.beat().await else {
            if self.last_answer.elapsed() >= SCHEDULER_PATIENCE {
                self.lost = self.lost.or(Some(Lost::Process));
            }
            return;
        };
        (self.last_beat, self.last_answer) = (Instant::now(), Instant::now());
        // What nobody knows is told nothing of the cluster.
        let is_stranger = knows_others && told == HeartbeatRespMessage::default();
        let is_out = is_stranger || told.cluster_state() == ClusterState::NodeTimeout;
        // Of one that has finished that would be a mistake, which the checker tells if nobody told it of the end.
        if is_out && !self.has_finished {
            self.lost = Some(Lost::Place);
        }
    }

    /// Tends to everything until something is so; whether it came to be.
    async fn wait(&mut self, patience: Duration, is_so: impl Fn(&Self, &Heard) -> bool) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let heard = self.process.heard();
            if is_so(self, &heard) {
                return true;
            }
            if self.lost.is_some() || Instant::now() >= deadline {
                return false;
            }
            self.tend().await;
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Waits until something is so, but not longer than that, as another process when this one is lost. `false`: it has no
    /// place any more.
    async fn until(&mut self, patience: Duration, is_so: impl Fn(&Self, &Heard) -> bool) -> io::Result<bool> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.wait(left, &is_so).await || Instant::now() >= deadline {
                return Ok(true);
            }
            if !self.begin_again().await? {
                return Ok(false);
            }
        }
    }

    /// When nobody has anything left to do, and it has heard all of it.
    async fn finish(&mut self) -> io::Result<End> {
        let all_idle = |member: &Self, heard: &Heard| heard.is_leaving || member.gang.busy.get() == 0;
        let all_heard = |member: &Self, heard: &Heard| {
            let told = member.gang.told.borrow();
            let has = |event: &u32| member.before.contains(event) || heard.events.contains(event);
            heard.is_leaving || told.iter().all(has)
        };
        if !self.until(BUSY_PATIENCE, all_idle).await? || !self.until(EVENTS_PATIENCE, all_heard).await? {
            return Ok(End::Lost);
        }
        if self.process.heard().is_leaving {
            return Ok(self.leave().await);
        }
        let is_told = self.say_finish().await
            && self.wait(FINISH_PATIENCE, |_, heard| heard.has_finished || heard.is_leaving).await;
        if self.process.heard().is_leaving {
            // It said that it has nothing left to do, and is told nothing any more.
            return Ok(End::Left);
        }
        // Who is told nothing in a cluster of which all have finished is missed by the checker.
        Ok(if is_told || self.lost.is_none() { End::Finished } else { End::Lost })
    }

    /// Until it is answered.
    async fn say_finish(&mut self) -> bool {
        let deadline = Instant::now() + FINISH_PATIENCE;
        loop {
            let (scribe, process) = (self.process.scribe.clone(), &mut self.process);
            let made = async { outcome(process.finish().await.map(|()| Reply::Done)) };
            if scribe.record(Act::Finish, made).await.acknowledged() {
                (self.has_finished, self.last_answer) = (true, Instant::now());
                return true;
            }
            self.beat().await;
            if self.lost.is_some() || Instant::now() >= deadline {
                return false;
            }
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
    }

    /// It was told that it will not be among those who stay.
    async fn leave(&mut self) -> End {
        self.wait(LEAVE_PATIENCE, |_, heard| heard.owes.is_some()).await;
        self.tend().await;
        self.say_finish().await;
        End::Left
    }
}
