//! `tripod status`: answers within two seconds, whatever is dead.

use std::time::Duration;

use clap::Args;
use tripod_client::{Client, Config, NodeAnswer};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::cluster::{ClusterView, not_asked};

/// Half of the promised two seconds: members that were not named are asked in a second round.
const ASK_TIMEOUT: Duration = Duration::from_millis(950);

/// Flags of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Also show each node's hash of its whole state; equal at equal applied index. Reads all of it
    #[arg(long)]
    digest: bool,
}

pub(crate) async fn run(args: &StatusArgs, global: &Global) -> Result<(), Failure> {
    let view = ClusterView::of(&ask_all(&global.endpoints, args.digest).await?, args.digest);
    match global.format() {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    if view.anybody_answered() {
        return Ok(());
    }
    Err(Failure::new(
        Code::NoAnswer,
        format!("no node answered: {}; is the cluster up, is --endpoints right?", view.reasons()),
    ))
}

/// Asks the nodes at `endpoints`, and then the members of the cluster that were not among them.
pub(super) async fn ask_all(endpoints: &[String], digest: bool) -> Result<Vec<NodeAnswer>, Failure> {
    let mut answers = ask(endpoints.to_vec(), digest).await?;
    let more = not_asked(&answers);
    if !more.is_empty() {
        answers.extend(ask(more, digest).await?);
    }
    Ok(answers)
}

async fn ask(endpoints: Vec<String>, digest: bool) -> Result<Vec<NodeAnswer>, Failure> {
    let client = Client::new(&Config::new(endpoints))?;
    Ok(client.status(ASK_TIMEOUT, digest).await)
}
