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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::sync::mpsc;

    use super::*;
    use crate::shelf::{Limits, Report};

    const RUN: Option<Run> = Some(Run { operation: 7, attempt: 1 });
    const MAKER: Made = Made { run: RUN, teller: Teller::Maker };

    fn shelf() -> (Arc<Shelf>, mpsc::UnboundedReceiver<Report>) {
        let (sender, reports) = mpsc::unbounded_channel();
        let limits = Limits { capacity_bytes: 1000, inline_bytes_max: 1000, anew: Duration::ZERO };
        (Shelf::new(limits, Arc::default(), None, sender), reports)
    }

    async fn put(shelf: &Arc<Shelf>, untold: &mut Untold, object: u64, made: Made) {
        let object = ObjectId(object);
        shelf.put(object, Bytes::from_static(b"abc"), 0, made).await.expect("room");
        untold.note(object, made);
    }

    fn ready(object: u64) -> Report {
        Report::Ready { object: ObjectId(object), run: RUN }
    }

    #[tokio::test(start_paused = true)]
    async fn what_its_maker_tells_is_told_after_a_while_if_it_is_still_there() {
        let (shelf, mut reports) = shelf();
        let mut untold = Untold::new(Arc::clone(&shelf));
        put(&shelf, &mut untold, 1, MAKER).await;
        put(&shelf, &mut untold, 2, MAKER).await;
        put(&shelf, &mut untold, 3, RUN.into()).await;
        assert_eq!(reports.try_recv(), Ok(ready(3)), "the store tells of what nobody else does");
        shelf.deallocate(ObjectId(1));
        tokio::time::advance(PATIENCE / 2).await;
        put(&shelf, &mut untold, 4, MAKER).await;
        let began = Instant::now();
        untold.due().await;
        untold.tell_due();
        assert!(began.elapsed() >= PATIENCE / 2);
        assert_eq!((reports.try_recv(), reports.try_recv().is_err()), (Ok(ready(2)), true));
        untold.due().await;
        untold.tell_due();
        assert_eq!(reports.try_recv(), Ok(ready(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_maker_that_is_gone_may_not_have_told_is_told_at_once() {
        let (shelf, mut reports) = shelf();
        let mut untold = Untold::new(Arc::clone(&shelf));
        put(&shelf, &mut untold, 1, MAKER).await;
        assert!(reports.try_recv().is_err());
        drop(untold);
        assert_eq!(reports.try_recv(), Ok(ready(1)));
    }
}
