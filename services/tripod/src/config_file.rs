//! `tripod server --config FILE`: flags of `server` that stand in a TOML file, under the same names.
//!
//! A key becomes the flag that it is named after and goes through that flag's own parser. So the file
//! knows the same flags and no other, and a value means the same in both places.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory};
use toml::{Table, Value};

use crate::cli::Cli;
use crate::failure::Failure;

const CONFIG: &str = "config";
/// Flags that a file cannot hold: they say how this one process was started, not what the node is.
const NEVER_IN_A_FILE: [&str; 3] = [CONFIG, "exit-with-parent", "feature-level-max"];

/// Adds to a command line what the file says that it names: every key whose flag is not given.
///
/// # Errors
/// The file cannot be read, or says what no flag could, or something is missing in both.
pub(crate) fn complete(mut line: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let command = Cli::command().mut_subcommand("server", nothing_required);
    // What is wrong with the line itself is told by whoever parses it next.
    if let Ok(matches) = command.try_get_matches_from(&line)
        && let Some(("server", given)) = matches.subcommand()
        && let Some(path) = given.get_one::<PathBuf>(CONFIG)
    {
        let server = server();
        let file = ConfigFile::read(path, &server)?;
        file.check_complete(&server, given)?;
        line.extend(file.flags_besides(given).map(OsString::from));
    }
    Ok(line)
}

/// The command as it is declared: all its own flags, none of the global ones.
fn server() -> Command {
    let cli = Cli::command();
    cli.find_subcommand("server").expect("the command line has a server").clone()
}

fn nothing_required(server: Command) -> Command {
    server.mut_args(|arg| arg.required(false))
}

/// A file whose every key is a flag and whose every value is legal by itself.
struct ConfigFile<'a> {
    path: &'a Path,
    /// Ids of flags, and the flags as they are written on a command line.
    flags: Vec<(String, String)>,
}

impl<'a> ConfigFile<'a> {
    fn read(path: &'a Path, server: &Command) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage(path, format_args!("cannot be read: {error}; give --config a file")))?;
        Self::parse(path, &text, server)
    }

    fn parse(path: &'a Path, text: &str, server: &Command) -> Result<Self, Failure> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let what = error.message().lines().collect::<Vec<_>>().join(", ");
            usage(path, format_args!("line {line} is no TOML: {what}; write `key = value`, text in quotes"))
        })?;
        let mut flags = Vec::new();
        for (key, value) in &table {
            let arg = named(server, key).ok_or_else(|| {
                let known: Vec<_> = keys(server).collect();
                usage(path, format_args!("there is no key `{key}`; there are {}", known.join(", ")))
            })?;
            let flag = flag(server, key, value).map_err(|reason| {
                let value = value.to_string().replace('\n', "\\n");
                usage(path, format_args!("{key} = {value} is not legal as {}: {reason}", form(arg)))
            })?;
            flags.push((arg.get_id().to_string(), flag));
        }
        Ok(Self { path, flags })
    }

    /// Flags that `given` does not have.
    fn flags_besides(self, given: &ArgMatches) -> impl Iterator<Item = String> {
        let missing = self.flags.into_iter().filter(|(id, _)| !is_given(given, id));
        missing.map(|(_, flag)| flag)
    }

    fn check_complete(&self, server: &Command, given: &ArgMatches) -> Result<(), Failure> {
        let has = |arg: &Arg| {
            let id = arg.get_id().as_str();
            is_given(given, id) || self.flags.iter().any(|(known, _)| known == id)
        };
        let missing: Vec<_> = server
            .get_arguments()
            .filter(|arg| arg.is_required_set() && !has(arg))
            .filter_map(|arg| Some(format!("`{}` ({})", arg.get_long()?, form(arg))))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(usage(
            self.path,
            format_args!("{} missing; write it there or give it as a flag", missing.join(", ")),
        ))
    }
}

fn is_given(given: &ArgMatches, id: &str) -> bool {
    given.value_source(id) == Some(ValueSource::CommandLine)
}

/// The names that a file may use.
fn keys(server: &Command) -> impl Iterator<Item = &str> {
    server.get_arguments().filter_map(Arg::get_long).filter(|key| !NEVER_IN_A_FILE.contains(key))
}

fn named<'a>(server: &'a Command, key: &str) -> Option<&'a Arg> {
    let known = keys(server).any(|known| known == key);
    server.get_arguments().find(|arg| known && arg.get_long() == Some(key))
}

/// The flag that means the same as the key, if the flag's own parser accepts the value.
fn flag(server: &Command, key: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(switch) => switch.to_string(),
        other => return Err(format!("it is of type {}", other.type_str())),
    };
    let flag = format!("--{key}={text}");
    let alone = nothing_required(server.clone()).no_binary_name(true);
    match alone.try_get_matches_from([&flag]) {
        Ok(_) => Ok(flag),
        Err(error) => Err(reason(&error)),
    }
}

/// Why a parser refused a value, in one line.
fn reason(error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(legal)) if !legal.is_empty() => format!("legal is {}", legal.join(", ")),
        _ => error.kind().to_string(),
    }
}

/// What a value looks like, as `--help` writes it.
fn form(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().map(clap::builder::Str::as_str).collect::<Vec<_>>().join(" ")
}

fn usage(path: &Path, what: std::fmt::Arguments<'_>) -> Failure {
    Failure::Usage(format!("--config {}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../docs/server.toml");
    const LEAST: &str = "node = 1\ndata = \"d\"\nclient = \"a:1\"\npeer = \"a:2\"\nhttp = \"a:3\"\n\
                         initial = \"1=a:2\"\n";

    /// The line that remains when a file is put into a command line.
    fn complete_with(text: &str, flags: &[&str]) -> Result<Vec<String>, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let path = file.path().to_str().expect("UTF-8");
        let line = ["tripod", "server", "--config", path].into_iter().chain(flags.iter().copied());
        match complete(line.map(OsString::from).collect()) {
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
        let server = server();
        let mut known: Vec<_> = keys(&server).collect();
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
        assert_eq!(told, "--config FILE: `http` (HOST:PORT) missing; write it there or give it as a flag");
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
            assert_eq!(told, format!("--config FILE: {line} is not legal {expected}"));
        }
    }

    #[test]
    fn a_line_without_a_file_is_left_alone() {
        for line in [&["tripod", "server", "--node=1"][..], &["tripod", "frobnicate"], &["tripod"]] {
            let line: Vec<_> = line.iter().map(OsString::from).collect();
            assert_eq!(complete(line.clone()).expect("nothing to refuse"), line);
        }
    }
}
