//! `tripod leader`: moving leadership.

use std::cell::Cell;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use tokio::time::Instant;
use tripod_client::{Client, Error, NodeAnswer, wire};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};

/// How long who leads is asked for, if so few nodes answer that it is not sure before.
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
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: Option<u64>,
        /// The same as ID
        #[arg(long, value_name = "ID", conflicts_with = "node", value_parser = clap::value_parser!(u64).range(1..))]
        to: Option<u64>,
    },
}

pub(crate) async fn run(command: LeaderCommand, global: &Global) -> Result<(), Failure> {
    let LeaderCommand::Transfer { node, to } = command;
    let to = node.or(to);
    let client = global.client()?;
    let timeout = global.timeout.duration();
    let first = Cell::new(None);
    let transfer = async |id: u64, endpoint: &str, left: Duration| {
        let old = first.get().unwrap_or(id);
        first.set(Some(old));
        // Nothing to do, or an attempt has taken effect that was not answered.
        if to == Some(id) || old != id {
            return Ok(old);
        }
        Client::transfer_leader(endpoint, to, left).await.map(|()| old)
    };
    let old = call_whoever_leads(&client, timeout, transfer).await?;
    if to == Some(old) {
        return print(old, old, global.format());
    }
    let new = wait_for_another(&client, old, timeout).await?;
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
    let answers = client.status_until(ASK_TIMEOUT, false, is_settled).await;
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

/// Whether these answers tell who leads, so that nodes which are cut off need not be waited for: of the voters more
/// than half are of one mind, and the leader is among those who answered; or more than half know none.
fn is_settled(answers: &[NodeAnswer]) -> bool {
    let told = || answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    let Some(newest) = told().max_by_key(|status| (status.term, status.leader_id)) else { return false };
    let voters: Vec<u64> =
        newest.members.iter().filter(|member| member.voter).map(|member| member.node_id).collect();
    let votes = |leader: u64| {
        let agree = |status: &&wire::StatusResponse| {
            voters.contains(&status.node_id)
                && status.leader_id == leader
                && (leader == 0 || status.term == newest.term)
        };
        told().filter(agree).count()
    };
    let leader = newest.leader_id;
    let answered = leader == 0 || told().any(|status| status.node_id == leader);
    answered && votes(leader) * 2 > voters.len()
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
    call_whoever_leads(client, timeout, async |_, endpoint: &str, left| call(endpoint, left).await).await
}

/// [`call_leader`] for a call that depends on which node it is.
async fn call_whoever_leads<T>(
    client: &Client,
    timeout: Duration,
    call: impl AsyncFn(u64, &str, Duration) -> Result<T, Error>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(PAUSE);
        let refused = match leader(client).await {
            Ok((id, endpoint)) => match call(id, &endpoint, left.min(ATTEMPT_TIMEOUT)).await {
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

#[cfg(test)]
mod tests {
    use tripod_client::{Attempt, Phase};

    use super::*;

    /// A node of three voters that names `leader` in `term`.
    fn says(node_id: u64, leader_id: u64, term: u64) -> NodeAnswer {
        let voter = |node_id| wire::Member { node_id, voter: true, ..wire::Member::default() };
        let members = (1..=3).map(voter).collect();
        let status = wire::StatusResponse { node_id, leader_id, term, members, ..Default::default() };
        NodeAnswer { endpoint: format!("host-{node_id}:1"), status: Ok(status) }
    }

    fn silent() -> NodeAnswer {
        let attempt = Attempt { endpoint: "host:1".into(), phase: Phase::Connect, cause: "refused".into() };
        NodeAnswer { endpoint: "host:1".into(), status: Err(attempt) }
    }

    #[test]
    fn nobody_waits_for_a_node_that_is_cut_off_once_the_others_tell_who_leads() {
        assert!(is_settled(&[says(1, 1, 4), says(2, 1, 4)]));
        assert!(is_settled(&[says(1, 1, 4), silent(), says(2, 1, 4)]));
        assert!(!is_settled(&[]) && !is_settled(&[silent()]));
        assert!(!is_settled(&[says(1, 1, 4)]), "one that is cut off believes that it leads");
        assert!(!is_settled(&[says(2, 1, 4), says(3, 1, 4)]), "its endpoint may answer yet");
        assert!(!is_settled(&[says(1, 1, 4), says(2, 2, 5)]), "there may be an answer of node 3");
        assert!(!is_settled(&[says(1, 1, 4), says(2, 0, 4)]));
    }

    #[test]
    fn n28_the_heir_is_named_as_nodes_are_elsewhere_or_by_its_flag() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(subcommand)]
            command: LeaderCommand,
        }
        let heir = |words: &[&str]| {
            let line = ["test", "transfer"].iter().chain(words);
            let line = <Line as clap::Parser>::try_parse_from(line).map_err(|error| error.kind())?;
            let LeaderCommand::Transfer { node, to } = line.command;
            Ok(node.or(to))
        };
        assert_eq!((heir(&["3"]), heir(&["--to", "3"]), heir(&[])), (Ok(Some(3)), Ok(Some(3)), Ok(None)));
        assert_eq!(heir(&["3", "--to", "3"]), Err(clap::error::ErrorKind::ArgumentConflict));
    }

    #[test]
    fn that_nobody_leads_is_known_when_half_of_the_voters_say_so() {
        assert!(is_settled(&[says(1, 0, 4), says(2, 0, 5)]));
        assert!(!is_settled(&[says(1, 0, 4), says(2, 1, 4)]));
        assert!(!is_settled(&[says(1, 0, 4), silent()]));
    }
}
