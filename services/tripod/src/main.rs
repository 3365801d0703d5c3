//! `tripod`: the one binary. Server, local cluster, and the command line.
//!
//! This crate only puts the others together: it knows ports, signals, file paths, processes and how
//! things are printed. It knows no rule of the domain, nothing of consensus, and no wire format.
//!
//! Invariants:
//! * Data goes to standard output, everything else to standard error.
//! * Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nobody could be reached or nobody leads, 141 nobody reads on; of
//!   `run`: its program's.
//! * Every failure is one line that says what failed, why, and what to do next; an object for who asks for JSON.
//! * A process that this one starts ends with it, even if this one is killed. (Not so the program of
//!   `run`: it loses its agent, and ends or goes on as it does without one.)
//!
//! | module | what |
//! |---|---|
//! | `cli` | the command line, with its help |
//! | `cmd` | one file a command |
//! | `settings`, `environment`, `config_file` | what `server` takes as flags, variables or keys of a file |
//! | `confirm` | asking before something is destroyed |
//! | `args` | values of flags that several commands take |
//! | `node` | one running node: listeners, job ports, announcement, stop |
//! | `dev` | a cluster of processes on this machine |
//! | `preflight` | whether a machine is fit for a node |
//! | `launch` | a program as one task of a job, with an agent of its own |
//! | `child` | processes of this same executable |
//! | `view` | what is printed, as data |
//! | `operator` | who gives a command |
//! | `output`, `failure`, `logging` | printing, exit codes, logs |
//! | `usage` | what is told of a line that is wrong |
//! | `bootstrap` | how a node is asked for the first operator's token |
//! | `pki` | certificates, for clusters without an issuer of their own |
//! | `sealed` | backups that only their recipients can open |
//! | `secret_file` | files that nobody else may read |
//! | `plain_text` | ports that other machines could reach in plain text |
//! | `pages` | what error codes mean, `docs/errors` |
//!
//! Tests that are called `n` and a number pin what the walk-through of a new operator found under that number.

// Whatever reaches a terminal goes through `output`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod backups;
mod bootstrap;
mod child;
mod cli;
mod cmd;
mod config_file;
mod confirm;
mod dev;
mod environment;
mod failure;
mod launch;
mod logging;
mod node;
mod open_files;
mod operator;
mod output;
mod pages;
mod pki;
mod plain_text;
mod preflight;
mod sealed;
mod secret_file;
mod settings;
mod usage;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use tripod_proto::code::Code;

use crate::cli::Cli;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Format;

/// The allocator of the C library keeps far more memory than a state of many small values needs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Breaks the promise that `TRIPOD_PLANT` names, in this process and in those that it starts.
#[cfg(feature = "planted")]
fn plant() {
    let Ok(name) = std::env::var("TRIPOD_PLANT") else { return };
    let bug = tripod_state::planted::Bug::named(&name).expect("TRIPOD_PLANT names a bug");
    tripod_state::planted::plant(Some(bug));
}

fn main() -> ExitCode {
    #[cfg(feature = "planted")]
    plant();
    let line: Vec<OsString> = std::env::args_os().collect();
    let mut format = usage::format_asked(&line);
    match run(line, &mut format) {
        Ok(code) => code,
        Err(failure) => {
            failure.tell(format);
            failure.exit_code()
        }
    }
}

/// Runs the command of the line; `format` is how its failure is told.
fn run(line: Vec<OsString>, format: &mut Format) -> Result<ExitCode, Failure> {
    let environment = Environment::of_this_process();
    for warning in environment.warnings() {
        output::note(&format!("warning: {warning}"));
    }
    let line = config_file::complete(line, &environment)?;
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => return usage::told(error),
    };
    *format = if cli.command.fails_as_data() { cli.global.format() } else { Format::Table };
    if cli.command.keeps_what_it_writes_private() {
        // Before there are threads, and before anything is made.
        tripod_local::files::close();
    }
    logging::start(cli.command.is_a_service(), cli.global.log_format);
    let logs_its_end = cli.command.logs_its_end();
    // An agent passes small messages on, from one connection to another: a second thread would only have
    // to be woken for each.
    let mut builder = match cli.command {
        cli::Command::Agent(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(Code::ProcessLimits, format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(cmd::run(cli));
    // Calls that are still held, and a read of standard input, would keep the process alive.
    runtime.shutdown_background();
    result.inspect_err(|failure| {
        if logs_its_end {
            failure.log_the_end();
        }
    })
}
