//! Runs tests side by side, and those that failed again, alone.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use tokio::task::JoinSet;

use crate::progress::Progress;
use crate::report::{Outcome, Record, Report};
use crate::settings::Missing;

/// How often a test is tried.
const ATTEMPTS_MAX: usize = 3;
/// If more tests than this fail, something is broken: accidents are fewer, and the attempts would take hours.
const AGAIN_MAX: usize = 8;

/// Something that can be run more than once.
pub(crate) trait Trial: Clone + Send + Sync + 'static {
    fn name(&self) -> String;

    /// Runs it; the answer is a remark. `alone`: nothing else runs, and it finds nothing that others have used.
    fn run(&self, alone: bool) -> impl Future<Output = Result<String>> + Send;

    /// Puts aside what a failed attempt wrote, and says where it is.
    fn keep(&self) -> Option<PathBuf>;
}

/// Runs trials and writes down how they ended.
pub(crate) struct Runner {
    progress: Progress,
    /// Nothing is begun later.
    begin_until: Option<Instant>,
    noted: Mutex<Noted>,
}

struct Noted {
    report: Report,
    records: Vec<Record>,
    /// Why the report is not complete.
    complaint: Option<Error>,
}

/// A trial that has failed, and has not been given up.
pub(crate) struct Failed<T> {
    trial: T,
    record: Record,
}

/// One attempt.
struct Attempt {
    seconds: f64,
    outcome: Result<String>,
}

impl Runner {
    /// One that begins no test later than after `begin_within`.
    pub(crate) fn new(report: Report, begin_within: Option<Duration>) -> Self {
        Self {
            progress: Progress::new(),
            begin_until: begin_within.map(|within| Instant::now() + within),
            noted: Mutex::new(Noted { report, records: Vec::new(), complaint: None }),
        }
    }

    /// Tells what runs during long silences, for as long as this is polled.
    pub(crate) async fn watch(&self) {
        self.progress.watch().await;
    }

    /// Runs trials in their order, so many at the same time. What failed is the answer.
    pub(crate) async fn side_by_side<T: Trial>(&self, trials: Vec<T>, at_once: usize) -> Vec<Failed<T>> {
        let mut waiting = VecDeque::from(trials);
        let mut running = JoinSet::new();
        let mut begun = HashMap::new();
        let mut failed = Vec::new();
        loop {
            if self.begin_until.is_some_and(|until| Instant::now() >= until) {
                waiting.drain(..).for_each(|trial: T| self.leave_out(trial.name()));
            }
            while running.len() < at_once {
                let Some(trial) = waiting.pop_front() else { break };
                self.progress.begins(&trial.name());
                let task = trial.clone();
                let id = running.spawn(async move { task.run(false).await }).id();
                begun.insert(id, (trial, Instant::now()));
            }
            let Some(ended) = running.join_next_with_id().await else { return failed };
            let (id, outcome) = match ended {
                Ok((id, outcome)) => (id, outcome),
                Err(panic) => (panic.id(), Err(panic.into())),
            };
            let Some((trial, since)) = begun.remove(&id) else { continue };
            let attempt = Attempt { seconds: since.elapsed().as_secs_f64(), outcome };
            self.progress.ended(&trial.name());
            failed.extend(self.first_attempt(trial, attempt));
        }
    }

    /// Gives what failed its further attempts, one after the other, unless there is too much of it.
    pub(crate) async fn again<T: Trial>(&self, failed: Vec<Failed<T>>) {
        if failed.len() > AGAIN_MAX {
            let text = format!("{} tests failed, more than {AGAIN_MAX}: none is tried again", failed.len());
            self.progress.say(&text);
            failed.into_iter().for_each(|failed| self.note(failed.record));
            return;
        }
        for Failed { trial, mut record } in failed {
            while record.outcome == Outcome::Failed && record.attempts < ATTEMPTS_MAX {
                self.try_again(&trial, &mut record).await;
            }
            self.note(record);
        }
    }

    /// Writes down what could not be run.
    pub(crate) fn miss(&self, missing: &Missing) {
        self.with_noted(|noted| noted.report.miss(missing));
    }

