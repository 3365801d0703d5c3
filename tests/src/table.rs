//! What runs of which release. This is the one place that decides it, and `tests/README.md` shows it.

use std::fmt;

use tripod_tests::jobs::Poll;

use crate::cases::agent::Part;
use crate::cases::directed::Target;
use crate::cases::fault_tolerant;
use crate::cases::program::Fault;
use crate::cases::raw::Dialect;
use crate::cases::{Case, mindspore, tensorflow};
use crate::settings::Settings;

/// In which runs tests of a release take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// In every run.
    Every,
    /// When it is the release's turn, and when `All` do.
    Turn,
    /// With `--all-clients`, or when a filter names the release.
    All,
    /// The release cannot do it, or shows nothing that another does not.
    Never,
}

use When::{All, Every, Never, Turn};

/// When these tests run, for each release.
struct Row<Kind: 'static, const RELEASES: usize>([When; RELEASES], &'static [Kind]);

/// A kind of test with a release of jaxlib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jaxlib {
    /// Our own scripts and the Python package, for which one interpreter will do.
    Scripts,
    Conformance,
    RawCalls,
    KilledTask,
    Heartbeats,
    /// Of releases that have `live_devices`.
    FaultTolerant(fault_tolerant::Part),
    UnixSocket,
    /// The program with each fault.
    Programs,
    Directed(Target),
    Agent(Part),
    /// Programs of Mars at a cluster; any release will do.
    Mars,
}

use Jaxlib::{
    Agent, Conformance, Directed, FaultTolerant, Heartbeats, KilledTask, Mars, Programs, RawCalls, Scripts,
    UnixSocket,
};

/// One of each age that a client's behaviour changed in, from the newest to the oldest that can still be had. 0.10.2 is
/// the last one for Python 3.11, and 0.9.2 the last one of the older dialect.
const JAXLIBS: [&str; 7] = ["0.12.0.1", "0.11.2", "0.10.2", "0.9.2", "0.4.30", "0.4.20", "0.4.13"];

/// Three releases have goldens. The gRPC of releases 0.4 is too old for xDS, and only 0.4.13 speaks the oldest protocol.
/// An upgrade and bad input are about nodes and agents: any client will do.
#[rustfmt::skip] // A table is read by its columns.
const OF_JAXLIB: [Row<Jaxlib, 7>; 16] = [
    // 0.12.0.1 0.11.2 0.10.2 0.9.2  0.4.30 0.4.20 0.4.13
    Row([Every, Never, Never, Never, Never, Never, Never], &[Scripts]),
    Row([Every, Never, Never, Never, Never, Never, Never], &[Mars]),
    Row([Every, Never, Turn,  Every, Never, Never, Never], &[Conformance, KilledTask, UnixSocket]),
    Row([Every, Never, Never, Every, Never, Never, Never], &[RawCalls]),
    Row([Every, Never, All,   All,   Never, Never, Never], &[Heartbeats]),
    Row([Every, Never, All,   Every, Never, Never, Never], &[FaultTolerant(fault_tolerant::Part::Kills)]),
    Row([All,   All,   All,   All,   Never, Never, Never], &[FaultTolerant(fault_tolerant::Part::Rounds)]),
    Row([Every, Never, All,   All,   Never, Never, Never], &[FaultTolerant(fault_tolerant::Part::BadInput)]),
    Row([Every, Never, Turn,  Turn,  Never, Never, Never], &[Programs]),
    Row([Every, Turn,  Turn,  Turn,  Turn,  Turn,  Every], &[Directed(Target::List)]),
    Row([Every, All,   Turn,  All,   Never, Never, Never], &[Directed(Target::Xds)]),
    Row([Every, Turn,  Turn,  Turn,  Turn,  Turn,  Every], &[Agent(Part::Program)]),
    Row([Never, Never, Never, Never, Never, Never, Every], &[Agent(Part::ProgramLegacy)]),
    Row([Every, All,   All,   All,   All,   All,   All],
        &[Agent(Part::Outage), Agent(Part::FrozenNode), Agent(Part::Operator)]),
    Row([All,   All,   All,   All,   All,   All,   All],
        &[Agent(Part::SilentNetwork), Agent(Part::Restart), Agent(Part::Kill)]),
    Row([All,   Never, Never, Never, Never, Never, Never], &[Agent(Part::Upgrade), Agent(Part::BadInput)]),
];

