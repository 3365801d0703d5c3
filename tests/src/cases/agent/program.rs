//! Every fault in one run of the program: no call may fail.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::agents::{self, Setup};
use crate::cases::directed::faults;
use crate::cases::directed::program::Manners;

/// Runs it; the remark tells the longest call of each fault.
pub(super) async fn run(python: &Path, folder: &Path, legacy: bool) -> Result<String> {
    let setup = Setup { program: Manners { legacy, ..Manners::default() }, ..Setup::default() };
    let mut stage = agents::stage(python, folder, &setup).await?;
    let remarks = faults::all(&mut stage).await?;
    let end_ms = faults::killed_in_shutdown(&mut stage).await.context("in leave")?;
    let panicked = stage.way.all.iter().any(|agent| agent.output().contains("panicked"));
    ensure!(!panicked, "an agent panicked");
    let devices = &stage.program.introduction()?["devices"];
    let remarks = remarks.join(", ");
    Ok(format!("no call failed with {devices} devices; longest in ms: {remarks}, {end_ms} until the end"))
}
