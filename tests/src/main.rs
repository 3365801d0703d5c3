//! `tripod-clients`: real JAX and TensorFlow clients against real clusters. `cargo xtask test` prepares the Python
//! environments and starts it, once.
//!
//! | module | what |
//! |---|---|
//! | [`settings`] | what the driver is told |
//! | [`table`] | what runs of which release |
//! | [`cases`] | the tests |
//! | [`trial`] | a test with all that it needs to be run, and run again |
//! | [`runner`] | tests side by side, and what failed again |
//! | [`logs`] | where a test writes, and what is kept of it |
//! | [`progress`] | what is told meanwhile |
//! | [`report`] | how tests ended, for whoever started the driver |

mod cases;
mod logs;
mod progress;
mod report;
mod runner;
mod settings;
mod table;
mod trial;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Parser;

use crate::cases::Case;
use crate::report::{Outcome, Record, Report};
use crate::runner::{Failed, Runner};
use crate::settings::{Arguments, Missing, Settings};
use crate::trial::{Prepared, Shared};

/// The arguments are wrong; clap says so too.
const WRONG: u8 = 2;
/// Everything that ran passed, and something was missing.
const INCOMPLETE: u8 = 4;
/// Of the tests that share a cluster, so many run at the same time as of others: they sleep even more.
const SHARING: usize = 2;

// Tests call what blocks for moments, a process that ends or starts: that must not hold up those beside them.
#[tokio::main(worker_threads = 16)]
async fn main() -> ExitCode {
    let settings = match Settings::new(Arguments::parse()) {
        Ok(settings) => Arc::new(settings),
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(WRONG);
        }
    };
    let cases = in_order(table::cases(&settings));
    if settings.list {
        cases.iter().for_each(|case| println!("{case}"));
        return ExitCode::SUCCESS;
    }
    match run(&settings, cases).await {
        Ok(records) => told(&records, &settings.missing),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What takes long begins first.
fn in_order(mut cases: Vec<Case>) -> Vec<Case> {
    cases.sort_by_key(|case| std::cmp::Reverse(case.usual_s()));
    cases
}

async fn run(settings: &Arc<Settings>, cases: Vec<Case>) -> Result<Vec<Record>> {
    settings.make_results()?;
    let runner = Runner::new(Report::new(settings.report.as_deref())?, settings.begin_within);
    let (sharing, others): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(Case::shares);
    let others = others.into_iter().map(|case| Prepared::alone(case, settings)).collect();
    let all = async {
        let (mut failed, more) =
            tokio::join!(runner.side_by_side(others, settings.jobs), on_shared(&runner, settings, sharing));
        failed.extend(more);
        runner.again(failed).await;
    };
    tokio::select! {
        () = all => {}
        () = runner.watch() => {}
    }
    settings.missing.iter().for_each(|missing| runner.miss(missing));
    runner.end()
}

/// Runs those that share a cluster, and ends it.
async fn on_shared(runner: &Runner, settings: &Arc<Settings>, cases: Vec<Case>) -> Vec<Failed<Prepared>> {
    if cases.is_empty() {
        return Vec::new();
    }
    let shared = Arc::new(Shared::start(settings).await);
    let prepare = |case| Prepared::on(case, settings, &shared);
    let mut failed =
        runner.side_by_side(cases.into_iter().map(prepare).collect(), settings.jobs * SHARING).await;
    failed.extend(runner.side_by_side(vec![prepare(Case::DevEnds)], 1).await);
    failed
}

/// Tells how everything ended.
fn told(records: &[Record], missing: &[Missing]) -> ExitCode {
    let of = |outcome| records.iter().filter(move |record| record.outcome == outcome);
    let (passed, flaky) = (of(Outcome::Passed).count(), of(Outcome::Flaky).count());
    let failed = of(Outcome::Failed).count();
    let left_out: Vec<&str> = of(Outcome::LeftOut).map(|record| &*record.name).collect();
    println!("client tests: {passed} passed, {flaky} flaky, {failed} failed, {} missing", missing.len());
    if !left_out.is_empty() {
        println!("left out, as there was no time: {}", left_out.join(", "));
    }
    for record in of(Outcome::Flaky) {
        println!("flaky: {} ({})", record.name, kept(record));
    }
    for Missing { version, why } in missing {
        println!("missing: {version}: {why}");
    }
    for record in of(Outcome::Failed) {
        let (name, kept) = (&record.name, kept(record));
        println!("failed: {name} ({kept}); to repeat: cargo xtask test --only clients --filter '{name}'");
    }
    ExitCode::from(status(records, missing))
}

fn kept(record: &Record) -> String {
    match &record.log {
        Some(log) => format!("kept log: {}", log.display()),
        None => "it has written nothing".to_owned(),
    }
}

fn status(records: &[Record], missing: &[Missing]) -> u8 {
    let failed = records.iter().any(|record| record.outcome == Outcome::Failed);
    match (failed, missing) {
        (false, [_, ..]) => INCOMPLETE,
        (false, []) if records.iter().any(|record| record.outcome != Outcome::LeftOut) => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_tells_what_failed_and_what_was_missing() {
        let record = |outcome| Record {
            name: "test".to_owned(),
            outcome,
            seconds: 1.0,
            attempts: 1,
            log: None,
            error: None,
        };
        let outcomes = [Outcome::Passed, Outcome::Flaky, Outcome::Failed, Outcome::LeftOut];
        let [passed, flaky, failed, left_out] = outcomes.map(record);
        let missing = [Missing { version: "2.12.0".to_owned(), why: "no Python".to_owned() }];
        assert_eq!(status(&[passed.clone(), flaky.clone()], &[]), 0);
        assert_eq!(status(&[passed.clone(), flaky], &missing), INCOMPLETE);
        assert_eq!(status(&[passed.clone(), left_out.clone()], &[]), 0);
        assert_eq!(status(&[left_out], &[]), 1);
        assert_eq!(status(&[passed, failed], &missing), 1);
        assert_eq!(status(&[], &missing), INCOMPLETE);
        assert_eq!(status(&[], &[]), 1);
    }

    #[test]
    fn what_takes_long_begins_first() {
        let cases =
            table::cases(&Settings::of(&["--python=0.12.0.1=p", "--python=0.4.13=p", "--all-clients"]));
        let usual: Vec<u32> = in_order(cases).iter().map(Case::usual_s).collect();
        assert!(usual.is_sorted_by(|one, other| one >= other), "{usual:?}");
        assert!(usual.first() > usual.last());
    }
}
