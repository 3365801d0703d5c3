//! Work that must not hold up the writer. The journal decides what is to be done and takes in what
//! became of it; who does it is decided here: a thread, or, for a simulation, the caller itself.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::base::failure::Failure;

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    /// A thread for each helper.
    Threads,
    /// The caller, at once.
    Inline,
}

/// Takes orders of one kind, one after the other.
pub(crate) struct Helper<Order, Done> {
    worker: Worker<Order, Done>,
    /// Orders whose outcome was not taken yet.
    open: usize,
}

enum Worker<Order, Done> {
    Thread {
        /// `None` only while it is being dropped.
        orders: Option<mpsc::Sender<Order>>,
        done: mpsc::Receiver<Done>,
        thread: Option<JoinHandle<()>>,
    },
    Inline {
        work: Box<dyn FnMut(Order) -> Done + Send>,
        done: VecDeque<Done>,
    },
}

impl<Order: Send + 'static, Done: Send + 'static> Helper<Order, Done> {
    /// A helper that does `work` with each order.
    pub(crate) fn new(
        hands: Hands,
        name: &'static str,
        failure: Failure,
        work: impl FnMut(Order) -> Done + Send + 'static,
    ) -> io::Result<Self> {
        let worker = match hands {
            Hands::Threads => start(name, failure, work)?,
            Hands::Inline => Worker::Inline { work: Box::new(work), done: VecDeque::new() },
        };
        Ok(Self { worker, open: 0 })
    }

    pub(crate) fn give(&mut self, order: Order) {
        self.open += 1;
        match &mut self.worker {
            Worker::Thread { orders, .. } => {
                let orders = orders.as_ref().expect("the queue is there until the drop");
                // A thread that has panicked is noticed when its answer is awaited.
                let _ = orders.send(order);
            }
            Worker::Inline { work, done } => {
                let outcome = work(order);
                done.push_back(outcome);
            }
        }
    }

    /// The next outcome, if there is one already.
    pub(crate) fn take(&mut self) -> Option<Done> {
        let done = match &mut self.worker {
            Worker::Thread { done, .. } => done.try_recv().ok(),
            Worker::Inline { done, .. } => done.pop_front(),
        };
        self.open -= usize::from(done.is_some());
        done
    }

    /// Waits for the next outcome; `None` if nothing is being done, or the thread is gone. Blocks.
    pub(crate) fn wait(&mut self) -> Option<Done> {
        if self.open == 0 {
            return None;
        }
        let done = match &mut self.worker {
            Worker::Thread { done, .. } => done.recv().ok(),
            Worker::Inline { done, .. } => done.pop_front(),
        };
        self.open -= 1;
        done
    }
}

fn start<Order: Send + 'static, Done: Send + 'static>(
    name: &'static str,
    failure: Failure,
    mut work: impl FnMut(Order) -> Done + Send + 'static,
) -> io::Result<Worker<Order, Done>> {
    let (orders, queue) = mpsc::channel();
    let (outcomes, done) = mpsc::channel();
    let guard = PanicGuard { name, failure };
    let body = move || {
        let _guard = guard;
        for order in queue {
            // The other end is gone when the journal is being closed.
            let _ = outcomes.send(work(order));
        }
    };
    let thread = std::thread::Builder::new().name(name.into()).spawn(body)?;
    Ok(Worker::Thread { orders: Some(orders), done, thread: Some(thread) })
}

/// Says that the node failed if the thread ends by a panic: the journal would grow without end.
struct PanicGuard {
    name: &'static str,
    failure: Failure,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failure.set(&format!("the thread {} panicked", self.name));
        }
    }
}

impl<Order, Done> Drop for Helper<Order, Done> {
    fn drop(&mut self) {
        if let Worker::Thread { orders, thread, .. } = &mut self.worker {
            orders.take();
            if thread.take().is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("a helper of the journal panicked");
            }
        }
    }
}
