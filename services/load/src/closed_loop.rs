//! The loop that every measurement runs in: warm-up, measured window, and an end that every client
//! agrees with.

use std::future::Future;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use tokio::time::Instant;
use tonic::Status;

/// Longest latency that is told from longer ones, in microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;
/// Significant digits of a latency.
const LATENCY_DIGITS: u8 = 3;
/// A request without an answer for this long counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failure, so that a dead node is not hammered.
const FAILURE_PAUSE: Duration = Duration::from_millis(5);
/// Different error texts that a report shows.
const ERRORS_SHOWN: usize = 3;
/// How often a long run tells how it is doing.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// One client of a closed loop.
pub trait Client: Send + 'static {
    /// Whether to send another request; `over` once the measured window has passed.
    fn goes_on(&mut self, over: bool) -> bool {
        !over
    }

    /// Sends one request and waits for its answer.
    fn step(&mut self) -> impl Future<Output = Result<(), Status>> + Send;
}

/// How long a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Requests that end in this time are not counted.
    pub warm_up: Duration,
    pub measured: Duration,
}

impl Plan {
    /// A measured window of `seconds` after a warm-up of a quarter of it, one second at most.
    ///
    /// # Errors
    /// Not a positive, finite number of seconds.
    pub fn seconds(seconds: f64) -> anyhow::Result<Self> {
        let measured = Duration::try_from_secs_f64(seconds).ok().filter(|measured| !measured.is_zero());
        let measured = measured.with_context(|| format!("cannot measure for {seconds} seconds"))?;
        Ok(Self { warm_up: (measured / 4).min(Duration::from_secs(1)), measured })
    }
}

/// What a run measured.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Of requests that succeeded inside the window.
    pub latencies_us: Histogram<u64>,
    /// Failed requests, also of the warm-up.
    pub errors: u64,
    /// The first different texts among them.
    pub first_errors: Vec<String>,
    pub elapsed: Duration,
}

/// An empty histogram with the bounds of this module.
#[must_use]
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, LATENCY_DIGITS).expect("constant bounds are valid")
}

/// Runs all clients at once by `plan`, and hands them back with the outcome.
///
/// # Errors
/// A client's task panicked.
pub async fn run<C: Client>(plan: Plan, clients: Vec<C>) -> anyhow::Result<(Outcome, Vec<C>)> {
    run_between(plan, clients, &mut || ()).await
}

/// [`run`], with `edge` called when the measured window begins and when it ends.
///
/// # Errors
/// As [`run`].
pub async fn run_between<C: Client>(
    plan: Plan,
    clients: Vec<C>,
    edge: &mut (dyn FnMut() + Send),
) -> anyhow::Result<(Outcome, Vec<C>)> {
    let shared = Arc::new(Shared::new());
    let workers: Vec<_> =
        clients.into_iter().map(|client| tokio::spawn(work(client, Arc::clone(&shared)))).collect();
    tokio::time::sleep(plan.warm_up).await;
    edge();
    shared.enter(Phase::Measured);
    let started = Instant::now();
    watch_progress(started, plan.measured, &shared).await;
    shared.enter(Phase::Over);
    let elapsed = started.elapsed();
    edge();

    let mut latencies_us = latency_histogram();
    let mut clients = Vec::with_capacity(workers.len());
    for worker in workers {
        let (client, own) = worker.await.context("a client of the load generator panicked")?;
        latencies_us.add(&own).expect("all histograms have the same bounds");
        clients.push(client);
    }
    let errors = shared.errors.load(Ordering::Relaxed);
    let first_errors = shared.first_errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((Outcome { latencies_us, errors, first_errors, elapsed }, clients))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    WarmUp,
    Measured,
    Over,
}

/// What the workers of one run have in common.
struct Shared {
    phase: AtomicU8,
    measured: AtomicU64,
    errors: AtomicU64,
    first_errors: Mutex<Vec<String>>,
}

impl Shared {
    fn new() -> Self {
        Self {
            phase: AtomicU8::new(Phase::WarmUp as u8),
            measured: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            first_errors: Mutex::new(Vec::new()),
        }
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Acquire) == phase as u8
    }

    fn note_error(&self, status: &Status) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut shown = self.first_errors.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("{:?}: {}", status.code(), status.message());
        if shown.len() < ERRORS_SHOWN && !shown.contains(&text) {
            shown.push(text);
        }
    }
}

