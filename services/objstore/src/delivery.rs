//! Objects on their way here: several at a time, each once, from whichever source still has them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tripod_backoff::Backoff;

use crate::fetch::{FetchError, Partial, Wanted};
use crate::ids::ObjectId;
use crate::peers::Peers;
use crate::rounds::{Obstacle, Rounds};
use crate::shelf::{FetchFailure, ReserveError, Shelf, Why};
use crate::table::{Delivery, Life};

/// Rest after a failed attempt.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
/// Sources that are remembered for one object; an order beyond that replaces the oldest.
const SOURCES_MAX: usize = 16;
/// When a place could not be reached for so many rounds, each as long as the patience, or there was no room for so many,
/// those who wait for the object are told that it does not come: three minutes by default. A place whose store has died
/// is given up by the scheduler within seconds, so this is one that lives and that this store does not reach. A network
/// that is cut for some seconds, a store that begins anew, or one that is full until a task ends must not cost anybody a
/// result; and who still waits after minutes wants to know.
pub(crate) const ROUNDS_MAX: u32 = 3;

/// How objects are fetched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How many at a time.
    pub(crate) transfers_max: usize,
    /// How long a source may send nothing.
    pub(crate) stall: Duration,
    /// How long an object is tried without progress.
    pub(crate) patience: Duration,
}

/// Objects on their way to one store.
#[derive(Debug)]
pub(crate) struct Deliveries {
    shelf: Arc<Shelf>,
    peers: Arc<Peers>,
    rules: Rules,
    /// What this store is called in texts.
    here: String,
    slots: Semaphore,
    rounds: Mutex<Rounds>,
    under_way: Mutex<HashMap<ObjectId, UnderWay>>,
}

#[derive(Debug)]
struct UnderWay {
    life: Life,
    sources: Arc<Sources>,
    task: AbortHandle,
}

/// Where one object can be had.
#[derive(Debug, Default)]
struct Sources {
    addresses: Mutex<VecDeque<String>>,
    added: Notify,
}

impl Sources {
    fn add(&self, address: &str) {
        let mut addresses = self.addresses.lock();
        if addresses.iter().any(|known| known == address) {
            return;
        }
        // The newest order knows best, after the attempt that is under way.
        addresses.push_front(address.to_owned());
        addresses.truncate(SOURCES_MAX);
        drop(addresses);
        self.added.notify_one();
    }

    fn first(&self) -> Option<String> {
        self.addresses.lock().front().cloned()
    }

    fn drop_source(&self, address: &str) {
        self.addresses.lock().retain(|known| known != address);
    }

    /// Puts a source behind the others.
    fn demote(&self, address: &str) {
        let mut addresses = self.addresses.lock();
        if let Some(place) = addresses.iter().position(|known| known == address) {
            let demoted = addresses.remove(place);
            addresses.extend(demoted);
        }
    }
}

impl Deliveries {
    pub(crate) fn new(shelf: Arc<Shelf>, peers: Arc<Peers>, rules: Rules, here: String) -> Arc<Self> {
        let slots = Semaphore::new(rules.transfers_max);
        let (rounds, under_way) = (Mutex::default(), Mutex::default());
        Arc::new(Self { shelf, peers, rules, here, slots, rounds, under_way })
    }

    /// An order to fetch an object. Returns at once. Of an object that is under way, another address is where it is
    /// tried next if the present source fails.
    pub(crate) fn order(self: &Arc<Self>, id: ObjectId, address: &str) {
        let mut under_way = self.under_way.lock();
        match self.shelf.deliver(id) {
            Delivery::Present => {}
            Delivery::UnderWay => {
                if let Some(delivery) = under_way.get(&id) {
                    delivery.sources.add(address);
                }
            }
            Delivery::Begin(life) => {
                let sources = Arc::<Sources>::default();
                sources.add(address);
                let task = tokio::spawn(Arc::clone(self).run(id, life, Arc::clone(&sources)));
                let entry = UnderWay { life, sources, task: task.abort_handle() };
                // One that was given up has removed itself, or was deallocated and must end.
                if let Some(earlier) = under_way.insert(id, entry) {
                    earlier.abort();
                }
            }
        }
    }

