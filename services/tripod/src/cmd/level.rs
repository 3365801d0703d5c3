//! `tripod level`: what all members understand, and the way back to an older build.

use std::time::Duration;

use clap::Subcommand;
use tokio::time::Instant;
use tripod_client::{Client, wire};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::cmd::leader::leader;
use crate::failure::Failure;
use crate::operator::who;
use crate::output::{self, Format};
use crate::view::level::{LevelsView, not_back, still_pinned};

/// Between two looks at nodes that follow.
const PAUSE: Duration = Duration::from_millis(100);

const ABOUT: &str = "\
A feature level is a number that says what may stand in journals, snapshots and messages between nodes. Nodes of
two builds can run in one cluster because the level rises only when every member supports it, which the leader
sees to by itself. A command that needs a higher level is refused until then, and nothing is changed.

Upgrade (docs/runbooks/rolling-upgrade.md): restart one node after the other with the newer build; the level rises
when the last one is there.

Go back (docs/runbooks/downgrade.md): `tripod level pin N` first, then restart one node after the other with the
older build, whose data then is readable for it: BACK TO in `level show` says for each node whether it is.";

const PIN_ABOUT: &str = "\
Refused when something in the state needs more than level N: the answer names it, and the command that takes it
away. The command waits until the data of every node is readable for builds of level N, which takes a snapshot on
each. Nodes remember the pin in their data directories: after going back and coming forward again the level stays
until `tripod level unpin`.";

/// What to do with the level.
#[derive(Debug, Subcommand)]
#[command(after_help = ABOUT)]
pub(crate) enum LevelCommand {
    /// Show the level, what every node supports, and to which level each can go back
    Show,
    /// Lower the level to N, or leave it there, and keep it from rising
    #[command(after_help = PIN_ABOUT)]
    Pin {
        /// The level; a build that supports no more can be started then
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        level: u32,
        /// Return when the level is pinned, whatever the nodes still have to save
        #[arg(long)]
        no_wait: bool,
    },
    /// Let the level rise again when all nodes support more
    Unpin,
}

pub(crate) async fn run(command: LevelCommand, global: &Global) -> Result<(), Failure> {
    let client = global.client()?;
    let timeout = global.timeout.duration();
    let report = match command {
        LevelCommand::Show => client.levels().await?,
        LevelCommand::Pin { level, no_wait } => {
            let (_, endpoint) = leader(&client).await?;
            let request = wire::PinLevelRequest { level, by: who() };
            let pinned = Client::pin_level(&endpoint, &request, timeout).await?;
            if no_wait { pinned } else { wait(&client, pinned, timeout, |now| not_back(now, level)).await? }
        }
        LevelCommand::Unpin => {
            let (_, endpoint) = leader(&client).await?;
            let request = wire::UnpinLevelRequest { by: who() };
            let unpinned = Client::unpin_level(&endpoint, &request, timeout).await?;
            wait(&client, unpinned, timeout, still_pinned).await?
        }
    };
    let view = LevelsView::of(&report);
    match global.format() {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}

/// Waits until no node is behind what was asked for.
async fn wait(
    client: &Client,
    mut report: wire::LevelsReport,
    timeout: Duration,
    behind: impl Fn(&wire::LevelsReport) -> Vec<u64>,
) -> Result<wire::LevelsReport, Failure> {
    let deadline = Instant::now() + timeout;
    loop {
        let waiting = behind(&report);
        if waiting.is_empty() {
            return Ok(report);
        }
        if Instant::now() >= deadline {
            let nodes: Vec<String> = waiting.iter().map(u64::to_string).collect();
            return Err(Failure::new(
                Code::LevelWait,
                format!(
                    "it is done, but node {} has not followed yet; wait until `tripod level show` says \
                 so (after a pin: the level under BACK TO)",
                    nodes.join(", ")
                ),
            ));
        }
        tokio::time::sleep(PAUSE).await;
        report = client.levels().await?;
    }
}
