//! `tripod completion`: scripts that let a shell complete commands and flags.

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell as Generator;
use tripod_proto::code::Code;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::{self, Format};

/// The shells that there is a script for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(shell: Shell, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table => Ok(output::bytes(&script(shell))?),
        Format::Json => {
            let told = "a completion script is for a shell and has no form as JSON; leave out --json";
            Err(Failure::new(Code::FlagsConflict, told))
        }
    }
}

/// The script, from the description of the command line.
fn script(shell: Shell) -> Vec<u8> {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut Cli::command(), "tripod", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n25_a_script_is_not_given_as_something_that_it_is_not() {
        let told = run(Shell::Bash, Format::Json).expect_err("refused").to_string();
        assert!(told.starts_with("T1102 flags-conflict: ") && told.contains("--json"), "{told}");
    }

    #[test]
    fn a_script_knows_the_commands_and_flags() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("UTF-8");
            for word in ["snapshot", "preflight", "heartbeat-timeout", "accept-loss"] {
                assert!(script.contains(word), "{shell:?} does not know {word}");
            }
        }
    }
}
