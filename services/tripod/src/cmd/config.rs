//! `tripod config`: the settings of a node, what each means and where it comes from.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Subcommand};
use serde::Serialize;
use tripod_proto::code::Code;

use crate::cli::{Cli, Global};
use crate::config_file::{self, ConfigFile, Layers, Source, is_given};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::settings::{CONFIG, Settings, nearest};
use crate::view::count;
use crate::view::setting::{self, SettingView};

const EXAMPLES: &str = "\
Examples:
  tripod config check /etc/tripod/server.toml       before a node is started with it
  tripod config explain                             every setting, its value now and where that comes from
  tripod config explain heartbeat-timeout           what it means, its type, unit and default
  tripod config explain tasks --config server.toml -- --tasks 8
                                                    as a node started like this would see it

A flag wins over the environment, the environment over the file, the file over the default. All three use one
name: --heartbeat-timeout, TRIPOD_HEARTBEAT_TIMEOUT, heartbeat-timeout.";

/// What to do with settings.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ConfigCommand {
    /// Tell what a setting means, its default, its value and where that comes from
    Explain(ExplainArgs),
    /// Read a file as a node would, without starting one
    Check {
        /// The file
        file: PathBuf,
    },
}

/// Flags of `config explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The setting [default: all of them]
    key: Option<String>,

    /// The file that the node would be started with
    #[arg(long, value_name = "FILE", env = "TRIPOD_CONFIG")]
    config: Option<PathBuf>,

    /// Flags that the node would be started with
    #[arg(last = true, value_name = "FLAGS")]
    line: Vec<OsString>,
}

/// What `config check` prints. Fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct CheckedView<'a> {
    file: &'a Path,
    settings: usize,
}

pub(crate) fn run(command: &ConfigCommand, global: &Global) -> Result<(), Failure> {
    match command {
        ConfigCommand::Explain(args) => explain(args, &Environment::of_this_process(), global.format()),
        ConfigCommand::Check { file } => check(file, global.format()),
    }
}

fn check(file: &Path, format: Format) -> Result<(), Failure> {
    let flags = config_file::check(file)?;
    let line = ["tripod", "server"].into_iter().map(str::to_owned).chain(flags);
    let cli = <Cli as clap::Parser>::try_parse_from(line);
    let cli = cli.map_err(|error| Failure::new(Code::ConfigValue, error.to_string()).in_file(file))?;
    if let crate::cli::Command::Server(args) = cli.command {
        super::server::check(*args).map_err(|failure| failure.in_file(file))?;
    }
    let settings = Settings::new();
    let view = CheckedView { file, settings: ConfigFile::read(file, &settings)?.len() };
    match format {
        Format::Json => output::json(&view)?,
        Format::Table => {
            let settings = count(view.settings, "setting");
            output::line(&format!("{}: {settings}, complete and legal", file.display()))?;
        }
    }
    Ok(())
}

fn explain(args: &ExplainArgs, environment: &Environment, format: Format) -> Result<(), Failure> {
    let settings = Settings::new();
    let file = args.config.as_deref().map(|path| ConfigFile::read(path, &settings)).transpose()?;
    let layers = Layers { settings: &settings, environment, file: file.as_ref() };
    if let Some(key) = &args.key
        && settings.arg(key).is_none()
    {
        let near = nearest(key, settings.keys());
        let near = near.map_or_else(String::new, |near| format!("; the nearest is `{near}`"));
        let told = format!("there is no setting `{key}`{near}; `tripod config explain` lists all");
        return Err(Failure::new(Code::ConfigKey, told));
    }
    let views = views(&layers, args)?;
    match (format, &args.key) {
        (Format::Json, Some(_)) => output::json(&views.first())?,
        (Format::Json, None) => output::json(&views)?,
        (Format::Table, Some(_)) => output::line(&setting::one(&views[0]))?,
        (Format::Table, None) => output::line(&setting::list(&views))?,
    }
    Ok(())
}