    /// How everything ended.
    ///
    /// # Errors
    /// The report could not be written.
    pub(crate) fn end(self) -> Result<Vec<Record>> {
        let noted = self.noted.into_inner().unwrap_or_else(PoisonError::into_inner);
        match noted.complaint {
            None => Ok(noted.records),
            Some(complaint) => Err(complaint),
        }
    }

    /// Notes that a trial was not begun.
    fn leave_out(&self, name: String) {
        let outcome = Outcome::LeftOut;
        let record = Record { name, outcome, seconds: 0.0, attempts: 0, log: None, error: None };
        self.say(&record, "there is no time for it");
        self.note(record);
    }

    fn first_attempt<T: Trial>(&self, trial: T, attempt: Attempt) -> Option<Failed<T>> {
        let (name, seconds) = (trial.name(), attempt.seconds);
        let mut record =
            Record { name, outcome: Outcome::Passed, seconds, attempts: 1, log: None, error: None };
        match attempt.outcome {
            Ok(remark) => {
                self.say(&record, &remark);
                self.note(record);
                None
            }
            Err(error) => {
                record.outcome = Outcome::Failed;
                record.log = trial.keep();
                record.error = Some(format!("{error:#}"));
                self.progress
                    .say(&format!("failed  {} ({seconds:.1} s), first attempt\n{error:#}", record.name));
                Some(Failed { trial, record })
            }
        }
    }

    async fn try_again<T: Trial>(&self, trial: &T, record: &mut Record) {
        self.progress.begins(&record.name);
        let (begin, task) = (Instant::now(), trial.clone());
        // In a task of its own: a panic is a failure of this trial only.
        let outcome = tokio::spawn(async move { task.run(true).await }).await;
        record.seconds = begin.elapsed().as_secs_f64();
        record.attempts += 1;
        self.progress.ended(&record.name);
        match outcome.unwrap_or_else(|panic| Err(panic.into())) {
            Ok(remark) => {
                record.outcome = Outcome::Flaky;
                self.say(record, &remark);
            }
            Err(error) => {
                record.log = trial.keep().or(record.log.take());
                record.error = Some(format!("{error:#}"));
                self.say(record, &format!("attempt {}\n{error:#}", record.attempts));
            }
        }
    }

    fn say(&self, record: &Record, remark: &str) {
        let Record { name, outcome, seconds, .. } = record;
        self.progress.say(&format!("{outcome:7} {name} ({seconds:.1} s) {remark}"));
    }

    fn note(&self, record: Record) {
        self.with_noted(|noted| {
            let written = noted.report.note(&record);
            noted.records.push(record);
            written
        });
    }

