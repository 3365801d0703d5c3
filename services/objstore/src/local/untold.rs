//! Objects of which their maker is to tell the scheduler.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::ids::{ObjectId, Run};
use crate::made::{Made, Teller};
use crate::shelf::Shelf;

/// How long a maker has. Most objects of short tasks are gone by then, and what is told twice counts once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Those of one connection. When it ends, the store tells of all of them: their maker may have died before it could.
pub(super) struct Untold {
    shelf: Arc<Shelf>,
    /// In the order in which they are due.
    made: VecDeque<(Instant, ObjectId, Option<Run>)>,
}

impl Untold {
    pub(super) fn new(shelf: Arc<Shelf>) -> Self {
        Self { shelf, made: VecDeque::new() }
    }

    /// An object was written.
    pub(super) fn note(&mut self, object: ObjectId, made: Made) {
        if made.teller == Teller::Maker {
            self.made.push_back((Instant::now() + PATIENCE, object, made.run));
        }
    }

    /// Waits until the store is to tell of one.
    pub(super) async fn due(&self) {
        match self.made.front() {
            Some((due, ..)) => tokio::time::sleep_until(*due).await,
            None => std::future::pending().await,
        }
    }

    /// Has the scheduler told of all that are due.
    pub(super) fn tell_due(&mut self) {
        let now = Instant::now();
        let due = self.made.partition_point(|(due, ..)| *due <= now);
        self.shelf.tell_ready(self.made.drain(..due).map(|(_, object, run)| (object, run)));
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        self.shelf.tell_ready(self.made.drain(..).map(|(_, object, run)| (object, run)));
    }
}