/// What there is to say about the settings that were asked for.
fn views(layers: &Layers<'_>, args: &ExplainArgs) -> Result<Vec<SettingView>, Failure> {
    let optional = |server: clap::Command| server.mut_args(|arg| arg.required(false));
    let command = Cli::command().mut_subcommand("server", optional);
    let line = ["tripod", "server"].into_iter().map(OsString::from).chain(args.line.iter().cloned());
    let given = command.try_get_matches_from(line).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::new(Code::Usage, format!("behind `--` stand flags of `tripod server`: {first}"))
    })?;
    let given = given.subcommand_matches("server").expect("it was written");
    let mut views = Vec::new();
    for arg in layers.settings.args() {
        let key = arg.get_long().expect("a setting has a name");
        if key == CONFIG || args.key.as_deref().is_some_and(|asked| asked != key) {
            continue;
        }
        let id = arg.get_id().as_str();
        let from_line = is_given(given, id).then(|| {
            let words = given.get_raw(id).into_iter().flatten().map(|word| word.to_string_lossy());
            (words.collect::<Vec<_>>().join(","), Source::Flag)
        });
        let value = match from_line {
            Some(value) => Some(value),
            None => layers.flag(key)?.map(|(flag, source)| {
                (flag.split_once('=').map_or_else(String::new, |(_, value)| value.to_owned()), source)
            }),
        };
        views.push(SettingView::of(arg, value));
    }
    Ok(views)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(key: Option<&str>, config: Option<&Path>, line: &[&str]) -> ExplainArgs {
        ExplainArgs {
            key: key.map(str::to_owned),
            config: config.map(Path::to_owned),
            line: line.iter().map(OsString::from).collect(),
        }
    }

    #[test]
    fn a_value_is_shown_with_where_it_comes_from() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "tasks = 8\npoll = \"hold\"\nregister-timeout = 7\n").expect("written");
        let settings = Settings::new();
        let variables = [("TRIPOD_POLL".into(), "release".into()), ("TRIPOD_TASKS".into(), "5".into())];
        let environment = Environment::of(variables.into_iter());
        let read = ConfigFile::read(file.path(), &settings).expect("legal");
        let layers = Layers { settings: &settings, environment: &environment, file: Some(&read) };
        let shown = |key: &str| {
            let views = views(&layers, &asked(Some(key), None, &["--tasks=3"])).expect("legal");
            let json = serde_json::to_value(&views[0]).expect("JSON");
            (json["value"].clone(), json["from"].clone())
        };
        assert_eq!(shown("tasks"), ("3".into(), "flag".into()));
        assert_eq!(shown("poll"), ("release".into(), "environment".into()));
        assert_eq!(shown("register-timeout"), ("7".into(), "file".into()));
        assert_eq!(shown("job-ports"), ("8000-8099".into(), "default".into()));
        assert_eq!(shown("data"), (serde_json::Value::Null, "unset".into()));
    }

    #[test]
    fn a_file_is_read_as_a_node_would_read_it() {
        let checked = |text: &str| {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), text).expect("written");
            check(file.path(), Format::Json).map_err(|failure| {
                let told = failure.to_string();
                assert!(told.contains(&format!("--config {}: ", file.path().display())), "{told}");
                failure.code()
            })
        };
        let least = "data = \"d\"\nclient = \"a:1\"\npeer = \"a:2\"\nhttp = \"a:3\"\n";
        let first = format!("{least}node = 1\ninitial = \"1=a:2\"\n");
        assert_eq!(checked(&first), Ok(()));
        assert_eq!(checked(&format!("{least}join = \"b:1\"\n")), Ok(()));
        assert_eq!(checked("node = 1\n"), Err(Code::ConfigMissing));
        assert_eq!(checked(&format!("{first}join = \"b:1\"\n")), Err(Code::FlagsConflict));
        assert_eq!(checked(&format!("{least}node = 2\ninitial = \"1=a:2\"\n")), Err(Code::FlagsConflict));
        assert_eq!(checked(&format!("{first}election-min-ms = 1\n")), Err(Code::ValueIllegal));
        assert_eq!(checked(&format!("{first}tasks = 0\n")), Err(Code::ConfigValue));
        assert_eq!(checked("node = = 1\n"), Err(Code::ConfigSyntax));
        let open = first.replace("a:1", "10.0.0.1:7700");
        assert_eq!(checked(&open), Err(Code::PlainText));
        assert_eq!(checked(&format!("{open}insecure = true\n")), Ok(()));
    }

    #[test]
    fn an_unknown_setting_is_refused_with_the_nearest_one() {
        let asked = asked(Some("hartbeat-timeout"), None, &[]);
        let told = explain(&asked, &Environment::default(), Format::Json).expect_err("refused").to_string();
        assert_eq!(
            told,
            "T1203 config-key: there is no setting `hartbeat-timeout`; the nearest is `heartbeat-timeout`; \
             `tripod config explain` lists all"
        );
    }
}
