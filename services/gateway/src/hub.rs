//! Who waits for what. A waiter listens to a topic before it looks at the state, and looks again
//! whenever it is woken, so no wake-up can be lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tripod_state::{Effect, Topic};

/// The listeners of one node, by topic.
#[derive(Default)]
pub(crate) struct Hub {
    topics: Mutex<HashMap<Topic, Entry>>,
    /// Listeners of all topics. Apply reads this instead of taking the lock when nobody listens.
    listeners: AtomicU64,
    /// Those of keys. Most effects are written keys, for which mostly nobody waits, while somebody always
    /// waits for jobs.
    key_listeners: AtomicU64,
}

/// A topic with at least one listener.
struct Entry {
    bell: Arc<Bell>,
    listeners: u64,
}

/// Rung whenever the topic is touched.
#[derive(Default)]
struct Bell {
    /// How often it was rung: a listener compares, so a ring between two waits is not lost.
    rings: AtomicU64,
    waiters: Notify,
}

/// Listens to one topic from its creation until it is dropped.
pub struct Watch {
    hub: Arc<Hub>,
    topic: Topic,
    bell: Arc<Bell>,
    seen: u64,
}

impl Hub {
    /// Starts to listen.
    pub(crate) fn watch(self: &Arc<Self>, topic: Topic) -> Watch {
        let mut topics = self.topics.lock();
        // Counted before the caller looks at the state. Whoever changes the state later reads the
        // count later too, because the state's own lock lies between.
        self.listeners.fetch_add(1, Ordering::SeqCst);
        if is_key(&topic) {
            self.key_listeners.fetch_add(1, Ordering::SeqCst);
        }
        let entry =
            topics.entry(topic.clone()).or_insert_with(|| Entry { bell: Arc::default(), listeners: 0 });
        entry.listeners += 1;
        let bell = Arc::clone(&entry.bell);
        drop(topics);
        let seen = bell.rings.load(Ordering::SeqCst);
        Watch { hub: Arc::clone(self), topic, bell, seen }
    }

    /// Wakes whoever waits for one of these effects.
    pub(crate) fn effects(&self, effects: &[Effect]) {
        if self.listeners.load(Ordering::SeqCst) == 0 {
            return;
        }
        let keys = self.key_listeners.load(Ordering::SeqCst) > 0;
        if !keys && effects.iter().all(|effect| matches!(effect, Effect::KeyWritten { .. })) {
            return;
        }
        // Every ticket of a deleted job resolves to a fault, whatever its topic.
        if effects.iter().any(|effect| matches!(effect, Effect::JobDeleted { .. })) {
            self.wake_all();
            return;
        }
        let topics = self.topics.lock();
        for topic in effects.iter().filter_map(Effect::topic) {
            if let Some(entry) = topics.get(&topic) {
                entry.bell.ring();
            }
        }
    }

    /// Wakes everybody: the state may be another one. In the order of topics, as whoever is woken first goes
    /// on first, and a run must be repeatable.
    pub(crate) fn wake_all(&self) {
        let topics = self.topics.lock();
        let mut all: Vec<_> = topics.iter().collect();
        all.sort_unstable_by_key(|(topic, _)| *topic);
        for (_, entry) in all {
            entry.bell.ring();
        }
    }

    #[cfg(test)]
    fn topics(&self) -> usize {
        self.topics.lock().len()
    }
}

fn is_key(topic: &Topic) -> bool {
    matches!(topic, Topic::Key(..))
}

impl Bell {
    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.waiters.notify_waiters();
    }
}

impl Watch {
    /// How often the topic has been touched since somebody first listened.
    pub(crate) fn rings(&self) -> u64 {
        self.bell.rings.load(Ordering::SeqCst)
    }

