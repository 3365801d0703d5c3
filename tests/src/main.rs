//! `tripod-clients`: real JAX clients against real clusters. `cargo xtask test` prepares the Python
//! environments and starts it.

mod cases;
mod runner;
mod settings;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::settings::{Arguments, Settings};

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match Settings::new(Arguments::parse()) {
        Ok(settings) => Arc::new(settings),
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let (together, alone) = cases::all(&settings);
    let tally = runner::run(&settings, together, alone).await;
    println!("client tests: {} passed, {} failed", tally.passed, tally.failed.len());
    if tally.failed.is_empty() && tally.passed > 0 {
        return ExitCode::SUCCESS;
    }
    for name in tally.failed {
        println!("failed: {name}; to repeat: cargo xtask test --only clients --filter '{name}'");
    }
    ExitCode::FAILURE
}