    fn with_noted(&self, act: impl FnOnce(&mut Noted) -> Result<()>) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = act(&mut noted) {
            noted.complaint = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::bail;

    use super::*;

    /// Fails a number of times, and then passes.
    #[derive(Clone)]
    struct Planned {
        name: &'static str,
        failures: usize,
        panics: bool,
        stage: Arc<Stage>,
        attempts: Arc<AtomicUsize>,
    }

    #[derive(Default)]
    struct Stage {
        log: Mutex<Vec<String>>,
        running: AtomicUsize,
        most: AtomicUsize,
        most_alone: AtomicUsize,
    }

    impl Planned {
        fn new(stage: &Arc<Stage>, name: &'static str, failures: usize) -> Self {
            Self { name, failures, panics: false, stage: Arc::clone(stage), attempts: Arc::default() }
        }
    }

    impl Trial for Planned {
        fn name(&self) -> String {
            self.name.to_owned()
        }

        async fn run(&self, alone: bool) -> Result<String> {
            let attempt = self.attempts.fetch_add(1, Ordering::SeqCst) + 1;
            self.stage.log.lock().unwrap().push(format!("{} {attempt}", self.name));
            let running = self.stage.running.fetch_add(1, Ordering::SeqCst) + 1;
            let most = if alone { &self.stage.most_alone } else { &self.stage.most };
            most.fetch_max(running, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.stage.running.fetch_sub(1, Ordering::SeqCst);
            if attempt > self.failures {
                return Ok("as planned".to_owned());
            }
            assert!(!self.panics, "as planned");
            bail!("as planned")
        }

        fn keep(&self) -> Option<PathBuf> {
            Some(format!("{}.failed-{}", self.name, self.attempts.load(Ordering::SeqCst)).into())
        }
    }

    fn runner() -> Runner {
        Runner::new(Report::new(None).unwrap(), None)
    }

    async fn run(trials: Vec<Planned>, at_once: usize) -> Vec<Record> {
        run_with(runner(), trials, at_once).await
    }

    async fn run_with(runner: Runner, trials: Vec<Planned>, at_once: usize) -> Vec<Record> {
        let failed = runner.side_by_side(trials, at_once).await;
        runner.again(failed).await;
        let mut records = runner.end().unwrap();
        // Those that ran at the same time ended in any order.
        records.sort_by(|one, other| one.name.cmp(&other.name));
        records
    }

    fn brief(records: &[Record]) -> Vec<(&str, Outcome, usize, Option<&str>)> {
        records
            .iter()
            .map(|record| {
                let log = record.log.as_ref().map(|log| log.to_str().unwrap());
                (record.name.as_str(), record.outcome, record.attempts, log)
            })
            .collect()
    }

    #[tokio::test]
    async fn what_fails_is_tried_twice_more_and_alone() {
        let stage = Arc::new(Stage::default());
        let trials = [("passes", 0), ("once", 1), ("twice", 2), ("always", 9), ("too", 0)];
        let trials = trials.map(|(name, failures)| Planned::new(&stage, name, failures)).to_vec();
        let records = run(trials, 2).await;
        assert_eq!(
            brief(&records),
            [
                ("always", Outcome::Failed, 3, Some("always.failed-3")),
                ("once", Outcome::Flaky, 2, Some("once.failed-1")),
                ("passes", Outcome::Passed, 1, None),
                ("too", Outcome::Passed, 1, None),
                ("twice", Outcome::Flaky, 3, Some("twice.failed-2")),
            ]
        );
        assert_eq!(stage.most.load(Ordering::SeqCst), 2);
        assert_eq!(stage.most_alone.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn tests_begin_in_their_order_and_so_many_at_once() {
        let stage = Arc::new(Stage::default());
        let names = ["a", "b", "c", "d", "e"];
        run(names.map(|name| Planned::new(&stage, name, 0)).to_vec(), 3).await;
        assert_eq!(*stage.log.lock().unwrap(), ["a 1", "b 1", "c 1", "d 1", "e 1"]);
        assert_eq!(stage.most.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn what_there_is_no_time_for_is_left_out_and_told() {
        let stage = Arc::new(Stage::default());
        let late = Runner::new(Report::new(None).unwrap(), Some(Duration::ZERO));
        let records = run_with(late, vec![Planned::new(&stage, "late", 0)], 2).await;
        assert_eq!(brief(&records), [("late", Outcome::LeftOut, 0, None)]);
        assert!(stage.log.lock().unwrap().is_empty());
        let in_time = Runner::new(Report::new(None).unwrap(), Some(Duration::from_secs(3600)));
        let records = run_with(in_time, vec![Planned::new(&stage, "in time", 0)], 2).await;
        assert_eq!(brief(&records), [("in time", Outcome::Passed, 1, None)]);
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_of_its_test() {
        let stage = Arc::new(Stage::default());
        let panicking = Planned { panics: true, ..Planned::new(&stage, "panics", 2) };
        let records = run(vec![panicking, Planned::new(&stage, "passes", 0)], 2).await;
        assert_eq!(
            brief(&records),
            [("panics", Outcome::Flaky, 3, Some("panics.failed-2")), ("passes", Outcome::Passed, 1, None)]
        );
    }

    #[tokio::test]
    async fn where_much_fails_nothing_is_tried_again() {
        let stage = Arc::new(Stage::default());
        let trials = vec![Planned::new(&stage, "broken", 1); AGAIN_MAX + 1];
        // Clones share their count: each is the first attempt of a test of its own.
        let trials = trials.into_iter().map(|trial| Planned { attempts: Arc::default(), ..trial }).collect();
        let records = run(trials, 4).await;
        assert_eq!(records.len(), AGAIN_MAX + 1);
        assert!(records.iter().all(|record| (record.outcome, record.attempts) == (Outcome::Failed, 1)));
    }
}
