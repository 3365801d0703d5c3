//! Stages: named steps with what they need, progress, elapsed time and a summary. A stage that fails keeps back only
//! those that need it, so that one run says all that is wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

/// One step of a task.
pub(crate) struct Stage {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    needs: &'static [&'static str],
    beside: bool,
    run: Box<dyn FnOnce() -> Result<()> + Send>,
}

impl Stage {
    /// A stage of that name.
    pub(crate) fn new(name: &'static str, run: impl FnOnce() -> Result<()> + Send + 'static) -> Self {
        Self { name, needs: &[], beside: false, run: Box::new(run) }
    }

    /// The same, which is left out when one of those did not end well. One that runs beside others is waited for.
    pub(crate) fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    /// The same, which runs beside those that come after it.
    pub(crate) fn beside(self) -> Self {
        Self { beside: true, ..self }
    }
}

/// What a stage answers when this machine lacks something, and when nothing that it ran failed: the run goes on, and
/// is not green.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// How a stage ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Ok,
    Failed(anyhow::Error),
    /// This machine lacks something.
    Missing(String),
    /// A stage that it needs did not end well.
    LeftOut(&'static str),
}

impl Outcome {
    fn of(result: Result<()>) -> Self {
        match result {
            Ok(()) => Self::Ok,
            Err(error) => match error.downcast::<Missing>() {
                Ok(missing) => Self::Missing(missing.0),
                Err(error) => Self::Failed(error),
            },
        }
    }

    /// In a word or two.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(_) => "FAILED",
            Self::Missing(_) => "incomplete",
            Self::LeftOut(_) => "left out",
        }
    }
}

/// A stage that was run, or left out.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    /// It ran beside others, so that its time is in theirs.
    pub(crate) beside: bool,
    pub(crate) outcome: Outcome,
}

/// Runs the stages in order. `only` picks one by name, whatever it needs.
///
/// # Errors
/// An unknown `only`. How each stage ended is in the answer; [`verdict`] says what that means.
pub(crate) fn run(task: &str, only: Option<&str>, mut stages: Vec<Stage>) -> Result<Vec<Ended>> {
    let names: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
    if let Some(only) = only {
        if !names.contains(&only) {
            bail!("`{task}` has no stage `{only}`; it has {}", names.join(", "));
        }
        stages.retain(|stage| stage.name == only);
    }
    let mut runner = Runner::new(task);
    let picked: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
    for stage in stages {
        runner.start(stage, &picked);
    }
    Ok(runner.end())
}

/// The same for a task that is nothing but its stages.
///
/// # Errors
/// An unknown `only`; a stage that did not end well.
pub(crate) fn run_all(task: &str, only: Option<&str>, stages: Vec<Stage>) -> Result<()> {
    let begun = Instant::now();
    let ended = run(task, only, stages)?;
    verdict(task, &ended)?;
    let times = ended.iter().map(|ended| format!("{} {:.1} s", ended.name, ended.took.as_secs_f64()));
    let times: Vec<_> = times.collect();
    eprintln!("[{:7.1} s] {task}: ok ({})", begun.elapsed().as_secs_f64(), times.join(", "));
    Ok(())
}

/// Whether all is well.
///
/// # Errors
/// What failed, with the command that repeats only that; and what could not be done here.
pub(crate) fn verdict(task: &str, ended: &[Ended]) -> Result<()> {
    let mut lines = Vec::new();
    for stage in ended {
        let name = stage.name;
        match &stage.outcome {
            Outcome::Ok => {}
            Outcome::Failed(error) => lines.push(format!(
                "stage `{name}` failed: {error:#}\n  to repeat only this one: cargo xtask {task} --only {name}"
            )),
            Outcome::Missing(what) => lines.push(format!("stage `{name}` is not complete: {what}")),
            Outcome::LeftOut(needed) => {
                lines.push(format!("stage `{name}` was left out: it needs `{needed}`"));
            }
        }
    }
    if lines.is_empty() { Ok(()) } else { Err(anyhow!("{task} is not green:\n{}", lines.join("\n"))) }
}

struct Runner<'a> {
    task: &'a str,
    begun: Instant,
    ended: Vec<Ended>,
    beside: BTreeMap<&'static str, mpsc::Receiver<Ended>>,
}

impl<'a> Runner<'a> {
    fn new(task: &'a str) -> Self {
        Self { task, begun: Instant::now(), ended: Vec::new(), beside: BTreeMap::new() }
    }

    fn start(&mut self, stage: Stage, picked: &[&str]) {
        let Stage { name, needs, beside, run } = stage;
        for &needed in needs.iter().filter(|needed| picked.contains(needed)) {
            self.wait_for(needed);
            let is_ok = |ended: &Ended| {
                ended.name == needed && matches!(ended.outcome, Outcome::Ok | Outcome::Missing(_))
            };
            if !self.ended.iter().any(is_ok) {
                let outcome = Outcome::LeftOut(needed);
                self.note(Ended { name, took: Duration::ZERO, beside, outcome });
                return;
            }
        }
        self.say(&format!("{name}{} ...", if beside { " (beside what follows)" } else { "" }));
        let begun = Instant::now();
        let run = move || Ended { name, outcome: Outcome::of(run()), took: begun.elapsed(), beside };
        if beside {
            let (tell, told) = mpsc::channel();
            // Nobody who listens is gone before it is told: `end` waits for everybody.
            thread::spawn(move || drop(tell.send(run())));
            self.beside.insert(name, told);
        } else {
            self.note(run());
        }
    }

