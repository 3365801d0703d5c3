//! `tripod-chaos run`, `list` and `replay`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::run::{Kept, Options, rules, run_scenario};
use super::{SCENARIOS, Scenario, bounds};
use tripod_checkers::check::check_all;
use tripod_checkers::history::History;
use tripod_checkers::report::{About, Report, Verdict};

const EXIT_STATUS: &str = "\
Exit status: 0 every promise was kept; 1 one was broken; 2 wrong usage; 3 the run proves nothing, because the
harness itself failed; 4 a checker ran out of its budget.";

const RUN_HELP: &str = "\
Examples:
  tripod-chaos run mixed --seed 7 --minutes 3
  tripod-chaos run hostile --minutes 1
  tripod-chaos run upgrade --before /opt/before/tripod --minutes 2
  TRIPOD_BIN=target/release/tripod tripod-chaos run partitions --minutes 10 --nodes 5 --out /var/tmp/run

The nodes are real processes of the `tripod` beside this program, or of TRIPOD_BIN. A seed decides which faults
come when; how the cluster answers is up to its processes, so a run that fails once need not fail each time.
`hostile` attacks the nodes that the run started, on loopback, and nothing else.
The report, the history of all calls, and after a failure the nodes' data and logs are left in --out.";

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_HELP}\n\n{EXIT_STATUS}"))]
pub struct RunArgs {
    /// Which run; `tripod-chaos list` says what each does
    #[arg(value_parser = scenario_name(), hide_possible_values = true)]
    scenario: &'static str,

    /// Decides which faults come when [default: drawn, and told]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// Length of the phase with faults; recovery and checks come on top
    #[arg(long, value_name = "M", default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,

    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(3..=6))]
    nodes: u64,

    /// For `upgrade`: the `tripod` of the build that the nodes are at first
    #[arg(long, value_name = "PATH")]
    before: Option<PathBuf>,

    /// Directory for what the run leaves [default: a new one in the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// What is written to standard output; progress goes to standard error
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Flags of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {}

/// Flags of `replay`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct ReplayArgs {
    /// `history.jsonl` of a run: checks it once more. `run.json` of a run: does the same run again
    file: PathBuf,

    /// Directory for what a run that is done again leaves [default: a new one in the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// What is written to standard output; progress goes to standard error
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

/// Runs one scenario.
///
/// # Errors
/// The harness failed before there was anything to report: no binary, no ports, no place for data.
pub async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    do_run(&args.options(), args.out, args.output).await
}

impl RunArgs {
    /// What decides the run, with a seed that is drawn if none was given.
    fn options(&self) -> Options {
        Options {
            scenario: self.scenario.to_owned(),
            seed: self.seed.unwrap_or_else(|| rand::random::<u32>().into()),
            minutes: self.minutes,
            nodes: self.nodes,
            before: self.before.clone(),
        }
    }
}

/// Tells every scenario in one sentence.
pub fn list(_: &ListArgs) {
    let width = SCENARIOS.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    for Scenario { name, about, .. } in SCENARIOS {
        print(&format!("{name:width$}  {about}\n"));
    }
    let about = "Whole clusters in one thread each, from one seed each; see `run simulation --help`.";
    print(&format!("{:width$}  {about}\n", tripod_simulation::NAME));
}

/// Checks a history again, or runs a plan again, by the name of the file.
///
/// # Errors
/// The file cannot be read, or as [`run`].
pub async fn replay(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let file = &args.file;
    if file.extension().is_some_and(|extension| extension == "json") {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let kept: Kept = serde_json::from_str(&text)
            .with_context(|| format!("{} is no `run.json` of a run", file.display()))?;
        return do_run(&kept.options, args.out, args.output).await;
    }
    let history = History::load(file)?;
    let checks = check_all(&history, &rules());
    let about = About {
        reproduce: format!("tripod-chaos replay {}", file.display()),
        bounds: bounds::of_history(&rules()),
        ..About::default()
    };
    let report = Report::new(&history, checks, about);
    tell(&report, args.output)?;
    Ok(exit(&report.verdict))
}

