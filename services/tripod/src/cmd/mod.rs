//! One file a command: its flags, and what it puts together.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod bench;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod dev;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod job;
pub(crate) mod kv;
pub(crate) mod leader;
pub(crate) mod level;
pub(crate) mod man;
pub(crate) mod mars;
pub(crate) mod member;
pub(crate) mod metrics;
pub(crate) mod mindspore;
pub(crate) mod node;
pub(crate) mod objstore;
pub(crate) mod pki;
pub(crate) mod preflight;
pub(crate) mod ray;
pub(crate) mod recover;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod version;
pub(crate) mod worker;

use std::process::ExitCode;

use tripod_proto::code::Code;

use crate::args::{tls_flags, token_file};
use crate::cli::{Cli, Command, Global};
use crate::failure::Failure;

/// Has what this process asks of nodes go by TLS, if it was told by which files.
fn protect(command: &Command, global: &Global) -> Result<(), Failure> {
    let Some(directory) = global.tls_dir() else { return Ok(()) };
    let has_token = global.token_file.is_some();
    match command {
        Command::Bench(_) => {
            let text = "`bench` does not speak TLS; leave out --tls-dir and TRIPOD_TLS_DIR, and have the nodes serve it with \
                        --client-tls permissive";
            Err(Failure::new(Code::FlagsConflict, text))
        }
        Command::Agent(_) | Command::Objstore(_) | Command::Worker(_) => {
            let tls = tls_flags::protect_client(&directory, has_token)?;
            tokio::spawn(tls.keep_current());
            Ok(())
        }
        command if command.asks_the_cluster() || matches!(command, Command::Status(_) | Command::Run(_)) => {
            tls_flags::protect_client(&directory, has_token).map(drop)
        }
        _ => Ok(()),
    }
}

/// Has what this process asks of nodes show a token, if it was told of one.
fn bear(command: &Command, global: &Global) -> Result<(), Failure> {
    let Some(file) = &global.token_file else { return Ok(()) };
    let is_a_process = matches!(command, Command::Agent(_) | Command::Objstore(_) | Command::Worker(_));
    let asks = command.asks_the_cluster() || matches!(command, Command::Status(_) | Command::Run(_));
    if is_a_process || asks {
        token_file::bear(file, global.tls_dir().as_deref())?;
        // Whatever it is: `run` tells how its program has ended, days later, and there are commands that look on.
        tokio::spawn(token_file::keep_current(file.clone()));
    }
    Ok(())
}

/// Runs the command of this process; tells what the process is to end with.
pub(crate) async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let global = cli.global;
    protect(&cli.command, &global)?;
    bear(&cli.command, &global)?;
    let endpoints = cli.command.asks_the_cluster().then(|| global.endpoints.clone());
    let done = match cli.command {
        Command::Run(args) => return run::run(*args, &global).await,
        Command::Agent(args) => agent::run(*args, &global).await,
        Command::Dev(args) => dev::run(args, &global).await,
        Command::Server(args) => server::run(*args).await,
        Command::Status(args) => status::run(&args, &global).await,
        Command::Diagnose(args) => {
            return match diagnose::run(&args, &global).await {
                Err(failure) => Err(status::explained(failure, &global.endpoints).await),
                ended => ended,
            };
        }
        Command::Job(command) => job::run(command, &global).await,
        Command::Events(args) => events::run(&args, &global).await,
        Command::Audit(command) => audit::run(command, &global).await,
        Command::Auth(command) => auth::run(command, &global).await,
        Command::Kv(command) => kv::run(command, &global).await,
        Command::Leader(command) => leader::run(command, &global).await,
        Command::Level(command) => level::run(command, &global).await,
        Command::Member(command) => member::run(command, &global).await,
        Command::Node(command) => node::run(command, &global).await,
        Command::Snapshot(command) => snapshot::run(command, &global).await,
        Command::Doctor(args) => doctor::run(args, &global).await,
        Command::Objstore(args) => objstore::run(args, &global).await,
        Command::Worker(args) => worker::run(args, &global).await,
        Command::Ray(command) => ray::run(command, &global).await,
        Command::Mindspore(command) => mindspore::run(command, &global).await,
        Command::Mars(command) => mars::run(command, &global).await,
        Command::Repair(command) => repair::run(command, &global).await,
        Command::Recover(args) => recover::run(args, &global).await,
        Command::Config(command) => config::run(&command, &global),
        Command::Pki(command) => pki::run(command, &global),
        Command::Preflight(args) => preflight::run(*args, &global).await,
        Command::Completion { shell } => completion::run(shell, global.format()),
        Command::Man { dir } => man::run(&dir, global.format()),
        Command::Version => version::run(&global),
        Command::Metrics(command) => metrics::run(&command, &global),
        Command::Explain(args) => explain::run(&args, &global),
        Command::Bench(args) => bench::run(args, global).await,
    };
    match (done, endpoints) {
        (Ok(()), _) => Ok(ExitCode::SUCCESS),
        (Err(failure), Some(endpoints)) => Err(status::explained(failure, &endpoints).await),
        (Err(failure), None) => Err(failure),
    }
}
