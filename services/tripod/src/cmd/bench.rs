//! `tripod bench`: the load generator against a running cluster.

use tripod_load::cli::BenchArgs;
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::Format;

pub(crate) async fn run(args: BenchArgs, global: Global) -> Result<(), Failure> {
    let json = global.format() == Format::Json;
    tripod_load::cli::run(args, global.endpoints, json)
        .await
        .map_err(|error| Failure::new(Code::BenchFailed, format!("bench: {error:#}")))
}
