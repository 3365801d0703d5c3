//! `tripod version`: which program this is.

use serde::Serialize;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};

/// Fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct VersionView {
    version: &'static str,
}

pub(crate) fn run(global: &Global) -> Result<(), Failure> {
    let view = VersionView { version: env!("CARGO_PKG_VERSION") };
    match global.format() {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&format!("tripod {}", view.version))?,
    }
    Ok(())
}
