//! Who watches what: a maker for each thing that is watched, however many watch it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tripod_gateway::Gateway;

use crate::ui::history::History;
use crate::ui::maker::{Maker, Watched};
use crate::ui::viewers::{Place, Viewers};

/// Viewers of a node that has few files to open.
const VIEWERS_AT_LEAST: usize = 8;

/// The page of one node. Clones are the same.
#[derive(Clone)]
pub(crate) struct Page {
    inner: Arc<Inner>,
}

struct Inner {
    gateway: Gateway,
    makers: Mutex<HashMap<Watched, Arc<Maker>>>,
    places: Arc<Semaphore>,
    viewers_max: usize,
    counted: Viewers,
    /// Whether the port is the http port, which nodes announce.
    is_announced: bool,
    history: History,
    ending: watch::Sender<bool>,
}

impl Page {
    /// For so many viewers at a time, each of which is `counted`. `is_announced`: its port is the http port, which nodes
    /// announce.
    pub(crate) fn new(gateway: Gateway, viewers: usize, counted: Viewers, is_announced: bool) -> Self {
        let viewers_max = viewers.max(VIEWERS_AT_LEAST);
        let inner = Inner {
            gateway,
            makers: Mutex::default(),
            places: Arc::new(Semaphore::new(viewers_max)),
            viewers_max,
            counted,
            is_announced,
            history: History::default(),
            ending: watch::Sender::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.inner.gateway
    }

    pub(crate) fn is_announced(&self) -> bool {
        self.inner.is_announced
    }

    pub(crate) fn history(&self) -> &History {
        &self.inner.history
    }

    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.inner.ending.subscribe()
    }

    /// Ends the streams, which would not end by themselves.
    pub(crate) fn end(&self) {
        self.inner.ending.send_replace(true);
    }

    /// A place for one more viewer.
    pub(crate) fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.inner.places).try_acquire_owned().ok()?;
        Some(self.inner.counted.enter(permit))
    }

    /// How many viewers there may be.
    pub(crate) fn viewers_max(&self) -> usize {
        self.inner.viewers_max
    }

    /// The maker that works already, if one does.
    pub(crate) fn working(&self, watched: &Watched) -> Option<Arc<Maker>> {
        self.inner.makers.lock().get(watched).cloned()
    }

    /// Lets one more viewer in, by `join`, before the maker can find that nobody watches.
    pub(crate) fn watch<T>(&self, watched: Watched, join: impl FnOnce(Arc<Maker>) -> T) -> T {
        let mut makers = self.inner.makers.lock();
        match makers.entry(watched) {
            Entry::Occupied(found) => join(Arc::clone(found.get())),
            Entry::Vacant(vacant) => {
                let (watched, maker) = (vacant.key().clone(), Maker::new());
                vacant.insert(Arc::clone(&maker));
                let joined = join(Arc::clone(&maker));
                let (page, key) = (self.clone(), watched.clone());
                let judged = Arc::clone(&maker);
                let retired = move || page.retire(&key, &judged);
                tokio::spawn(maker.run(self.inner.gateway.clone(), watched, self.ending(), retired));
                joined
            }
        }
    }

    /// Forgets a maker that nobody watches; `false` if somebody came meanwhile.
    fn retire(&self, watched: &Watched, maker: &Maker) -> bool {
        let mut makers = self.inner.makers.lock();
        let is_unwatched = maker.is_unwatched();
        if is_unwatched {
            makers.remove(watched);
        }
        is_unwatched
    }
}
