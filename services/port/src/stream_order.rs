//! The order in which the ops of one stream of calls change something.
//!
//! An op that finds no room waits for its turn, and holds up nobody of other streams. One that comes later may find room
//! before the first has noticed that its turn has come. So each op that changes something takes its position in its stream
//! when it comes, and hands its command on when nobody is before it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

tokio::task_local! {
    static ORDER: StreamOrder;
}

/// The order of one stream. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct StreamOrder(Arc<Mutex<Line>>);

#[derive(Debug, Default)]
struct Line {
    /// How many positions were ever taken.
    taken: u64,
    /// Those that are kept, in their order. A stream has no more ops under way than it was granted.
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    /// Of whoever waits until this is the first.
    waker: Option<Waker>,
}

/// That of one op in its stream, until this is dropped.
#[derive(Debug)]
pub struct StreamPosition {
    order: StreamOrder,
    number: u64,
}

impl StreamOrder {
    /// The next position in the stream of the present op; `None` if the present call is no op.
    #[must_use]
    pub fn take_position() -> Option<StreamPosition> {
        ORDER.try_with(Self::position).ok()
    }

    /// What `step` does is done by ops of this stream.
    pub(crate) fn enter<T>(&self, step: impl FnOnce() -> T) -> T {
        ORDER.sync_scope(self.clone(), step)
    }

    /// What `op` does is done by an op of this stream.
    pub fn scope<F: Future>(&self, op: F) -> impl Future<Output = F::Output> + use<F> {
        ORDER.scope(self.clone(), op)
    }

    fn position(&self) -> StreamPosition {
        let mut line = self.0.lock();
        let number = line.taken;
        line.taken += 1;
        line.kept.push_back(Kept { number, waker: None });
        StreamPosition { order: self.clone(), number }
    }
}

impl StreamPosition {
    /// Waits until nobody of the stream is before this one.
    pub async fn first(&self) {
        poll_fn(|context| {
            let mut line = self.order.0.lock();
            if line.kept.front().is_none_or(|first| first.number >= self.number) {
                return Poll::Ready(());
            }
            if let Some(place) = line.place_of(self.number) {
                line.kept[place].waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for StreamPosition {
    fn drop(&mut self) {
        let waker = self.order.0.lock().leave(self.number);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Line {
    fn place_of(&self, number: u64) -> Option<usize> {
        self.kept.binary_search_by_key(&number, |kept| kept.number).ok()
    }

    /// Gives a position up. Whoever is the first thereby and waits for that is to be woken.
    fn leave(&mut self, number: u64) -> Option<Waker> {
        let place = self.place_of(number)?;
        self.kept.remove(place);
        if place > 0 {
            return None;
        }
        self.kept.front_mut()?.waker.take()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn is_first(position: &StreamPosition) -> bool {
        position.first().now_or_never().is_some()
    }

    #[test]
    fn each_waits_for_those_before_it_and_for_nobody_of_another_stream() {
        let (order, other) = (StreamOrder::default(), StreamOrder::default());
        let [first, second, third] = [order.position(), order.position(), order.position()];
        assert!(is_first(&first) && !is_first(&second) && !is_first(&third));
        assert!(is_first(&other.position()));
        drop(second);
        assert!(!is_first(&third), "the first has not gone");
        drop(first);
        assert!(is_first(&third));
        assert!(!is_first(&order.position()));
        drop(third);
        assert!(is_first(&order.position()) && order.0.lock().kept.is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_when_it_is_the_first() {
        let order = StreamOrder::default();
        let [first, second, third] = [order.position(), order.position(), order.position()];
        let waits = tokio::spawn(async move { third.first().await });
        tokio::task::yield_now().await;
        drop(second);
        drop(first);
        waits.await.unwrap();
    }

    #[test]
    fn only_an_op_has_a_position() {
        assert!(StreamOrder::take_position().is_none());
        let order = StreamOrder::default();
        let kept = order.enter(StreamOrder::take_position).expect("it is an op");
        assert!(is_first(&kept));
        let behind = order.scope(async { StreamOrder::take_position() }).now_or_never().flatten();
        assert!(!is_first(&behind.expect("it is one, too")));
    }
}
