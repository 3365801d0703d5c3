//! Objects.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::memory::{Weigh, of_list, of_text};
use crate::ray::command::Run;
use crate::ray::ids::{ObjectId, OperationId, OrderId, StoreId, WorkerId};
use crate::ray::order::Source;
use crate::ray::view::Failure;

/// An object, from when its id is given out until nothing refers to it any more.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Object {
    pub(crate) target: Target,
    pub(crate) producer: Producer,
    /// The stores that have it, in ascending order; of one that failed, those that have the error in its place.
    pub(crate) locations: Vec<Location>,
    /// The deliveries that are under way, in ascending order of their stores. Each holds a reference.
    pub(crate) transits: Vec<Transit>,
    /// The reference that lasts until the object is ready, or means another, for the first time.
    pub(crate) creation: bool,
    /// References of processes that do not say who they are.
    pub(crate) anonymous: u64,
    /// What is inside, once that is known.
    pub(crate) contained: Option<Vec<Contained>>,
    /// Why it cannot be had, once that is certain.
    pub(crate) failure: Option<Arc<Failure>>,
    /// When a store last freed a copy although the object goes on, or when it was there no more in between: what a
    /// store said of it before that does not count.
    pub(crate) freed_ms: Option<TimeMs>,
    /// All references, whoever owns them. Derived.
    #[serde(skip)]
    pub(crate) count: u64,
}

/// What an id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Target {
    /// Nobody has said yet.
    Unknown,
    /// A value of its own.
    Canonical,
    /// What another id means.
    To(ObjectId),
}

/// What can make an object again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Producer {
    Task(OperationId),
    /// A process wrote what it had in its memory. Only the next attempt of the task that it was in can do so again.
    Put {
        by: WorkerId,
        /// The attempt that put it last, if later ones can be told to mean the same object.
        run: Option<Run>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Location {
    pub(crate) store: StoreId,
    /// The log's time when the store said so.
    pub(crate) since_ms: TimeMs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Transit {
    pub(crate) store: StoreId,
    pub(crate) source: Source,
    /// The order to fetch it, which may be done with.
    pub(crate) order: OrderId,
    /// The log's time of that order.
    pub(crate) since_ms: TimeMs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Contained {
    pub(crate) object: ObjectId,
    /// Whether the container owns a reference: an old client may have had none to give.
    pub(crate) held: bool,
}

impl Object {
    pub(crate) fn new(producer: Producer) -> Self {
        Self {
            target: Target::Unknown,
            producer,
            locations: Vec::new(),
            transits: Vec::new(),
            creation: true,
            anonymous: 0,
            contained: None,
            failure: None,
            freed_ms: None,
            count: 1,
        }
    }

    pub(crate) fn is_at(&self, store: StoreId) -> bool {
        self.locations.binary_search_by_key(&store, |location| location.store).is_ok()
    }

    /// Whether the value itself is somewhere.
    pub(crate) fn is_available(&self) -> bool {
        self.failure.is_none() && !self.locations.is_empty()
    }

    pub(crate) fn add_location(&mut self, location: Location) {
        if let Err(place) = self.locations.binary_search_by_key(&location.store, |known| known.store) {
            self.locations.insert(place, location);
        }
    }

    pub(crate) fn remove_location(&mut self, store: StoreId) -> bool {
        let place = self.locations.binary_search_by_key(&store, |location| location.store);
        place.map(|place| self.locations.remove(place)).is_ok()
    }

    pub(crate) fn transit_to(&self, store: StoreId) -> Option<&Transit> {
        let place = self.transits.binary_search_by_key(&store, |transit| transit.store).ok()?;
        self.transits.get(place)
    }

    /// Sets or replaces the delivery to a store.
    pub(crate) fn set_transit(&mut self, transit: Transit) {
        match self.transits.binary_search_by_key(&transit.store, |known| known.store) {
            Ok(place) => self.transits[place] = transit,
            Err(place) => self.transits.insert(place, transit),
        }
    }

    pub(crate) fn remove_transit(&mut self, store: StoreId) -> Option<Transit> {
        let place = self.transits.binary_search_by_key(&store, |transit| transit.store).ok()?;
        Some(self.transits.remove(place))
    }
}

impl Weigh for Object {
    fn outside(&self) -> u64 {
        let contained = self.contained.as_ref().map_or(0, Vec::len);
        let lists = of_list::<Location>(self.locations.len())
            .saturating_add(of_list::<Transit>(self.transits.len()))
            .saturating_add(of_list::<Contained>(contained));
        lists.saturating_add(self.failure.as_ref().map_or(0, Weigh::outside))
    }
}

impl Weigh for Failure {
    fn outside(&self) -> u64 {
        let name = self.function.as_ref().map_or(0, |name| name.0.len());
        let texts = self.history.iter().map(String::len).chain([name]).map(of_text);
        texts.fold(0, u64::saturating_add)
    }
}
