//! `cargo xtask newcomer`: the wheels are installed on a machine that has nothing but Python, and README and the tutorial are
//! typed there as they stand, with JAX, at the ports that they name. What they print must be what the pages show.
//!
//! | module | purpose |
//! |---|---|
//! | `readme` | the chapters of README that have commands |
//! | `shell` | a shell on that machine that is typed into |
//! | `page`, `screen` | blocks of the tutorial, and what a page shows beside what was printed; shared with the tests of pages |

#[path = "../../../services/tripod/tests/runbooks/page.rs"]
mod page;
mod readme;
#[path = "../../../services/tripod/tests/runbooks/screen.rs"]
#[expect(dead_code, reason = "tests of pages assert, and this answers")]
mod screen;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::shell::Shell;
use crate::cargo::{root, run_logged, target_dir};
use crate::clean_root::{CleanRoot, HERE, Network};
use crate::dist;

/// From `pip install` to the first barrier of a gang.
const FIRST_BARRIER_GOAL: Duration = Duration::from_secs(60);
/// Words that must mean nothing on such a machine.
const ABSENT: [&str; 3] = ["cargo", "rustc", "tripod"];
/// What it must have of its system.
const PRESENT: &str = "python3 -c 'import ensurepip, venv' && ip -V";
/// What pip is given, in this order, and a word for it.
const INSTALLED: [(&str, &str); 3] =
    [("tripod", "wheels/tripod-*.whl"), ("jax", "jax"), ("tripod-ray", "wheels/tripod_ray-*.whl numpy")];

/// Where and with what.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// A program that was built with `cargo build --release -p tripod` before; without it one is built.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The system of the machine, such as one that debootstrap made with python3-venv, iproute2 and
    /// ca-certificates.
    #[arg(long, value_name = "DIR", default_value = "/")]
    base: PathBuf,
    /// Only this one of its steps.
    #[arg(long, value_enum)]
    only: Option<Step>,
}

/// What is read and typed, each on a machine that was started anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// README: a gang, its leader killed, everyday commands.
    Gang,
    /// README: JAX without an agent.
    List,
    /// README: tasks and objects.
    Tasks,
    /// The tutorial from its first line to its last.
    Tutorial,
}

/// Installs and types everything, and prints how long that took.
///
/// # Errors
/// A command of a page failed or printed something else than the page shows; the machine cannot be made here.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = target_dir()?.join("newcomer");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    dist::wheels(options.binary.clone(), folder.join("wheels"))?;
    let machine = Machine { root: CleanRoot::new(&options.base, &folder)?, folder };
    machine.check()?;
    let installed = machine.install()?;
    for step in [Step::Gang, Step::List, Step::Tasks, Step::Tutorial] {
        if options.only.is_some_and(|only| only != step) {
            continue;
        }
        let begun = Instant::now();
        match step {
            Step::Gang => {
                let gang = readme::gang(&machine)?;
                tell_goal("pip install to the first barrier", installed + gang.first_barrier);
                tell("README's first line to a gang that has survived its leader", gang.survived);
                tell("the longest step, in which the leader was killed", gang.longest_step);
            }
            Step::List => readme::list(&machine)?,
            Step::Tasks => readme::tasks(&machine)?,
            Step::Tutorial => tutorial(&machine)?,
        }
        tell(&format!("{step:?}, all of it"), begun.elapsed());
    }
    Ok(())
}

/// A machine with nothing of ours but the wheels.
struct Machine {
    root: CleanRoot,
    /// What is `/here` on it.
    folder: PathBuf,
}

impl Machine {
    /// # Errors
    /// It cannot be made, lacks something, or has what a newcomer does not have.
    fn check(&self) -> Result<()> {
        if let Err(why) = self.root.try_it() {
            bail!("no clean machine can be made here, which needs root and overlays: {why}");
        }
        self.once(Network::Own, "present", PRESENT)
            .context("the machine lacks what pages take for granted: python3-venv, iproute2")?;
        for word in ABSENT {
            let finds = self.once(Network::Own, "absent", &format!("command -v {word}"));
            if finds.is_ok() {
                bail!("`{word}` is on the machine that is to have nothing of ours");
            }
        }
        Ok(())
    }

    /// What a newcomer installs; how long it took, with what was fetched.
    ///
    /// # Errors
    /// pip failed.
    fn install(&self) -> Result<Duration> {
        let begun = Instant::now();
        self.once(Network::Ours, "venv", "python3 -m venv venv")?;
        for (name, what) in INSTALLED {
            let before = Instant::now();
            let line = format!("venv/bin/pip install --no-cache-dir {what}");
            self.once(Network::Ours, &format!("pip-{name}"), &line)?;
            tell(&format!("pip install {what}"), before.elapsed());
        }
        Ok(begun.elapsed())
    }

    /// Runs a line on the machine, started anew.
    fn once(&self, network: Network, name: &str, line: &str) -> Result<()> {
        let command: Command = self.root.command(network, &[], &["sh", "-c", line]);
        run_logged(command, &self.folder.join("logs").join(format!("{name}.log")))
            .with_context(|| format!("`{line}`"))
    }

    /// A shell on it, in an empty directory with those files of `examples`. `tripod` and `python` are those that were
    /// installed; the ports of the pages are free.
    fn shell(&self, name: &str, examples: &[&str]) -> Result<Shell> {
        let place = self.folder.join(name);
        fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
        for example in examples {
            let source = root().join("examples").join(example);
            fs::copy(&source, place.join(example))
                .with_context(|| format!("cannot copy {}", source.display()))?;
        }
        let path = format!("{HERE}/venv/bin:{}", crate::clean_root::PATH);
        let command = self.root.command(Network::Own, &[("PATH", &path)], &["sh"]);
        Shell::begin(command, &place, &format!("{HERE}/{name}"))
    }
}

/// # Errors
/// As [`run`].
fn tutorial(machine: &Machine) -> Result<()> {
    let text = read("docs/tutorial.md")?;
    let mut shell = machine.shell("tutorial", &["jax_gang.py"])?;
    for block in page::blocks(&text) {
        let typed = block.lines.join("; ");
        say(&typed);
        match block.outcome {
            page::Outcome::Success => shell.shows(&block.lines, &block.shows)?,
            page::Outcome::SuccessAtLast => shell.shows_at_last(&block.lines, &block.shows)?,
            page::Outcome::Failure => bail!("`{typed}` is to fail, which no step of the tutorial does"),
        }
        if block.target != page::Target::Anywhere {
            bail!("`{typed}` is for another host, and there is one");
        }
    }
    Ok(())
}

/// A page of the project.
fn read(page: &str) -> Result<String> {
    let file: PathBuf = root().join(Path::new(page));
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

fn say(what: &str) {
    eprintln!("newcomer: {what}");
}

fn tell(what: &str, took: Duration) {
    println!("{:8.2} s  {what}", took.as_secs_f64());
}

fn tell_goal(what: &str, took: Duration) {
    let over = if took > FIRST_BARRIER_GOAL { "OVER the goal" } else { "goal" };
    tell(&format!("{what}   {over}: at most {} s", FIRST_BARRIER_GOAL.as_secs()), took);
}