    /// The object is not wanted any more.
    pub(crate) fn cancel(&self, id: ObjectId) {
        self.rounds.lock().forget(id);
        if let Some(delivery) = self.under_way.lock().remove(&id) {
            delivery.abort();
        }
    }

    /// Ends everything.
    pub(crate) fn cancel_all(&self) {
        for (_, delivery) in self.under_way.lock().drain() {
            delivery.abort();
        }
    }

    async fn run(self: Arc<Self>, id: ObjectId, life: Life, sources: Arc<Sources>) {
        let wanted = Wanted { shelf: Arc::clone(&self.shelf), id, life, stall: self.rules.stall };
        let outcome = self.bring(&wanted, &sources).await;
        let mut under_way = self.under_way.lock();
        let is_known = under_way.get(&id).is_some_and(|delivery| delivery.life == life);
        if is_known {
            under_way.remove(&id);
        }
        // Under this lock, so that an order that comes now begins anew instead of adding a source in vain.
        match outcome {
            Outcome::Kept(obstacle, why) if is_known => self.kept_from_coming(id, life, &obstacle, &why),
            Outcome::GivenUp(why) if is_known => {
                self.shelf.abandon(id, life);
                self.shelf.report_failure(id, why);
            }
            Outcome::Over if is_known => {
                self.shelf.abandon(id, life);
                self.rounds.lock().forget(id);
            }
            _ => self.shelf.abandon(id, life),
        }
    }

    /// A round has ended, and that kept the object from coming.
    fn kept_from_coming(&self, id: ObjectId, life: Life, obstacle: &Obstacle, error: &str) {
        let mut rounds = self.rounds.lock();
        if rounds.failed(id, obstacle) < ROUNDS_MAX {
            self.shelf.abandon(id, life);
            return self.shelf.report_failure(id, FetchFailure::Unfinished);
        }
        rounds.forget(id);
        let (here, patience_s) = (&self.here, self.rules.patience.as_secs_f64());
        let tried = format!("in {ROUNDS_MAX} rounds of {patience_s} s, the last time because: {error}");
        let why = match obstacle {
            Obstacle::Source(address) => {
                let next = "see whether the one reaches the other";
                let text =
                    format!("{here} could not fetch it from the one at {address} {tried}; next: {next}");
                Why::Unreachable(text.into())
            }
            Obstacle::NoSpace => Why::Full(format!("{here} could not take it {tried}").into()),
        };
        tracing::warn!(object = %id, %why, "those who wait for an object are told that it does not come");
        self.shelf.give_up(id, life, why);
    }

