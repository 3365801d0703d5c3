//! Stages: named steps that run in order, with progress, elapsed time and a summary.

use std::time::Instant;

use anyhow::{Context, Result, bail};

/// One step of a task.
pub(crate) struct Stage {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    run: Box<dyn FnOnce() -> Result<()>>,
}

impl Stage {
    /// A stage of that name.
    pub(crate) fn new(name: &'static str, run: impl FnOnce() -> Result<()> + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Runs the stages in order and stops at the first one that fails: later stages would mostly repeat
/// the same complaint, and the cheap ones come first anyway. `only` picks one by name.
///
/// # Errors
/// The first failure, with the command that repeats only this stage; an unknown `only`.
pub(crate) fn run_all(task: &str, only: Option<&str>, stages: Vec<Stage>) -> Result<()> {
    let names: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
    if let Some(only) = only
        && !names.contains(&only)
    {
        bail!("`{task}` has no stage `{only}`; it has {}", names.join(", "));
    }
    let begin = Instant::now();
    let mut summary = Vec::new();
    for stage in stages {
        let name = stage.name;
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let stage_begin = Instant::now();
        eprintln!("[{:7.1} s] {task}: {name} ...", begin.elapsed().as_secs_f64());
        let outcome = (stage.run)();
        let seconds = stage_begin.elapsed().as_secs_f64();
        if outcome.is_err() {
            eprintln!("[{:7.1} s] {task}: {name} FAILED after {seconds:.1} s", begin.elapsed().as_secs_f64());
        }
        outcome.with_context(|| {
            format!(
                "{task}: stage `{name}` failed; to repeat only this one: cargo xtask {task} --only {name}"
            )
        })?;
        summary.push(format!("{name} {seconds:.1} s"));
    }
    eprintln!("[{:7.1} s] {task}: ok ({})", begin.elapsed().as_secs_f64(), summary.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    fn recorded(
        names: &[&'static str],
        failing: &'static str,
    ) -> (Rc<RefCell<Vec<&'static str>>>, Vec<Stage>) {
        let log = Rc::new(RefCell::new(Vec::new()));
        let stages = names
            .iter()
            .map(|&name| {
                let log = Rc::clone(&log);
                Stage::new(name, move || {
                    log.borrow_mut().push(name);
                    if name == failing { bail!("as planned") } else { Ok(()) }
                })
            })
            .collect();
        (log, stages)
    }

    #[test]
    fn stops_at_the_first_failure_and_names_the_stage() {
        let (log, stages) = recorded(&["one", "two", "three"], "two");
        let error = run_all("demo", None, stages).unwrap_err();
        assert_eq!(*log.borrow(), ["one", "two"]);
        assert!(error.to_string().contains("cargo xtask demo --only two"), "{error}");
    }

    #[test]
    fn only_runs_one_stage() {
        let (log, stages) = recorded(&["one", "two"], "");
        run_all("demo", Some("two"), stages).unwrap();
        assert_eq!(*log.borrow(), ["two"]);
    }

    #[test]
    fn an_unknown_stage_is_refused_before_anything_runs() {
        let (log, stages) = recorded(&["one"], "");
        assert!(run_all("demo", Some("eleven"), stages).is_err());
        assert!(log.borrow().is_empty());
    }
}
