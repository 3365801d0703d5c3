//! Where the settings of a node come from: the command line, else the environment, else the file that
//! `--config` or `TRIPOD_CONFIG` names, else the default.
//!
//! A line of `server` (or of `preflight`, which looks at the same settings) is completed by flags for whatever
//! it does not say itself, and is then parsed like any other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use toml::{Table, Value};
use tripod_proto::code::Code;

use crate::cli::Cli;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::settings::{CONFIG, Settings, form, nearest, variable};

/// The commands whose lines are completed.
const COMPLETED: [&str; 2] = ["server", "preflight"];

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    Flag,
    Environment,
    File,
}

/// Adds to a command line what it does not say and environment or file do.
///
/// # Errors
/// The file cannot be read, environment or file say what no flag could, or the file leaves out what must be said.
pub(crate) fn complete(mut line: Vec<OsString>, environment: &Environment) -> Result<Vec<OsString>, Failure> {
    let optional = |command: clap::Command| command.mut_args(|arg| arg.required(false));
    let command = COMPLETED.iter().fold(Cli::command(), |cli, name| cli.mut_subcommand(name, optional));
    // What is wrong with the line itself is told by whoever parses it next.
    let Ok(matches) = command.try_get_matches_from(&line) else { return Ok(line) };
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| COMPLETED.contains(name)) else {
        return Ok(line);
    };
    let settings = Settings::new();
    let named = given.get_one::<PathBuf>(CONFIG).cloned();
    let path = named.clone().or_else(|| environment.value(CONFIG).map(PathBuf::from));
    let file = path.as_ref().map(|path| ConfigFile::read(path, &settings)).transpose()?;
    if let (None, Some(path)) = (&named, &path) {
        line.push(format!("--{CONFIG}={}", path.display()).into());
    }
    let layers = Layers { settings: &settings, environment, file: file.as_ref() };
    let mut missing = Vec::new();
    for arg in settings.args() {
        let (id, key) = (arg.get_id().as_str(), arg.get_long().expect("a setting has a name"));
        // A command that looks at fewer settings does not have all of them.
        if given.try_contains_id(id).is_err() || is_given(given, id) {
            continue;
        }
        match layers.flag(key)? {
            Some((flag, _)) => line.push(flag.into()),
            None => missing.push(arg),
        }
    }
    match &file {
        Some(file) if name == "server" => file.check_complete(&missing)?,
        _ => {}
    }
    Ok(line)
}

/// Reads a file by itself: how many settings it holds, if it holds all that must be said.
///
/// # Errors
/// As [`complete`].
pub(crate) fn check(path: &Path) -> Result<Vec<String>, Failure> {
    let settings = Settings::new();
    let file = ConfigFile::read(path, &settings)?;
    let missing: Vec<_> = settings
        .args()
        .filter(|arg| !file.flags.iter().any(|(key, _)| arg.get_long() == Some(key)))
        .collect();
    file.check_complete(&missing)?;
    Ok(file.flags.into_iter().map(|(_, flag)| flag).collect())
}

/// What stands behind the command line.
pub(crate) struct Layers<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) environment: &'a Environment,
    pub(crate) file: Option<&'a ConfigFile<'a>>,
}

impl Layers<'_> {
    /// The flag that environment or file stand for, and which of them.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<(String, Source)>, Failure> {
        if let Some(value) = self.environment.value(key) {
            let flag = self.settings.flag(key, value).map_err(|reason| {
                let form = self.settings.arg(key).map(form).unwrap_or_default();
                let name = variable(key);
                Failure::new(
                    Code::ConfigVariable,
                    format!("{name}={} is not legal as {form}: {reason}", value.escape_debug()),
                )
            })?;
            return Ok(Some((flag, Source::Environment)));
        }
        let of_file = self.file.and_then(|file| file.flags.iter().find(|(known, _)| known == key));
        Ok(of_file.map(|(_, flag)| (flag.clone(), Source::File)))
    }
}

/// A file whose every key is a setting and whose every value is legal by itself.
pub(crate) struct ConfigFile<'a> {
    path: &'a Path,
    /// Names, and flags as they are written on a command line.
    flags: Vec<(String, String)>,
}