async fn work<C: Client>(mut client: C, shared: Arc<Shared>) -> (C, Histogram<u64>) {
    let mut latencies_us = latency_histogram();
    while client.goes_on(shared.is_in(Phase::Over)) {
        let begun = Instant::now();
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, client.step()).await;
        match answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer within 10 s"))) {
            Ok(()) if shared.is_in(Phase::Measured) => {
                let latency = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                latencies_us.saturating_record(latency);
                shared.measured.fetch_add(1, Ordering::Relaxed);
            }
            Ok(()) => {}
            Err(status) => {
                shared.note_error(&status);
                // A client that must finish a common round may never succeed again; it stops here.
                if shared.is_in(Phase::Over) {
                    break;
                }
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
    (client, latencies_us)
}

/// Sleeps through the window; a long one is told about on stderr.
async fn watch_progress(started: Instant, measured: Duration, shared: &Shared) {
    let end = started + measured;
    let mut told = 0;
    loop {
        let next = Instant::now() + PROGRESS_EVERY;
        if next >= end {
            tokio::time::sleep_until(end).await;
            return;
        }
        tokio::time::sleep_until(next).await;
        let done = shared.measured.load(Ordering::Relaxed);
        let rate = (done - told) as f64 / PROGRESS_EVERY.as_secs_f64();
        let errors = shared.errors.load(Ordering::Relaxed);
        eprintln!(
            "{:>4} of {} s: {rate:.0} op/s, {errors} errors",
            started.elapsed().as_secs(),
            measured.as_secs()
        );
        told = done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `pause` a request and fails every `fails_every`-th one.
    struct Scripted {
        pause: Duration,
        fails_every: u64,
        asked: u64,
    }

    impl Client for Scripted {
        async fn step(&mut self) -> Result<(), Status> {
            tokio::time::sleep(self.pause).await;
            self.asked += 1;
            if self.asked.is_multiple_of(self.fails_every) {
                return Err(Status::unavailable("scripted"));
            }
            Ok(())
        }
    }

    fn scripted(fails_every: u64) -> Scripted {
        Scripted { pause: Duration::from_millis(10), fails_every, asked: 0 }
    }

    const PLAN: Plan = Plan { warm_up: Duration::from_secs(1), measured: Duration::from_secs(2) };

    // Time is simulated: the figures are exact on any machine.
    #[tokio::test(start_paused = true)]
    async fn only_the_measured_window_counts() {
        let (outcome, clients) = run(PLAN, vec![scripted(u64::MAX), scripted(u64::MAX)]).await.unwrap();
        // Two clients, 100 requests a second each; the edges of the window may cost one each.
        assert!((396..=404).contains(&outcome.latencies_us.len()), "{}", outcome.latencies_us.len());
        assert!((9_900..=11_100).contains(&outcome.latencies_us.value_at_quantile(0.5)));
        assert_eq!(outcome.errors, 0);
        assert!(clients.iter().all(|client| client.asked >= 299), "the warm-up ran as well");
    }

    #[tokio::test(start_paused = true)]
    async fn the_edges_of_the_window_are_told_when_they_are_there() {
        let begun = Instant::now();
        let mut edges = Vec::new();
        run_between(PLAN, vec![scripted(u64::MAX)], &mut || edges.push(begun.elapsed())).await.unwrap();
        assert_eq!(edges, [PLAN.warm_up, PLAN.warm_up + PLAN.measured]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_counted_apart_and_shown_once() {
        let (outcome, clients) = run(PLAN, vec![scripted(2)]).await.unwrap();
        let asked = clients[0].asked;
        assert_eq!(outcome.errors, asked / 2);
        assert_eq!(outcome.first_errors, ["Unavailable: scripted"]);
        assert!(outcome.latencies_us.len() <= asked / 2);
    }

    struct Silent;

    impl Client for Silent {
        async fn step(&mut self) -> Result<(), Status> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_never_answers_ends_the_run() {
        let (outcome, _) = run(PLAN, vec![Silent]).await.unwrap();
        assert_eq!(outcome.errors, 1);
        assert_eq!(outcome.latencies_us.len(), 0);
    }

    #[test]
    fn a_plan_has_a_window() {
        assert_eq!(Plan::seconds(2.0).unwrap().warm_up, Duration::from_millis(500));
        assert_eq!(Plan::seconds(60.0).unwrap().warm_up, Duration::from_secs(1));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Plan::seconds(wrong).is_err(), "{wrong}");
        }
    }
}
