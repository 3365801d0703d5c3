//! `cargo xtask mutants`: whether the tests of every change notice when a rule is broken.
//!
//! Each row of the [`table`] is a small mistake in one file, such as somebody could make, and the promise that it
//! breaks. The tree is copied to `target/mutants/tree`; there one mistake at a time is made, and the tests that the row
//! names are built and run. A mistake that no test notices is a rule that nobody guards: it needs a test, and not
//! another row. Where tests are taken out, this says what they alone had noticed.
//!
//! | module | purpose |
//! |---|---|
//! | `table` | the rows |
//! | `row` | one mistake, and making it |
//! | `tree` | the copy |
//! | `runner` | building and running tests in it |
//! | `failing` | which tests failed |
//! | `check` | whether the rows are about the tree as it is |

mod check;
mod failing;
mod row;
mod runner;
mod table;
mod tree;

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::cargo::{root, target_dir};
pub(crate) use check::check;
use row::Mutant;
use runner::{Outcome, Runner};
use tree::Tree;

/// Make one small mistake at a time in a copy of the tree, and see that a test notices.
///
/// Takes about a minute for each mistake, and some more to begin with. The working tree is not touched.
#[derive(Args, Clone)]
#[command(after_help = "\
Each mistake breaks a promise that the table in xtask/src/mutants/table names, and the tests that run in every
change should notice it:

  cargo xtask mutants --list                   what mistakes there are, and which promises they break
  cargo xtask mutants                          make all of them, one after the other
  cargo xtask mutants --only time-runs-back    make this one only

One that is NOT caught is a rule that no test guards any more. Add the smallest test that fails with the mistake and
passes without it, beside the code, named after the rule; or bring back the test that was taken out.")]
pub(crate) struct Options {
    /// Only this mutant.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Tell which mutants there are, and run nothing.
    #[arg(long)]
    list: bool,
    /// Run all tests that a row names and tell every one that fails, not only the first: how many guard the rule.
    #[arg(long)]
    every: bool,
}

/// Makes the mistakes and runs the tests.
///
/// # Errors
/// A mistake that nothing noticed, or that cannot be made; an unknown name.
pub(crate) fn run(options: &Options) -> Result<()> {
    let picked = picked(options.only.as_deref())?;
    if options.list {
        for Mutant { name, promise, file, .. } in picked {
            println!("{name:34} {file}\n    {promise}");
        }
        return Ok(());
    }
    let place = target_dir()?.join("mutants");
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let _alone = locked(&place)?;
    let tree = Tree::synced(&root(), &place.join("tree"))?;
    let runner = Runner::new(tree.root(), &place.join("build"), options.every);
    let (mut missed, mut broken) = (Vec::new(), Vec::new());
    for mutant in picked {
        let Mutant { name, tests, .. } = mutant;
        let began = Instant::now();
        let outcome = noticed(mutant, &tree, &runner);
        let seconds = began.elapsed().as_secs_f64();
        match outcome {
            Ok(Outcome::Noticed(by)) => println!("{name:34} caught by {} ({seconds:.0} s)", by.join(", ")),
            Ok(Outcome::Unnoticed) => {
                println!("{name:34} NOT caught by {tests} ({seconds:.0} s)");
                missed.push(*name);
            }
            Err(error) => {
                println!("{name:34} NOT made: {error:#}");
                broken.push(*name);
            }
        }
    }
    if let Some(first) = broken.first() {
        bail!(
            "{} could not be made or tried; mend their rows in xtask/src/mutants/table, and run cargo xtask mutants \
             --only {first}",
            broken.join(", ")
        );
    }
    if let Some(first) = missed.first() {
        bail!(
            "no test noticed {}; each breaks a promise (cargo xtask mutants --list) that is not guarded any more: add \
             the smallest test that fails with the mistake and passes without it, and run cargo xtask mutants \
             --only {first}",
            missed.join(", ")
        );
    }
    Ok(())
}

fn picked(only: Option<&str>) -> Result<Vec<&'static Mutant>> {
    let picked: Vec<_> = table::all().filter(|mutant| only.is_none_or(|only| only == mutant.name)).collect();
    if picked.is_empty() {
        let names: Vec<&str> = table::all().map(|mutant| mutant.name).collect();
        bail!(
            "no mutant is called `{}`; there are {}; cargo xtask mutants --list tells what each breaks",
            only.unwrap_or_default(),
            names.join(", ")
        );
    }
    Ok(picked)
}

/// Two runs would make their mistakes in one tree.
fn locked(place: &Path) -> Result<File> {
    let path = place.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another `cargo xtask mutants` runs in {}; run this one when that has ended",
                place.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Makes one mistake, and says who noticed.
fn noticed(mutant: &Mutant, tree: &Tree, runner: &Runner) -> Result<Outcome> {
    let Mutant { file, tests, .. } = mutant;
    let text = tree.read(file)?;
    let mutated = mutant.apply(&text).map_err(|rot| anyhow!("{file}: {rot}"))?;
    tree.write(file, &mutated)?;
    let built = runner.build(tests).context("it does not compile, or the tree as it is does not");
    let outcome = built.and_then(|()| runner.run(tests));
    // Whatever came of it, the next one is made in the tree as it was.
    tree.write(file, &text)?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_those_that_there_are() {
        let refusal = picked(Some("eleven")).err().unwrap().to_string();
        assert!(refusal.contains("`eleven`") && refusal.contains("--list"), "{refusal}");
        let first = table::all().next().unwrap();
        assert!(refusal.contains(first.name), "{refusal}");
        assert_eq!(picked(Some(first.name)).unwrap().len(), 1);
    }
}
