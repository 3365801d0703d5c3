//! The settings of a node, each of which `tripod server` takes under one name as a flag (`--heartbeat-timeout`),
//! an environment variable (`TRIPOD_HEARTBEAT_TIMEOUT`) or a key of its file (`heartbeat-timeout`).
//!
//! The flags are the description: a value from anywhere goes through the parser of the flag that it is named
//! after, so a name and a value mean the same in all places.

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;

/// Names the file, which cannot name another one.
pub(crate) const CONFIG: &str = "config";
/// Flags that are no settings: they say how this one process was started, not what the node is.
const NO_SETTINGS: [&str; 3] = [CONFIG, "exit-with-parent", "help"];
/// What every variable of ours begins with.
pub(crate) const PREFIX: &str = "TRIPOD_";
/// How like two names must be for one to be taken for a misspelling of the other; 1 is equal.
const NEAR: f64 = 0.7;

/// All settings there are.
pub(crate) struct Settings {
    server: Command,
}

impl Settings {
    pub(crate) fn new() -> Self {
        let cli = Cli::command();
        let server = cli.find_subcommand("server").expect("the command line has a server");
        // The global flags are not among them yet, and do not come in: they are no settings of a node.
        Self { server: server.clone().mut_args(|arg| arg.required(false)).no_binary_name(true) }
    }

    /// Their flags, in the order of `--help`.
    pub(crate) fn args(&self) -> impl Iterator<Item = &Arg> {
        let is_setting = |arg: &&Arg| {
            let name = arg.get_long();
            !arg.is_hide_set() && name.is_some_and(|name| !NO_SETTINGS.contains(&name))
        };
        self.server.get_arguments().filter(is_setting)
    }

    /// Their names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.args().filter_map(Arg::get_long)
    }

    /// The flag of this name.
    pub(crate) fn arg(&self, key: &str) -> Option<&Arg> {
        self.args().find(|arg| arg.get_long() == Some(key))
    }

    /// The flag with this value as it is written on a command line.
    ///
    /// # Errors
    /// Why the flag's own parser refuses the value.
    pub(crate) fn flag(&self, key: &str, value: &str) -> Result<String, String> {
        let flag = format!("--{key}={value}");
        match self.server.clone().try_get_matches_from([&flag]) {
            Ok(_) => Ok(flag),
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The environment variable of a setting.
pub(crate) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replace('-', "_"))
}

/// What a value looks like, as `--help` writes it.
pub(crate) fn form(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().map(clap::builder::Str::as_str).collect::<Vec<_>>().join(" ")
}

/// Which of the known names somebody may have meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = known.map(|known| (strsim::jaro(name, known), known));
    let best = likeness.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > NEAR).then_some(best.1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_one_name_in_three_spellings() {
        let settings = Settings::new();
        assert!(settings.keys().any(|key| key == "heartbeat-timeout"));
        for none in ["config", "exit-with-parent", "output", "endpoints", "timeout", "help"] {
            assert!(settings.arg(none).is_none(), "{none}");
        }
        assert_eq!(variable("heartbeat-timeout"), "TRIPOD_HEARTBEAT_TIMEOUT");
        assert_eq!(settings.flag("tasks", "3").as_deref(), Ok("--tasks=3"));
        assert_eq!(settings.flag("tasks", "0"), Err("0 is not in 1..=4294967295".to_owned()));
    }

    #[test]
    fn a_misspelt_name_is_near_to_the_right_one() {
        let settings = Settings::new();
        let near = |name: &str| nearest(name, settings.keys());
        assert_eq!(near("hartbeat-timeout"), Some("heartbeat-timeout"));
        assert_eq!(near("heartbeat_timeout"), Some("heartbeat-timeout"));
        assert_eq!(near("xyzzy"), None);
    }
}