    async fn bring(&self, wanted: &Wanted, sources: &Sources) -> Outcome {
        let id = wanted.id;
        let mut partial: Option<Partial> = None;
        let mut backoff = BACKOFF;
        let mut progress = Instant::now();
        let mut most = None;
        let mut obstacles = Obstacles::default();
        while progress.elapsed() < self.rules.patience {
            let Some(address) = sources.first() else {
                // Nobody is known to have it: the scheduler orders again when it finds out, and has it made again if
                // nobody has it.
                if let Some(source) = obstacles.absent.take() {
                    wanted.shelf.report_failure(id, FetchFailure::Absent { source });
                }
                let left = self.rules.patience.saturating_sub(progress.elapsed());
                _ = tokio::time::timeout(left, sources.added.notified()).await;
                continue;
            };
            let before = partial.as_ref().map(Partial::verified_bytes);
            let outcome = match obstacles.look_for_room(&wanted.shelf).await {
                Ok(()) => {
                    let Ok(_slot) = self.slots.acquire().await else { return Outcome::Over };
                    wanted.fetch(&self.peers, &address, &mut partial).await
                }
                Err(full) => Err(FetchError::Reserve(full)),
            };
            let error = match outcome {
                Ok(()) => return Outcome::Over,
                Err(error) => error,
            };
            tracing::debug!(object = %id, source = address, %error, "an attempt to fetch an object failed");
            match error {
                FetchError::Unwanted => return Outcome::Over,
                // Not put behind the others: two sources of two objects would take turns for ever. A peer that
                // says so to who asks from the beginning is no such source.
                FetchError::Differs if before > Some(0) => continue,
                FetchError::TooLarge(size_bytes) => {
                    sources.drop_source(&address);
                    if sources.first().is_none() {
                        tracing::warn!(object = %id, size_bytes, "an object is larger than this store");
                        wanted.shelf.refuse(id, wanted.life, size_bytes);
                        return Outcome::Over;
                    }
                }
                error => obstacles.note(sources, address, error),
            }
            let now = partial.as_ref().map(Partial::verified_bytes);
            if now > most {
                (most, progress) = (now, Instant::now());
                backoff.reset();
            }
            if wanted.shelf.check_current(id, wanted.life).is_err() {
                return Outcome::Over;
            }
            _ = tokio::time::timeout(backoff.pause(), sources.added.notified()).await;
        }
        let patience_s = self.rules.patience.as_secs_f64();
        tracing::warn!(object = %id, patience_s, "an object could not be fetched and was given up");
        obstacles.outcome()
    }
}

/// Why an object has not come yet.
#[derive(Default)]
struct Obstacles {
    /// A source that was asked and has nothing, if there is no other.
    absent: Option<String>,
    /// One that has nothing that can be used.
    unusable: Option<String>,
    /// The last one that was tried, if it could not be reached or broke off; and why.
    broken: Option<(String, String)>,
    /// There was no room when the last source that was tried had begun.
    full: Option<ReserveError>,
}

impl Obstacles {
    /// Whether there is room now for what there was none for. Before that no source is asked: it would begin to send the
    /// object in vain.
    async fn look_for_room(&self, shelf: &Arc<Shelf>) -> Result<(), ReserveError> {
        match self.full {
            // The room is taken by who comes first, and this is only a look.
            Some(ReserveError::Full { bytes, .. }) => shelf.reserve(bytes).await.map(drop),
            _ => Ok(()),
        }
    }

    /// An attempt at a source failed, which may be tried again after the others.
    fn note(&mut self, sources: &Sources, address: String, error: FetchError) {
        (self.broken, self.full) = (None, None);
        match error {
            FetchError::Absent(_) => {
                sources.drop_source(&address);
                self.absent = Some(address);
                return;
            }
            FetchError::Differs | FetchError::Wrong(_) => self.unusable = Some(address.clone()),
            FetchError::Broke(error) => self.broken = Some((address.clone(), error)),
            FetchError::Reserve(error) => self.full = Some(error),
            FetchError::TooLarge(_) | FetchError::Unwanted => {}
        }
        sources.demote(&address);
    }

    /// No attempt has helped for too long.
    fn outcome(self) -> Outcome {
        match self {
            Self { unusable: Some(source), .. } => Outcome::GivenUp(FetchFailure::Absent { source }),
            Self { broken: Some((address, error)), .. } => Outcome::Kept(Obstacle::Source(address), error),
            Self { full: Some(error), .. } => Outcome::Kept(Obstacle::NoSpace, error.to_string()),
            _ => Outcome::GivenUp(FetchFailure::Unfinished),
        }
    }
}

/// How a delivery ended.
enum Outcome {
    /// The object is here, or is not wanted, or is known never to come.
    Over,
    /// The scheduler is to do something about it.
    GivenUp(FetchFailure),
    /// That kept it from coming at last: what, and why.
    Kept(Obstacle, String),
}

impl UnderWay {
    fn abort(self) {
        self.task.abort();
    }
}
