//! Which ops of a stream are to be polled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use parking_lot::Mutex;

/// The tags of ops that were woken, until the stream's task takes them.
#[derive(Debug, Default)]
pub(super) struct Woken {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    tags: Vec<u32>,
    /// Of the stream's task, when it rests.
    task: Option<Waker>,
}

/// Wakes one op. If another one has its tag by then, that one is polled for nothing.
#[derive(Debug)]
pub(super) struct OpWaker {
    tag: u32,
    woken: Arc<Woken>,
    is_queued: AtomicBool,
}

impl Woken {
    /// Puts the tags of the ops that were woken in place of what is in `tags`. Whoever is woken from now on wakes the task.
    pub(super) fn take(&self, tags: &mut Vec<u32>, task: &Waker) {
        tags.clear();
        let mut queue = self.queue.lock();
        std::mem::swap(&mut queue.tags, tags);
        match &mut queue.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
    }

    fn push(&self, tag: u32) {
        let mut queue = self.queue.lock();
        queue.tags.push(tag);
        let task = queue.task.take();
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl OpWaker {
    pub(super) fn of(tag: u32, woken: &Arc<Woken>) -> Arc<Self> {
        Arc::new(Self { tag, woken: Arc::clone(woken), is_queued: AtomicBool::new(false) })
    }

    /// The op is about to be polled: what wakes it from now on is news.
    pub(super) fn begin(&self) {
        self.is_queued.store(false, Ordering::SeqCst);
    }
}

impl Wake for OpWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::SeqCst) {
            self.woken.push(self.tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn each_op_is_named_once_and_the_task_is_woken_once() {
        let (woken, task) = (Arc::<Woken>::default(), Arc::<Task>::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut tags = vec![99];
        woken.take(&mut tags, &waker);
        assert!(tags.is_empty());
        let ops = [OpWaker::of(7, &woken), OpWaker::of(8, &woken)];
        for _ in 0..3 {
            for op in &ops {
                op.wake_by_ref();
            }
        }
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        woken.take(&mut tags, &waker);
        assert_eq!(tags, [7, 8]);
        ops[1].wake_by_ref();
        assert_eq!(task.0.load(Ordering::SeqCst), 1, "it has not been polled since");
        ops[1].begin();
        ops[1].wake_by_ref();
        assert_eq!(task.0.load(Ordering::SeqCst), 2);
        woken.take(&mut tags, &waker);
        assert_eq!(tags, [8]);
    }
}