impl<'a> ConfigFile<'a> {
    pub(crate) fn read(path: &'a Path, settings: &Settings) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            failure(
                Code::ConfigUnreadable,
                path,
                format_args!("cannot be read: {error}; give --config a file"),
            )
        })?;
        Self::parse(path, &text, settings)
    }

    /// How many settings it holds.
    pub(crate) fn len(&self) -> usize {
        self.flags.len()
    }

    fn parse(path: &'a Path, text: &str, settings: &Settings) -> Result<Self, Failure> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let what = error.message().lines().collect::<Vec<_>>().join(", ");
            let told =
                format_args!("line {line} is not valid TOML: {what}; write `key = value`, text in quotes");
            failure(Code::ConfigSyntax, path, told)
        })?;
        let mut flags = Vec::new();
        for (key, value) in &table {
            let arg = settings.arg(key).ok_or_else(|| unknown(path, key, settings))?;
            let flag = word(value).and_then(|text| settings.flag(key, &text)).map_err(|reason| {
                let value = value.to_string().replace('\n', "\\n");
                let told = format_args!("{key} = {value} is not legal as {}: {reason}", form(arg));
                failure(Code::ConfigValue, path, told)
            })?;
            flags.push((key.clone(), flag));
        }
        Ok(Self { path, flags })
    }

    /// Refuses what must be said somewhere, and is among those that nobody says.
    fn check_complete(&self, unsaid: &[&clap::Arg]) -> Result<(), Failure> {
        let cli = Cli::command();
        let server = cli.find_subcommand("server").expect("the command line has a server");
        let required = |arg: &&&clap::Arg| {
            server.get_arguments().any(|own| own.get_id() == arg.get_id() && own.is_required_set())
        };
        let missing = unsaid.iter().filter(required);
        let missing: Vec<_> =
            missing.filter_map(|arg| Some(format!("`{}` ({})", arg.get_long()?, form(arg)))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let told = format_args!("{} missing; write it there or give it as a flag", missing.join(", "));
        Err(failure(Code::ConfigMissing, self.path, told))
    }
}

fn unknown(path: &Path, key: &str, settings: &Settings) -> Failure {
    let near = nearest(key, settings.keys());
    let near = near.map_or_else(
        || "`tripod config explain` lists all".to_owned(),
        |near| format!("the nearest is `{near}`; `tripod config explain` lists all"),
    );
    failure(Code::ConfigKey, path, format_args!("there is no key `{key}`; {near}"))
}

pub(crate) fn is_given(given: &ArgMatches, id: &str) -> bool {
    given.value_source(id) == Some(ValueSource::CommandLine)
}

/// A value as it is written behind a flag.
fn word(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(switch) => Ok(switch.to_string()),
        other => Err(format!("it is of type {}", other.type_str())),
    }
}

