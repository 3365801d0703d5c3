//! Logs go to standard error; `TRIPOD_LOG` says how much (`info`, `debug`, `tripod_raft=debug,warn`).

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Starts logging. Commands that only ask a cluster say nothing but warnings unless told to.
pub(crate) fn start(is_a_service: bool) {
    // openraft warns of a dead peer some thirty times a second; `tripod status` says it once.
    let level = if is_a_service { "info,openraft=error,sled=warn,h2=warn" } else { "warn" };
    let filter = EnvFilter::try_from_env("TRIPOD_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
