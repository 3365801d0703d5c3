//! `tripod bench`: the load generator against a running cluster.

use tripod_load::cli::BenchArgs;
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(crate) async fn run(args: BenchArgs, global: Global) -> Result<(), Failure> {
    let format = global.format();
    let failed = |why: String| Failure::new(Code::BenchFailed, format!("bench: {why}"));
    let report = tripod_load::cli::run(args, global.endpoints).await;
    let report = report.map_err(|error| failed(format!("{error:#}")))?;
    match format {
        Format::Json => output::json(&report)?,
        Format::Table => output::line(&report.table())?,
    }
    if report.ops == 0 {
        return Err(failed(format!("none of the requests succeeded ({} failed)", report.errors)));
    }
    Ok(())
}