fn failure(code: Code, path: &Path, what: std::fmt::Arguments<'_>) -> Failure {
    Failure::new(code, format!("--config {}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../docs/server.toml");
    const LEAST: &str = "node = 1\ndata = \"d\"\nclient = \"a:1\"\npeer = \"a:2\"\nhttp = \"a:3\"\n\
                         initial = \"1=a:2\"\n";

    proptest::proptest! {
        #[test]
        fn no_file_is_too_bad(
            lines in proptest::collection::vec(
                ("(node|peer|job-ports|timing|initial|\\PC{0,6})", "[=.\\[\\]{}\"' \\n]{0,4}", "(\\PC|[0-9e.\\[\\]{}\"'-]){0,20}"),
                0..6,
            ),
            nested in 0..2_000_usize,
        ) {
            let settings = Settings::new();
            let lines = lines.into_iter().map(|(key, sign, value)| key + &sign + &value);
            let text = lines.collect::<Vec<_>>().join("\n");
            // Taken or refused, with the line that is wrong.
            drop(ConfigFile::parse(Path::new("f"), &text, &settings));
            let nest = format!("{text}\nnode = {}1", "[".repeat(nested));
            assert!(ConfigFile::parse(Path::new("f"), &nest, &settings).is_err() || nested == 0);
        }
    }

    /// The line that remains when a file is put into a command line.
    fn complete_with(text: &str, flags: &[&str]) -> Result<Vec<String>, String> {
        complete_in(&[], text, flags)
    }

    fn complete_in(variables: &[(&str, &str)], text: &str, flags: &[&str]) -> Result<Vec<String>, String> {
        let environment = Environment::of(variables.iter().map(|(name, value)| (name.into(), value.into())));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let path = file.path().to_str().expect("UTF-8");
        let line = ["tripod", "server", "--config", path].into_iter().chain(flags.iter().copied());
        match complete(line.map(OsString::from).collect(), &environment) {
            Ok(line) => {
                Cli::try_parse_from(&line).map_err(|error| error.to_string())?;
                let text = line.into_iter().skip(4).map(|part| part.into_string().expect("UTF-8"));
                Ok(text.collect())
            }
            Err(failure) => Err(failure.to_string().replace(path, "FILE")),
        }
    }

    #[test]
    fn the_example_is_legal_as_it_stands_and_with_every_key() {
        assert!(complete_with(EXAMPLE, &[]).is_ok());
        let uncommented = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase()) => rest,
            _ => line,
        });
        let all = uncommented.collect::<Vec<_>>().join("\n");
        complete_with(&all, &[]).expect("legal");
        let table: Table = all.parse().expect("TOML");
        let mut named: Vec<_> = table.keys().map(String::as_str).collect();
        let settings = Settings::new();
        let mut known: Vec<_> = settings.keys().collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known, "the example explains every key");
    }

    #[test]
    fn flags_win_over_the_file() {
        let text = format!("{LEAST}tasks = 8\nrecoverable = true\nheartbeat-timeout = 2.5\n");
        let line = complete_with(&text, &["--tasks", "3", "--recoverable=false"]).expect("legal");
        assert_eq!(line[..3], ["--tasks", "3", "--recoverable=false"]);
        assert!(line.contains(&"--heartbeat-timeout=2.5".to_owned()), "{line:?}");
        assert_eq!(line.iter().filter(|part| part.contains("tasks")).count(), 1, "{line:?}");
        assert_eq!(line.iter().filter(|part| part.contains("recoverable")).count(), 1, "{line:?}");
    }

    #[test]
    fn what_neither_the_file_nor_a_flag_says_is_told() {
        let text = LEAST.replace("http", "#http").replace("node", "#node");
        let told = complete_with(&text, &["--node=1"]).expect_err("refused");
        assert_eq!(
            told,
            "T1205 config-missing: --config FILE: `http` (HOST:PORT) missing; write it there or give it as a flag"
        );
    }

    #[test]
    fn what_no_flag_could_say_is_refused_with_key_value_and_what_is_legal() {
        let cases = [
            ("job-ports = 8000", "as FIRST-LAST: write it as FIRST-LAST"),
            ("heartbeat-timeout = -1", "as SECONDS: no length of time"),
            ("tasks = 0", "as N: 0 is not in 1..=4294967295"),
            ("tasks = [1]", "as N: it is of type array"),
            ("poll = \"never\"", "as hold|release: legal is hold, release"),
            ("recoverable = 1", "as true|false: legal is true, false"),
        ];
        for (line, expected) in cases {
            let told = complete_with(&format!("{LEAST}{line}\n"), &[]).expect_err(line);
            assert_eq!(told, format!("T1204 config-value: --config FILE: {line} is not legal {expected}"));
        }
    }

    #[test]
    fn the_environment_wins_over_the_file_and_a_flag_over_both() {
        let variables = [("TRIPOD_TASKS", "5"), ("TRIPOD_REGISTER_TIMEOUT", "9"), ("TRIPOD_POLL", "hold")];
        let text = format!("{LEAST}tasks = 8\nregister-timeout = 1\nheartbeat-timeout = 2.5\n");
        let line = complete_in(&variables, &text, &["--poll=release"]).expect("legal");
        for there in ["--tasks=5", "--register-timeout=9", "--heartbeat-timeout=2.5", "--poll=release"] {
            assert!(line.iter().any(|part| part == there), "{there}: {line:?}");
        }
        for not_there in ["--tasks=8", "--register-timeout=1", "--poll=hold"] {
            assert!(line.iter().all(|part| part != not_there), "{not_there}: {line:?}");
        }
        let told = complete_in(&[("TRIPOD_TASKS", "no")], &text, &[]).expect_err("refused");
        assert!(told.starts_with("T1206 config-variable: TRIPOD_TASKS=no is not legal as N: "), "{told}");
    }

    #[test]
    fn the_environment_may_name_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), LEAST).expect("written");
        let variables = [("TRIPOD_CONFIG".into(), file.path().into()), ("TRIPOD_NODE".into(), "3".into())];
        let environment = Environment::of(variables.into_iter());
        let line = complete(["tripod", "server"].map(OsString::from).to_vec(), &environment).expect("legal");
        let cli = Cli::try_parse_from(&line);
        assert!(cli.is_ok() && line.contains(&"--node=3".into()), "{line:?} {:?}", cli.err());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        let told = complete_with(&format!("{LEAST}hartbeat_timeout = 3\n"), &[]).expect_err("refused");
        assert_eq!(
            told,
            "T1203 config-key: --config FILE: there is no key `hartbeat_timeout`; the nearest is \
             `heartbeat-timeout`; `tripod config explain` lists all"
        );
    }

    #[test]
    fn a_line_without_a_file_is_left_alone() {
        for line in [&["tripod", "server", "--node=1"][..], &["tripod", "frobnicate"], &["tripod"]] {
            let line: Vec<_> = line.iter().map(OsString::from).collect();
            let completed = complete(line.clone(), &Environment::default());
            assert_eq!(completed.expect("nothing to refuse"), line);
        }
    }
}
