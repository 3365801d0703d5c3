//! `tripod node`: one node's part for a while.

use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use tokio::time::Instant;
use tripod_client::{Client, Error};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::cmd::leader::leader;
use crate::failure::Failure;
use crate::output::{self, Format};

/// Between two looks, and two attempts while leadership goes from one node to another.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

const DRAIN_EXAMPLE: &str = "\
Example, to work on the machine of node 2:
  tripod node drain 2        leadership and clients go to other nodes; the command returns when it leads no more
  systemctl stop tripod      or whatever is to be done, on that machine
  tripod node undrain 2      once it is back

The node goes on voting and taking entries, so the quorum is as before, and answers whoever comes; /readyz and
grpc.health.v1 say that it is not ready, so that load balancers send nobody. It stays drained, through elections and
restarts, until it is undrained; `tripod member list` shows it. One that leads because nobody else can hands over as
soon as another one is able to.";

/// What to do with a node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Before maintenance: send a node's clients and leadership to others; it goes on voting
    #[command(after_help = DRAIN_EXAMPLE)]
    Drain {
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: u64,
    },
    /// After maintenance: let a node lead and have clients again
    Undrain {
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: u64,
    },
}

pub(crate) async fn run(command: NodeCommand, global: &Global) -> Result<(), Failure> {
    let (node, drained) = match command {
        NodeCommand::Drain { node } => (node, true),
        NodeCommand::Undrain { node } => (node, false),
    };
    let client = global.client()?;
    let deadline = Instant::now() + global.timeout.duration();
    ask(&client, node, drained, deadline).await?;
    let leader = settled(&client, node, drained, deadline).await?;
    match global.format() {
        Format::Json => output::json(&json!({ "node": node, "drained": drained, "leader": leader }))?,
        Format::Table if drained => {
            output::line(&format!(
                "node {node} is drained, node {leader} leads; next: `tripod node undrain {node}`"
            ))?;
        }
        Format::Table => output::line(&format!("node {node} may lead and have clients again"))?,
    }
    Ok(())
}

/// Has the leader write it into the log. To repeat it does no harm.
async fn ask(client: &Client, node: u64, drained: bool, deadline: Instant) -> Result<(), Failure> {
    loop {
        let asked = match leader(client).await {
            Ok((_, endpoint)) => match Client::drain(&endpoint, node, drained, LOOK_TIMEOUT).await {
                Err(error @ Error::Refused { .. }) if !is_about_the_leader(&error) => {
                    return Err(error.into());
                }
                asked => asked.map_err(Failure::from),
            },
            Err(failure) => Err(failure),
        };
        match asked {
            Ok(()) => return Ok(()),
            Err(failure) if Instant::now() >= deadline => return Err(failure),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn is_about_the_leader(error: &Error) -> bool {
    matches!(error, Error::Refused { reason, .. } if reason == "not-leader")
}

/// Who leads, once a node that is drained does not.
async fn settled(client: &Client, node: u64, drained: bool, deadline: Instant) -> Result<u64, Failure> {
    loop {
        match leader(client).await {
            Ok((leader, _)) if !drained || leader != node => return Ok(leader),
            Ok(_) if Instant::now() >= deadline => {
                return Err(Failure::new(
                    Code::LeaderStayed,
                    format!(
                        "node {node} is drained and still leads: nobody else can yet, and it hands over when somebody can; \
                     see `tripod member list`"
                    ),
                ));
            }
            Err(failure) if Instant::now() >= deadline => return Err(failure),
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}
