//! What is told of a command line: the help that it asks for, or what is wrong with it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use tripod_proto::code::Code;

use crate::cli::Cli;
use crate::failure::{Exit, Failure};
use crate::output::Format;

/// How a line wants its data, as far as that can be seen before anybody knows whether it is legal.
pub(crate) fn format_asked(line: &[OsString]) -> Format {
    let words = line.iter().map(|word| word.to_str().unwrap_or_default());
    let mut before = "";
    for word in words.take_while(|word| *word != "--") {
        let behind = word == "json" && matches!(before, "-o" | "--output");
        if behind || matches!(word, "--json" | "-ojson" | "-o=json" | "--output=json") {
            return Format::Json;
        }
        before = word;
    }
    Format::Table
}

/// What the parser of a command line has to say: help, which was asked for, or what is wrong.
///
/// # Errors
/// The line is wrong, or nobody reads the help.
pub(crate) fn told(mut error: clap::Error) -> Result<ExitCode, Failure> {
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = without_global_flags(&usage.to_string());
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
    }
    let text = error.to_string();
    match text.strip_prefix("error: ") {
        Some(wrong) => Err(Failure::new(Code::Usage, wrong.trim_end())),
        None => {
            error.print()?;
            Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8)))
        }
    }
}

/// A usage as the parser makes it also lists what is given, and takes a flag for given that is set by the environment:
/// nobody need give what every command takes.
fn without_global_flags(usage: &str) -> String {
    let mut cli = Cli::command();
    // Only then its flags know how many values they take, and can be written down.
    cli.build();
    let global = cli.get_arguments().filter(|flag| flag.is_global_set());
    global.fold(usage.to_owned(), |usage, flag| usage.replace(&format!(" {flag}"), ""))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn json_is_asked_for_on_lines_that_are_wrong_otherwise() {
        let asked = |text: &str| format_asked(&line(text)) == Format::Json;
        for text in ["tripod kv get --json", "tripod x -o json", "tripod --output=json", "tripod -ojson x"] {
            assert!(asked(text), "{text}");
        }
        for text in ["tripod kv get json", "tripod run -- python --json", "tripod x -o table", "tripod"] {
            assert!(!asked(text), "{text}");
        }
    }

    #[test]
    fn the_secret_half_of_a_recipient_is_not_repeated() {
        let text = "tripod snapshot save f --recipient AGE-SECRET-KEY-1QQQQ";
        let wrong = Cli::try_parse_from(line(text)).expect_err("it is no recipient");
        let told = told(wrong).expect_err("wrong usage").to_string();
        assert!(told.contains("the secret half") && !told.contains("1QQQQ"), "{told}");
    }

    #[test]
    fn n29_the_usage_of_a_command_names_only_what_must_be_given() {
        let told = |text: &str| {
            // As if TRIPOD_ENDPOINTS were set: a flag of the line counts in the same way.
            let wrong = Cli::try_parse_from(line(text)).expect_err("something is missing");
            told(wrong).expect_err("wrong usage").to_string()
        };
        let create = told("tripod job create x --endpoints a:1");
        assert!(create.contains("\nUsage: tripod job create --tasks <N> <NAME>"), "{create}");
        let get = told("tripod --endpoints a:1 kv get");
        assert!(get.contains("\nUsage: tripod kv get <KEY>"), "{get}");
        assert!(told("tripod frobnicate").contains("\nUsage: tripod [OPTIONS] <COMMAND>"));
    }
}
