//! How many streams of calls a connection has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bounds::STREAMS_MAX;

/// Those of one connection, which keeps this. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    taken: Arc<AtomicUsize>,
}

/// That of one stream, for as long as this lives.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
}

impl Places {
    /// One more stream, if there may be one.
    pub(super) fn enter(&self) -> Option<Place> {
        // Given back if it is one too many.
        let place = Place { places: self.clone() };
        (self.taken.fetch_add(1, Ordering::SeqCst) < STREAMS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_ends_makes_room_for_another_and_no_more() {
        let places = Places::default();
        let mut taken: Vec<_> = (0..STREAMS_MAX).map(|_| places.enter().expect("there is room")).collect();
        assert!(places.enter().is_none() && places.clone().enter().is_none());
        taken.pop();
        taken.push(places.enter().expect("one has ended"));
        assert!(places.enter().is_none());
    }
}