/// The newest release, and the first one that speaks today's dialect.
const TENSORFLOWS: [&str; 2] = ["2.21.0", "2.12.0"];

#[rustfmt::skip] // A table is read by its columns.
const OF_TENSORFLOW: [Row<tensorflow::Part, 2>; 3] = {
    use tensorflow::Part::{
        AgentScenarios, AgentTraining, ParameterServer, Scenarios, ScenariosLeaderKilled, Training,
    };
    [
        // 2.21.0 2.12.0
        Row([Every, Every], &[ScenariosLeaderKilled, AgentTraining]),
        Row([Every, All],   &[Training, AgentScenarios, ParameterServer]),
        Row([All,   All],   &[Scenarios]),
    ]
};

/// The newest release, and the newest one that can be had of those that speak the first dialect.
const MINDSPORES: [&str; 2] = ["2.10.0", "2.0.0"];

/// Each environment takes almost three gigabytes, so the older one is for those who ask for it.
#[rustfmt::skip] // A table is read by its columns.
const OF_MINDSPORE: [Row<mindspore::Part, 2>; 6] = {
    use mindspore::Part::{
        Agent, AgentAway, AgentRounds, AgentUndisturbed, AttachedKilled, Away, Launcher, LeaderKilled,
        ParameterServer, Recovery, Rounds, Undisturbed,
    };
    [
        // 2.10.0 2.0.0
        Row([Every, All], &[LeaderKilled]),
        Row([All,   All], &[Undisturbed, AttachedKilled, Agent, Away, Rounds]),
        Row([All,   All], &[AgentUndisturbed, AgentAway, AgentRounds]),
        // The launcher came after 2.0.
        Row([All,   Never], &[Launcher]),
        // A 2.0 that comes back waits in `init` for the other one, whose AllReduce has failed by then.
        Row([All,   Never], &[Recovery]),
        // No later release has such nodes.
        Row([Never, All], &[ParameterServer]),
    ]
};

/// A release of jaxlib that the table knows.
pub(crate) fn jaxlib(name: &str) -> Option<&'static str> {
    JAXLIBS.into_iter().find(|known| *known == name)
}

/// A release of TensorFlow that the table knows.
pub(crate) fn tensorflow(name: &str) -> Option<&'static str> {
    TENSORFLOWS.into_iter().find(|known| *known == name)
}

/// A release of MindSpore that the table knows.
pub(crate) fn mindspore(name: &str) -> Option<&'static str> {
    MINDSPORES.into_iter().find(|known| *known == name)
}

/// Whether releases take turns and this is one of them.
pub(crate) fn takes_turns(release: &str) -> bool {
    let place = JAXLIBS.into_iter().position(|known| known == release);
    place.is_some_and(|place| OF_JAXLIB.iter().any(|Row(when, _)| when[place] == Turn))
}

/// The place of a release of jaxlib among all, the newest first.
pub(crate) fn age(release: &str) -> usize {
    JAXLIBS.into_iter().position(|known| known == release).unwrap_or(JAXLIBS.len())
}

/// Every test that is to run with the interpreters that were given.
pub(crate) fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = of_now(settings);
    cases.retain(|case| settings.picks(&case.to_string()));
    cases
}

fn of_now(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for Row(when, kinds) in &OF_JAXLIB {
        let releases = JAXLIBS.into_iter().zip(when);
        let run = releases
            .filter(|(release, when)| settings.releases.contains(release) && when.is_now(settings, release));
        for (release, _) in run {
            cases.extend(kinds.iter().flat_map(|kind| kind.cases(release)));
        }
    }
    for Row(when, parts) in &OF_TENSORFLOW {
        let releases = TENSORFLOWS.into_iter().zip(when);
        let run = releases.filter(|(release, when)| {
            settings.tensorflow.contains_key(release) && when.is_now(settings, release)
        });
        for (release, _) in run {
            cases.extend(parts.iter().map(|part| Case::TensorFlow { release, part: *part }));
        }
    }
    for Row(when, parts) in &OF_MINDSPORE {
        let releases = MINDSPORES.into_iter().zip(when);
        let run = releases.filter(|(release, when)| {
            settings.mindspore.contains_key(release) && when.is_now(settings, release)
        });
        for (release, _) in run {
            cases.extend(parts.iter().map(|part| Case::MindSpore { release, part: *part }));
        }
    }
    cases
}

