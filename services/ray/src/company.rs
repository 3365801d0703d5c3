//! Reports that nobody waits for go with the next call that somebody waits for.
//!
//! A process that gives out one task after the other would find each time that the commit of the last task's end is
//! under way, and wait for it before its own begins. So the end of a task waits a moment for such a call, and the two
//! are committed together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tripod_state::ray::Request;

/// How long a report waits for company. Longer than a task that does nothing takes on a quiet cluster.
const PATIENCE: Duration = Duration::from_millis(2);

/// The calls of one node that wait for others. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Company {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    comes: Notify,
    reports: AtomicUsize,
    /// Calls that wait for objects to be decided, and so for reports.
    waits: AtomicUsize,
}

/// A call that waits for reports, until it is dropped.
pub(crate) struct Wait(Company);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.inner.waits.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Company {
    /// Reports do not wait as long as the answer is held.
    pub(crate) fn wait(&self) -> Wait {
        self.inner.waits.fetch_add(1, Ordering::Relaxed);
        self.inner.comes.notify_waiters();
        Wait(self.clone())
    }

    /// Returns when a request may go: one that is no report at once, but after the reports that waited for it.
    /// `awaited`: whether somebody waits for what reports say.
    pub(crate) async fn join(&self, request: &Request, awaited: impl Future<Output = bool>) {
        let Inner { comes, reports, waits } = &*self.inner;
        if !is_report(request) {
            if reports.load(Ordering::Relaxed) > 0 {
                comes.notify_waiters();
                // They are handed over first.
                tokio::task::yield_now().await;
            }
            return;
        }
        if waits.load(Ordering::Relaxed) == 0 && !awaited.await {
            // Before it is counted: a call that sees the count wakes it.
            let comes = comes.notified();
            reports.fetch_add(1, Ordering::Relaxed);
            let _one_less = Counted(reports);
            // Time that has passed is no error: nobody came.
            let _ = tokio::time::timeout(PATIENCE, comes).await;
        }
    }
}

/// A report that waits, also if its caller goes away meanwhile.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a request only tells what became of tasks and objects.
fn is_report(request: &Request) -> bool {
    match request {
        Request::Ready { .. } | Request::Idle { previous: Some(_), .. } => true,
        Request::Batch(requests) => {
            let along =
                |request: &Request| is_report(request) || matches!(request, Request::DropReferences { .. });
            requests.iter().any(is_report) && requests.iter().all(along)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use tokio::time::Instant;
    use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};

    use super::*;

    fn report() -> Request {
        Request::Ready { object: ObjectId(1), store: StoreId(0), run: None }
    }

    fn call() -> Request {
        Request::Get { worker: WorkerId(0), object: ObjectId(1) }
    }

    fn dropped() -> Request {
        Request::DropReferences { objects: vec![ObjectId(1)] }
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_goes_with_the_next_call_and_before_it() {
        let company = Company::default();
        let (order, mut told) = tokio::sync::mpsc::unbounded_channel();
        let began = Instant::now();
        let reporting = {
            let (company, order) = (company.clone(), order.clone());
            tokio::spawn(async move {
                company.join(&Request::Batch(vec![report(), dropped()]), ready(false)).await;
                order.send("report").unwrap();
            })
        };
        tokio::time::sleep(PATIENCE / 2).await;
        assert!(told.try_recv().is_err(), "nobody has come");
        company.join(&call(), ready(false)).await;
        order.send("call").unwrap();
        reporting.await.unwrap();
        assert_eq!((told.recv().await, told.recv().await), (Some("report"), Some("call")));
        assert_eq!(began.elapsed(), PATIENCE / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn alone_it_goes_after_a_moment_and_at_once_if_somebody_waits() {
        let company = Company::default();
        let took = async |request: Request, awaited: bool| {
            let began = Instant::now();
            company.join(&request, ready(awaited)).await;
            began.elapsed()
        };
        assert_eq!(took(report(), false).await, PATIENCE);
        assert_eq!(took(report(), true).await, Duration::ZERO);
        let idle = |previous| Request::Idle { worker: WorkerId(0), previous, run: None };
        assert_eq!(took(idle(None), false).await, Duration::ZERO, "it asks for work");
        assert_eq!(took(dropped(), false).await, Duration::ZERO);
        assert_eq!(took(Request::Batch(vec![report(), call()]), false).await, Duration::ZERO);
        let wait = company.wait();
        assert_eq!(took(report(), false).await, Duration::ZERO);
        drop(wait);
        assert_eq!(took(report(), false).await, PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_begins_to_wait_lets_reports_go_and_one_that_is_given_up_is_not_counted() {
        let company = Company::default();
        let began = Instant::now();
        let reporting = {
            let company = company.clone();
            tokio::spawn(async move { company.join(&report(), ready(false)).await })
        };
        tokio::task::yield_now().await;
        let _wait = company.wait();
        reporting.await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        let given_up = {
            let company = company.clone();
            tokio::spawn(async move { company.join(&report(), ready(false)).await })
        };
        given_up.abort();
        let _ = given_up.await;
        assert_eq!(company.inner.reports.load(Ordering::Relaxed), 0);
    }
}