    /// Resolves when the topic was touched since the last call, or since the watch began. Several
    /// changes may be told as one. Dropping the future loses nothing. A call that waits here has arrived.
    pub async fn changed(&mut self) {
        loop {
            // Created before the count is read: a ring after the reading wakes it.
            let woken = self.bell.waiters.notified();
            let rings = self.bell.rings.load(Ordering::SeqCst);
            if rings != self.seen {
                self.seen = rings;
                return;
            }
            tripod_port::note_arrived();
            woken.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut topics = self.hub.topics.lock();
        self.hub.listeners.fetch_sub(1, Ordering::SeqCst);
        if is_key(&self.topic) {
            self.hub.key_listeners.fetch_sub(1, Ordering::SeqCst);
        }
        if let Some(entry) = topics.get_mut(&self.topic) {
            entry.listeners -= 1;
            if entry.listeners == 0 {
                topics.remove(&self.topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use futures::FutureExt as _;
    use tripod_state::DomainId;
    use tripod_state::ids::{JobId, Key};

    use super::*;

    fn key_written(key: &str) -> Effect {
        Effect::KeyWritten { job: JobId(1), key: Key::from(key) }
    }

    fn key_topic(key: &str) -> Topic {
        Topic::Key(JobId(1), Key::from(key))
    }

    #[test]
    fn wakes_the_listeners_of_the_topic_only() {
        let hub = Arc::new(Hub::default());
        let mut a = hub.watch(key_topic("a"));
        let mut b = hub.watch(key_topic("b"));

        hub.effects(&[key_written("a")]);

        assert!(a.changed().now_or_never().is_some());
        assert!(a.changed().now_or_never().is_none(), "one change is told once");
        assert!(b.changed().now_or_never().is_none());
    }

    #[test]
    fn a_change_in_one_domain_of_a_job_wakes_nobody_who_waits_for_another() {
        let hub = Arc::new(Hub::default());
        let mut ray = hub.watch(Topic::Domain(DomainId::Ray, JobId(1)));
        let mut runtime = hub.watch(Topic::Domain(DomainId::Runtime, JobId(1)));

        hub.effects(&[Effect::DomainChanged { domain: DomainId::Ray, job: JobId(1) }]);

        assert!(ray.changed().now_or_never().is_some());
        assert!(runtime.changed().now_or_never().is_none());
    }

    #[test]
    fn a_ring_between_two_waits_is_kept() {
        let hub = Arc::new(Hub::default());
        let mut watch = hub.watch(key_topic("a"));

        assert!(watch.changed().now_or_never().is_none());
        hub.effects(&[key_written("a"), key_written("a")]);

        assert!(watch.changed().now_or_never().is_some());
    }

    #[test]
    fn a_deleted_job_and_a_replaced_state_wake_everybody() {
        let hub = Arc::new(Hub::default());
        let mut watch = hub.watch(Topic::Polls(JobId(7)));

        hub.effects(&[Effect::JobDeleted { job: JobId(7) }]);
        assert!(watch.changed().now_or_never().is_some());

        hub.wake_all();
        assert!(watch.changed().now_or_never().is_some());
    }

    #[tokio::test]
    async fn everybody_is_woken_in_the_order_of_topics() {
        let hub = Arc::new(Hub::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..40_u64)
            .rev()
            .map(|job| {
                let (mut watch, order) = (hub.watch(Topic::Polls(JobId(job))), Arc::clone(&order));
                tokio::spawn(async move {
                    watch.changed().await;
                    order.lock().push(job);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        hub.wake_all();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn dropped_listeners_leave_no_trace() {
        let hub = Arc::new(Hub::default());
        let first = hub.watch(key_topic("a"));
        let second = hub.watch(key_topic("a"));

        drop(first);
        assert_eq!(hub.topics(), 1);
        drop(second);

        assert_eq!(hub.topics(), 0);
        assert_eq!(hub.listeners.load(Ordering::SeqCst), 0);
        assert_eq!(hub.key_listeners.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn listeners_of_other_topics_do_not_hide_those_of_keys() {
        let hub = Arc::new(Hub::default());
        let mut jobs = hub.watch(Topic::Jobs);
        hub.effects(&[key_written("a")]);
        assert!(jobs.changed().now_or_never().is_none());
        let mut key = hub.watch(key_topic("a"));
        hub.effects(&[key_written("a")]);
        assert!(key.changed().now_or_never().is_some());
        assert!(jobs.changed().now_or_never().is_none());
    }

    /// Each ring follows at once on the answer to the one before, so that it falls anywhere between
    /// the listener's look at the count and its sleep. A lost one ends the game early.
    #[test]
    fn no_ring_is_lost_between_the_look_and_the_sleep() {
        let hub = Arc::new(Hub::default());
        let heard = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = hub.watch(key_topic("a"));
        let listener = std::thread::spawn({
            let (heard, stop) = (Arc::clone(&heard), Arc::clone(&stop));
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    let mut last = false;
                    while !last {
                        let ring = tokio::time::timeout(Duration::from_secs(20), watch.changed());
                        ring.await.expect("a ring was lost");
                        last = stop.load(Ordering::SeqCst);
                        heard.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let end = Instant::now() + Duration::from_millis(500);
        let mut rung = 0;
        while !stop.load(Ordering::SeqCst) {
            stop.store(Instant::now() >= end, Ordering::SeqCst);
            hub.effects(&[key_written("a")]);
            rung += 1;
            while heard.load(Ordering::SeqCst) < rung && !listener.is_finished() {
                std::thread::yield_now();
            }
        }
        listener.join().expect("the listener heard every ring");
        assert_eq!(heard.load(Ordering::SeqCst), rung);
    }
}
