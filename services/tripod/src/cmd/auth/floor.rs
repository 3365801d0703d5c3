//! `tripod auth floor`: how nodes are to be protected at least.

use clap::Args;
use serde_json::json;
use tripod_client::wire;
use tripod_state::identity::Mode;

use crate::cli::Global;
use crate::failure::Failure;
use crate::operator::who;
use crate::output::{self, Format};

const ABOUT: &str = "\
A node that is less protected does not start (T1523), and one that runs says so; `tripod status` shows how each node is.
Modes, each with all of those before it:
  off          nothing is asked of nodes
  permissive   the peer port and the client port take TLS, and perhaps plain text
  rehearse     --authorise log: it is counted who calls what that is not for them
  enforce      both ports take TLS only, and --authorise enforce refuses such calls
  strict       the http port takes TLS only

Raise it when `tripod status` shows that no node is below. From `enforce` on only an operator lowers it, who
proves that by a certificate or a token, by a node that enforces. Needs feature level 11 (`tripod level show`).

Example:
  tripod auth floor enforce";

/// Flags of `auth floor`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub(crate) struct FloorArgs {
    /// off, permissive, rehearse, enforce or strict
    #[arg(value_name = "MODE")]
    mode: Mode,
}

pub(super) async fn run(args: &FloorArgs, global: &Global) -> Result<(), Failure> {
    let mode = args.mode.word();
    let request = wire::SetFloorRequest { mode: mode.to_owned(), by: who() };
    global.client()?.set_floor(&request).await?;
    match global.format() {
        Format::Json => output::json(&json!({ "floor": mode }))?,
        Format::Table => output::line(&format!("nodes are to be protected as {mode} at least"))?,
    }
    Ok(())
}