async fn do_run(options: &Options, out: Option<PathBuf>, output: Format) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::find(&options.scenario).with_context(|| {
        format!("there is no scenario {}; `tripod-chaos list` tells them", options.scenario)
    })?;
    let out = match out {
        Some(out) => out,
        None => tempfile::Builder::new().prefix("tripod-chaos-").tempdir()?.keep(),
    };
    let report = run_scenario(scenario, options, &out).await?;
    tell(&report, output)?;
    closing_words(&report, &out);
    Ok(exit(&report.verdict))
}

fn tell(report: &Report, output: Format) -> anyhow::Result<()> {
    match output {
        Format::Text => print(&report.markdown()),
        Format::Json => print(&(serde_json::to_string_pretty(report)? + "\n")),
    }
    Ok(())
}

/// Where to look, and after a failure the one command that does it again.
fn closing_words(report: &Report, out: &Path) {
    eprintln!("{}; everything lies in {}", report.verdict, out.display());
    if report.verdict != Verdict::Passed {
        eprintln!("once more: {}", report.reproduce);
    }
}

fn exit(verdict: &Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Passed => 0,
        Verdict::Violated { .. } => 1,
        Verdict::Void(_) => 3,
        Verdict::Undecided(_) => 4,
    })
}

/// Whoever reads may have closed the pipe, which is no failure of the run.
pub(super) fn print(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Whoever misspells one is told the nearest, and all of them. The simulation is among them, though it is found by its
/// place before this parser comes to it.
fn scenario_name() -> impl TypedValueParser<Value = &'static str> {
    let names = SCENARIOS.iter().map(|scenario| scenario.name).chain([tripod_simulation::NAME]);
    PossibleValuesParser::new(names).try_map(|name| {
        let found = Scenario::find(&name).map(|scenario| scenario.name);
        found
            .ok_or_else(|| format!("it comes first, with flags of its own: tripod-chaos run {name} --seed 1"))
    })
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let most = 7.0 * 24.0 * 60.0;
    if minutes > 0.0 && minutes <= most { Ok(minutes) } else { Err("more than 0, at most a week".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::super::UPGRADE;
    use super::*;

    /// `run` with nothing around it.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RunArgs,
    }

    fn parsed(line: &str) -> Options {
        let words = line.strip_prefix("tripod-chaos ").expect("the program").split(' ');
        Line::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}")).args.options()
    }

    /// The number is that of the walk-through of a new operator.
    #[test]
    fn n04_the_printed_command_is_the_run_that_it_was_printed_for() {
        for scenario in SCENARIOS {
            for (seed, minutes, nodes) in [(0, 1.0, 3), (u64::MAX, 0.1, 6), (990_001, 1.0 / 3.0, 4)] {
                let before = scenario.upgrades().then(|| PathBuf::from("/opt/before/tripod"));
                let options = Options { scenario: scenario.name.to_owned(), seed, minutes, nodes, before };
                assert_eq!(parsed(&options.reproduce()), options);
            }
        }
        let drawn = Line::try_parse_from(["run", "calm"]).expect("a scenario").args.options();
        assert_eq!(parsed(&drawn.reproduce()), drawn);
    }

    #[test]
    fn n04_the_printed_command_has_every_flag_that_decides_a_run() {
        let before = Some(PathBuf::from("tripod"));
        let options = Options { scenario: UPGRADE.to_owned(), seed: 1, minutes: 1.0, nodes: 3, before };
        let line = options.reproduce();
        // Where what the run leaves lies, and how it is printed, decide nothing.
        let elsewhere = ["out", "output", "help"];
        let command = Line::command();
        let flags = command.get_arguments().filter_map(clap::Arg::get_long);
        for flag in flags.filter(|flag| !elsewhere.contains(flag)) {
            assert!(line.contains(&format!(" --{flag} ")), "--{flag} is not in {line}");
        }
    }
}
