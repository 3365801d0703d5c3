//! A setting of a node, as it is explained.

use clap::Arg;
use serde::Serialize;

use crate::config_file::Source;
use crate::output::Table;
use crate::settings::{form, variable};

/// One setting. Fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct SettingView {
    key: String,
    /// What a value looks like, as in `--help`.
    form: String,
    /// What kind of value it is, in words.
    r#type: &'static str,
    /// Null if it has none.
    unit: Option<&'static str>,
    /// Null if there is none.
    default: Option<String>,
    /// Null if there is none: it is not set and has no default.
    value: Option<String>,
    /// `flag`, `environment`, `file`, `default` or `unset`.
    from: &'static str,
    variable: String,
    meaning: String,
}

impl SettingView {
    /// `value`: what it is set to, and where; `None` if it is not.
    pub(crate) fn of(arg: &Arg, value: Option<(String, Source)>) -> Self {
        let key = arg.get_long().expect("a setting has a name").to_owned();
        let form = form(arg);
        let (meaning, told) = parts(&arg.get_help().map(ToString::to_string).unwrap_or_default());
        let declared = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        let default = declared.or(told);
        let from = match &value {
            Some((_, Source::Flag)) => "flag",
            Some((_, Source::Environment)) => "environment",
            Some((_, Source::File)) => "file",
            None if default.is_some() => "default",
            None => "unset",
        };
        Self {
            variable: variable(&key),
            r#type: kind(&form),
            unit: unit(&form),
            value: value.map(|(value, _)| value).or_else(|| default.clone()),
            key,
            form,
            default,
            from,
            meaning,
        }
    }
}

/// A help text without its default, and the default that stands in it.
fn parts(help: &str) -> (String, Option<String>) {
    let help = help.replace('\n', " ");
    match help.split_once(" [default: ") {
        Some((meaning, rest)) => {
            (meaning.to_owned(), rest.split_once(']').map(|(default, _)| default.to_owned()))
        }
        None => (help, None),
    }
}

fn kind(form: &str) -> &'static str {
    match form {
        "SECONDS" | "MS" => "length of time",
        "ID" | "N" => "whole number",
        "HOST:PORT" => "address",
        "HOST:PORT,..." => "addresses",
        "DIR" | "PATH" | "FILE" => "path",
        "true|false" | "on|off" => "switch",
        form if form.contains('|') => "one of several words",
        _ => "text",
    }
}

fn unit(form: &str) -> Option<&'static str> {
    match form {
        "SECONDS" => Some("seconds"),
        "MS" => Some("milliseconds"),
        _ => None,
    }
}

/// Everything about one setting.
pub(crate) fn one(view: &SettingView) -> String {
    let mut lines = vec![format!("{}={}", view.key, view.form), format!("  {}", view.meaning)];
    let unit = view.unit.map_or_else(String::new, |unit| format!(", in {unit}"));
    lines.push(format!("  type      {}{unit}", view.r#type));
    lines.push(format!("  default   {}", view.default.as_deref().unwrap_or("none")));
    lines.push(format!("  flag      --{}", view.key));
    lines.push(format!("  variable  {}", view.variable));
    lines.push(format!("  now       {} ({})", view.value.as_deref().unwrap_or("not set"), view.from));
    lines.join("\n")
}

/// All settings, a line each.
pub(crate) fn list(views: &[SettingView]) -> String {
    let mut table = Table::new(&["SETTING", "FORM", "VALUE", "FROM"]);
    for view in views {
        let value = view.value.clone().unwrap_or_default();
        table.row(vec![view.key.clone(), view.form.clone(), value, view.from.to_owned()]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn every_setting_says_what_it_means_and_what_its_values_are() {
        let settings = Settings::new();
        for arg in settings.args() {
            let view = SettingView::of(arg, None);
            assert!(!view.meaning.is_empty() && !view.form.is_empty(), "{view:?}");
            assert_eq!(view.unit.is_some(), view.r#type == "length of time", "{view:?}");
        }
        let text = one(&SettingView::of(settings.arg("heartbeat-timeout").expect("there"), None));
        let expected = [
            "heartbeat-timeout=SECONDS\n  A task that is silent for this long has failed",
            "\n  type      length of time, in seconds\n  default   100\n  flag      --heartbeat-timeout\n",
            "\n  variable  TRIPOD_HEARTBEAT_TIMEOUT\n  now       100 (default)",
        ];
        for part in expected {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