impl When {
    fn is_now(self, settings: &Settings, release: &str) -> bool {
        let all = settings.all_clients || settings.is_named(release);
        match self {
            Every => true,
            Turn => all || settings.rotated == Some(release),
            All => all,
            Never => false,
        }
    }
}

impl Jaxlib {
    fn cases(self, release: &'static str) -> Vec<Case> {
        match self {
            Scripts => Case::SCRIPTS.to_vec(),
            Conformance => vec![Case::Conformance { release }],
            RawCalls => Dialect::of(release).map(|dialect| Case::Raw { dialect }).collect(),
            KilledTask => [Poll::Release, Poll::Hold].map(|poll| Case::KilledTask { release, poll }).to_vec(),
            Heartbeats => vec![Case::Heartbeats { release }],
            FaultTolerant(part) => vec![Case::FaultTolerant { release, part }],
            UnixSocket => vec![Case::UnixSocket { release }],
            Programs => Fault::ALL.map(|fault| Case::Program { release, fault }).to_vec(),
            Directed(target) => vec![Case::Directed { release, target }],
            Agent(part) => vec![Case::Agent { release, part }],
            Mars => vec![Case::Mars { release }],
        }
    }
}

impl fmt::Display for Jaxlib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scripts => f.write_str("the scripts' own tests, the Python package"),
            Conformance => f.write_str("`conformance`"),
            RawCalls => f.write_str("`raw calls`"),
            KilledTask => f.write_str("`killed task`"),
            Heartbeats => f.write_str("`heartbeats`"),
            FaultTolerant(part) => write!(f, "`{part}`"),
            UnixSocket => f.write_str("`unix socket`"),
            Programs => f.write_str("`program` with each fault"),
            Directed(target) => write!(f, "`{target} program`"),
            Agent(part) => write!(f, "`agent {part}`"),
            Mars => f.write_str("`mars demonstrations`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(arguments: &[&str]) -> BTreeSet<String> {
        let settings = Settings::of(arguments);
        let cases = cases(&settings);
        let names: BTreeSet<String> = cases.iter().map(Case::to_string).collect();
        assert_eq!(names.len(), cases.len(), "a test runs twice");
        names
    }

    /// The arguments of a run with every release.
    fn everything() -> Vec<String> {
        let given = JAXLIBS.map(|release| format!("--python={release}=p")).into_iter();
        given
            .chain(TENSORFLOWS.map(|release| format!("--tensorflow={release}=p")))
            .chain(MINDSPORES.map(|release| format!("--mindspore={release}=p")))
            .collect()
    }

    #[test]
    fn the_readme_shows_these_tables() {
        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        let of_tensorflow = |part: &tensorflow::Part| format!("`tensorflow {part}`");
        let of_mindspore = |part: &mindspore::Part| format!("`mindspore {part}`");
        for table in [
            shown(&JAXLIBS, &OF_JAXLIB, Jaxlib::to_string),
            shown(&TENSORFLOWS, &OF_TENSORFLOW, of_tensorflow),
            shown(&MINDSPORES, &OF_MINDSPORE, of_mindspore),
        ] {
            assert!(readme.contains(&table), "tests/README.md shall have this table:\n{table}");
        }
    }

    fn shown<Kind, const RELEASES: usize>(
        releases: &[&str; RELEASES],
        rows: &[Row<Kind, RELEASES>],
        name: impl Fn(&Kind) -> String,
    ) -> String {
        let line = |words: Vec<&str>| {
            format!("| {} |\n", words.join(" | ")).replace("|  |", "| |").replace("|  |", "| |")
        };
        let mut table = line([&["what runs of"], &releases[..]].concat());
        table.push_str(&format!("|{}\n", "---|".repeat(RELEASES + 1)));
        for Row(when, kinds) in rows {
            let kinds = kinds.iter().map(&name).collect::<Vec<_>>().join(", ");
            let when = when.iter().map(|when| match when {
                Every => "every run",
                Turn => "in turn",
                All => "all",
                Never => "",
            });
            table.push_str(&line(std::iter::once(&*kinds).chain(when).collect()));
        }
        table
    }

    #[test]
    fn every_run_has_the_newest_and_the_oldest_and_one_other_in_turn() {
        let given = everything();
        let mut given: Vec<&str> = given.iter().map(String::as_str).collect();
        given.extend(["--rotated", "0.4.20"]);
        let names = names(&given);
        let of = |release: &str| {
            let names = names.iter().filter(|name| name.split(' ').any(|word| word == release));
            names.map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!(
            of("0.4.13"),
            ["agent program 0.4.13", "agent program legacy 0.4.13", "list program 0.4.13"]
        );
        assert_eq!(of("0.4.20"), ["agent program 0.4.20", "list program 0.4.20"]);
        assert_eq!(of("0.4.30"), [""; 0]);
        assert_eq!(of("0.10.2"), [""; 0]);
        assert_eq!(
            of("0.9.2"),
            [
                "conformance 0.9.2",
                "fault tolerant 0.9.2",
                "killed task 0.9.2 poll hold",
                "killed task 0.9.2 poll release",
                "unix socket 0.9.2",
            ]
        );
        assert_eq!(of("0.12.0.1").len(), 1 + 1 + 2 + 1 + 1 + 2 + Fault::ALL.len() + 2 + 4);
        assert_eq!(of("2.21.0").len(), 5);
        assert_eq!(
            of("2.12.0"),
            ["tensorflow 2.12.0 agent training", "tensorflow 2.12.0 scenarios leader killed"]
        );
        assert_eq!(of("2.10.0"), ["mindspore 2.10.0 leader killed"]);
        assert_eq!(of("2.0.0"), [""; 0]);
        assert!(
            names.contains("raw calls n") && names.contains("raw calls t") && names.contains("raw calls l")
        );
    }

    #[test]
    fn a_release_whose_turn_it_is_runs_what_it_can() {
        let run = |release: &str| {
            let python = format!("--python={release}=p");
            names(&[&python, "--rotated", release]).len()
        };
        // Conformance, two killed tasks, a unix socket, programs, with a list, with xDS, with agents.
        assert_eq!(run("0.10.2"), 4 + Fault::ALL.len() + 3);
        // The same without xDS, raw calls, and three processes that come back.
        assert_eq!(run("0.9.2"), 4 + Fault::ALL.len() + 2 + 1 + 1);
        assert_eq!([run("0.11.2"), run("0.4.30"), run("0.4.20")], [2, 2, 2]);
        assert!(["0.11.2", "0.10.2", "0.9.2", "0.4.30", "0.4.20"].into_iter().all(takes_turns));
        assert!(!["0.12.0.1", "0.4.13", "none"].into_iter().any(takes_turns));
    }

    #[test]
    fn all_clients_adds_to_every_run() {
        let given = everything();
        let mut given: Vec<&str> = given.iter().map(String::as_str).collect();
        let default = names(&given);
        given.push("--all-clients");
        let all = names(&given);
        assert!(default.is_subset(&all));
        for name in [
            "agent kill 0.4.20",
            "agent upgrade 0.12.0.1",
            "fault tolerant rounds 0.12.0.1",
            "xds program 0.9.2",
            "tensorflow 2.12.0 scenarios",
            "mindspore 2.0.0 rounds",
            "mindspore 2.0.0 parameter server",
        ] {
            assert!(all.contains(name) && !default.contains(name), "{name}");
        }
    }

    #[test]
    fn a_filter_picks_and_everything_of_a_release_that_it_names() {
        let filtered =
            |filter: &str| names(&["--python=0.12.0.1=p", "--python=0.4.20=p", "--filter", filter]);
        let one = |name: &str| BTreeSet::from([name.to_owned()]);
        assert_eq!(filtered("xds"), one("xds program 0.12.0.1"));
        assert_eq!(filtered("agent kill 0.4.20"), one("agent kill 0.4.20"));
        assert_eq!(filtered("agent kill"), BTreeSet::new());
        assert_eq!(filtered("program 0.12.0.1 leader killed"), one("program 0.12.0.1 leader killed"));
    }

    #[test]
    fn releases_that_were_not_given_are_left_out() {
        assert_eq!(names(&["--tensorflow=2.12.0=p"]).len(), 2);
        assert_eq!(names(&["--python=0.4.13=p"]).len(), 3);
    }

    #[test]
    fn every_dialect_has_its_release_in_the_table() {
        let Row(when, _) = OF_JAXLIB.iter().find(|Row(_, kinds)| kinds.contains(&RawCalls)).unwrap();
        for (release, when) in JAXLIBS.into_iter().zip(when) {
            assert_eq!(Dialect::of(release).count() > 0, *when != Never, "{release}");
        }
    }
}
