//! `cargo xtask`: the project's own automation. Knows cargo, files and Python environments; knows
//! nothing of Tripod's protocols.
//!
//! | module | purpose |
//! |---|---|
//! | `stage` | named steps with progress and a summary |
//! | `verify` | what can be said without running anything: `tidy`, `edges`, `floors`, `deny`, fmt, clippy, doc |
//! | `test` | verify, build, Rust tests, real clients, simulation, chaos |
//! | `machine` | what the machine is, and lacks |
//! | `rust_tests` | the tests that cargo builds |
//! | `monitoring` | alerts and dashboards before a real Prometheus |
//! | `report` | where the time went, what was flaky |
//! | `fuzz` | hostile bytes for everything that reads bytes of others |
//! | `soak` | the Rust tests again and again on a busy machine |
//! | `planted` | builds that break a promise, and whether that is noticed |
//! | `mutants` | small mistakes in a copy of the tree, and whether a test notices |
//! | `clients` | Python environments with pinned releases of jaxlib and TensorFlow |
//! | `dist` | what users install: tarball, packages, wheels, chart, image |
//! | `site` | the documentation as a site |
//! | `newcomer` | README and tutorial, typed on a machine that has nothing but the wheels |
//! | `clean_root` | a root over this machine's system, with nothing of ours in it |
//! | `deploy` | tests of the files in `deploy/` |
//! | `bench` | release builds beside their peers |
//! | `cargo` | running cargo and others |

mod bench;
mod cargo;
mod clean_root;
mod clients;
mod deny;
#[cfg(test)]
mod deploy;
mod dist;
mod edges;
mod floors;
mod fuzz;
mod machine;
mod monitoring;
mod mutants;
mod newcomer;
mod planted;
mod report;
mod rust_tests;
mod site;
mod soak;
mod stage;
mod test;
mod tidy;
mod venv;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The project's automation.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the tree without changing it: tidy, edges, floors, fmt, clippy, doc.
    Verify {
        /// Run only this stage.
        #[arg(long)]
        only: Option<String>,
    },
    /// Verify, build, run all Rust tests, real clients against real clusters, the simulation, and chaos.
    Test(test::Options),
    /// Run the Rust tests 20 times in a row on a machine that is made busy.
    Soak(soak::Options),
    /// Feed hostile bytes to everything that reads bytes of others.
    Fuzz(fuzz::Options),
    /// Format, and apply what clippy can repair by itself.
    Fix,
    /// Build nodes that break a promise, run each of them under faults, and see it caught.
    Planted(planted::Options),
    /// Make small mistakes in a copy of the tree, one at a time, and see each of them caught by a test.
    Mutants(mutants::Options),
    /// Make what users install: a tarball, a Debian package, wheels, a chart and an image.
    Dist(dist::Options),
    /// Make the documentation a site with search, in `target/site/book`, and follow its links.
    Site(site::Options),
    /// Install the wheels where nothing else is, and type README and tutorial there, word for word. Needs root.
    Newcomer(newcomer::Options),
    /// Build in release mode and run a benchmark: `cargo xtask bench kv --vs-etcd`.
    Bench {
        /// Passed to `tripod-chaos bench`; those after `mars` to `services/python/bench/compare_mars.py`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain alone: a backtrace of this program helps nobody to mend the tree.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Verify { only } => stage::run_all("verify", only.as_deref(), verify::stages()),
        Task::Test(options) => test::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Fuzz(options) => fuzz::run(&options, test::turn().into()),
        Task::Fix => fix(),
        Task::Planted(options) => planted::run(&options),
        Task::Mutants(options) => mutants::run(&options),
        Task::Dist(options) => dist::run(&options),
        Task::Site(options) => site::run_site(&options),
        Task::Newcomer(options) => newcomer::run(&options),
        Task::Bench { arguments } => bench::bench(&arguments),
    }
}

fn fix() -> Result<()> {
    cargo::run(cargo::cargo(&[
        "clippy",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
        "--workspace",
        "--all-targets",
    ]))?;
    cargo::run(cargo::cargo(&["fmt", "--all"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        let parsed = Arguments::parse_from(["xtask", "bench", "kv", "--vs-etcd", "--rounds", "2"]);
        let Task::Bench { arguments } = parsed.task else { panic!("not a benchmark") };
        assert_eq!(arguments, ["kv", "--vs-etcd", "--rounds", "2"]);
    }
}
