//! `tripod completion`: scripts that let a shell complete commands and flags.

use std::io::Write as _;

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell as Generator;

use crate::cli::Cli;
use crate::failure::Failure;

/// The shells that there is a script for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(&script(shell))?;
    Ok(out.flush()?)
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
    fn a_script_knows_the_commands_and_flags() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("UTF-8");
            for word in ["snapshot", "preflight", "heartbeat-timeout", "accept-loss"] {
                assert!(script.contains(word), "{shell:?} does not know {word}");
            }
        }
    }
}
