//! `tripod leader`: moving leadership.

use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use tokio::time::Instant;
use tripod_client::{Client, Error, wire};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};

const ASK_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(25);
/// How long one who is said to lead is called: one that is dead is still said to lead until the next election.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// What to do with the leader.
#[derive(Debug, Subcommand)]
pub(crate) enum LeaderCommand {
    /// Hand leadership to another node; clients notice nothing
    Transfer {
        /// The node to hand it to [default: the one that is furthest]
        #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        to: Option<u64>,
    },
}

pub(crate) async fn run(command: LeaderCommand, global: &Global) -> Result<(), Failure> {
    let LeaderCommand::Transfer { to } = command;
    let client = global.client()?;
    let (old, endpoint) = leader(&client).await?;
    if to == Some(old) {
        return print(old, old, global.format());
    }
    Client::transfer_leader(&endpoint, to, global.timeout.duration()).await?;
    let new = wait_for_another(&client, old, global.timeout.duration()).await?;
    print(old, new, global.format())
}

fn print(old: u64, new: u64, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(&json!({ "from": old, "leader": new }))?,
        Format::Table => output::line(&format!("leader node {new} (was node {old})"))?,
    }
    Ok(())
}

/// The leader's id and client address, as the node with the highest term knows them.
pub(crate) async fn leader(client: &Client) -> Result<(u64, String), Failure> {
    let answers = client.status(ASK_TIMEOUT, false).await;
    if answers.iter().all(|answer| answer.status.is_err()) {
        let attempts = answers.into_iter().filter_map(|answer| answer.status.err()).collect();
        return Err(Error::Unavailable { what: "asking who leads", waited: ASK_TIMEOUT, attempts }.into());
    }
    let told = answers.iter().filter_map(|answer| answer.status.as_ref().ok().map(|status| (answer, status)));
    let known =
        told.clone().filter(|(_, status)| status.leader_id != 0).max_by_key(|(_, status)| status.term);
    let Some((_, status)) = known else {
        let why = "no node that answers knows a leader; a majority of the nodes must be up: `tripod status`";
        return Err(Failure::new(Code::NoLeader, why));
    };
    let id = status.leader_id;
    // The leader itself may be among the endpoints under an address it did not announce.
    let itself = told.clone().find(|(_, status)| status.node_id == id);
    if let Some((answer, _)) = itself {
        return Ok((id, answer.endpoint.clone()));
    }
    let announced = |member: &&wire::Member| member.node_id == id && !member.client_address.is_empty();
    status.members.iter().find(announced).map(|member| (id, member.client_address.clone())).ok_or_else(|| {
        Failure::new(
            Code::LeaderUnaddressed,
            format!("node {id} leads, but its client address is unknown; add it to --endpoints"),
        )
    })
}

/// Calls the leader, whoever it is by then, until one has taken the call or the time is over.
///
/// # Errors
/// The last reason why nobody took it, or what the leader says about it.
pub(crate) async fn call_leader<T>(
    client: &Client,
    timeout: Duration,
    call: impl AsyncFn(&str, Duration) -> Result<T, Error>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(PAUSE);
        let refused = match leader(client).await {
            Ok((_, endpoint)) => match call(&endpoint, left.min(ATTEMPT_TIMEOUT)).await {
                Ok(answer) => return Ok(answer),
                Err(Error::Refused { reason, .. }) if reason == "not-leader" => {
                    Failure::new(Code::NoLeader, "no node leads; see `tripod status`")
                }
                Err(error @ Error::Unavailable { .. }) => error.into(),
                Err(error) => return Err(error.into()),
            },
            Err(failure) => failure,
        };
        if Instant::now() >= deadline {
            return Err(refused);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn wait_for_another(client: &Client, old: u64, timeout: Duration) -> Result<u64, Failure> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Ok((new, _)) = leader(client).await
            && new != old
        {
            return Ok(new);
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(
                Code::LeaderStayed,
                format!("node {old} still leads; see `tripod status`"),
            ));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