    /// Waits for a stage that runs beside others, if it is one.
    fn wait_for(&mut self, name: &'static str) {
        if let Some(told) = self.beside.remove(name) {
            let ended = told.recv().unwrap_or_else(|_| Ended {
                name,
                took: self.begun.elapsed(),
                beside: true,
                outcome: Outcome::Failed(anyhow!("its thread panicked")),
            });
            self.note(ended);
        }
    }

    fn note(&mut self, ended: Ended) {
        let seconds = ended.took.as_secs_f64();
        self.say(&format!("{} {} after {seconds:.1} s", ended.name, ended.outcome.word()));
        match &ended.outcome {
            Outcome::Ok => {}
            Outcome::Failed(error) => eprintln!("  {error:#}"),
            Outcome::Missing(what) => eprintln!("  {what}"),
            Outcome::LeftOut(needed) => eprintln!("  it needs `{needed}`"),
        }
        self.ended.push(ended);
    }

    fn say(&self, what: &str) {
        eprintln!("[{:7.1} s] {}: {what}", self.begun.elapsed().as_secs_f64(), self.task);
    }

    fn end(mut self) -> Vec<Ended> {
        let left: Vec<_> = self.beside.keys().copied().collect();
        for name in left {
            self.wait_for(name);
        }
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    type Log = Arc<Mutex<Vec<&'static str>>>;

    fn recorded(
        log: &Log,
        name: &'static str,
        outcome: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Stage {
        let log = Arc::clone(log);
        Stage::new(name, move || {
            log.lock().unwrap().push(name);
            outcome()
        })
    }

    #[test]
    fn a_failure_keeps_back_only_what_needs_it() {
        let log = Log::default();
        let stages = vec![
            recorded(&log, "one", || bail!("as planned")),
            recorded(&log, "two", || Ok(())).needs(&["one"]),
            recorded(&log, "three", || Ok(())).needs(&["two"]),
            recorded(&log, "four", || Ok(())),
        ];
        let ended = run("demo", None, stages).unwrap();
        assert_eq!(*log.lock().unwrap(), ["one", "four"]);
        let words: Vec<_> = ended.iter().map(|ended| ended.outcome.word()).collect();
        assert_eq!(words, ["FAILED", "left out", "left out", "ok"]);
        let error = verdict("demo", &ended).unwrap_err().to_string();
        assert!(error.contains("as planned") && error.contains("cargo xtask demo --only one"), "{error}");
        assert!(error.contains("`three` was left out: it needs `two`"), "{error}");
    }

    #[test]
    fn only_runs_one_stage_whatever_it_needs() {
        let log = Log::default();
        let stages = vec![
            recorded(&log, "one", || Ok(())),
            recorded(&log, "two", || Ok(())).needs(&["one"]),
            recorded(&log, "three", || Ok(())),
        ];
        run_all("demo", Some("two"), stages).unwrap();
        assert_eq!(*log.lock().unwrap(), ["two"]);
    }

    #[test]
    fn an_unknown_stage_is_refused_before_anything_runs() {
        let log = Log::default();
        let stages = vec![recorded(&log, "one", || Ok(()))];
        assert!(run("demo", Some("eleven"), stages).is_err());
        assert!(log.lock().unwrap().is_empty());
    }

    #[test]
    fn what_a_machine_lacks_leaves_the_rest_to_be_run_and_is_not_green() {
        let log = Log::default();
        let stages = vec![
            recorded(&log, "one", || Err(Missing("no Python 3.12".to_owned()).into())),
            recorded(&log, "two", || Ok(())).needs(&["one"]),
        ];
        let ended = run("demo", None, stages).unwrap();
        assert_eq!(*log.lock().unwrap(), ["one", "two"]);
        let error = verdict("demo", &ended).unwrap_err().to_string();
        assert!(error.contains("not green") && error.contains("no Python 3.12"), "{error}");
    }

    #[test]
    fn a_stage_beside_others_is_waited_for_by_those_that_need_it_and_at_the_end() {
        let log = Log::default();
        let (go, gone) = mpsc::channel::<()>();
        let stages = vec![
            recorded(&log, "beside", move || Ok(gone.recv()?)).beside(),
            recorded(&log, "meanwhile", move || Ok(go.send(())?)),
            recorded(&log, "after", || Ok(())).needs(&["beside"]),
            recorded(&log, "failing", || bail!("as planned")).beside(),
        ];
        let ended = run("demo", None, stages).unwrap();
        let order: Vec<_> = ended.iter().map(|ended| (ended.name, ended.outcome.word())).collect();
        assert_eq!(order, [("meanwhile", "ok"), ("beside", "ok"), ("after", "ok"), ("failing", "FAILED")]);
        assert!(verdict("demo", &ended).is_err());
    }
}
