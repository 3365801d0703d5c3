//! `tripod member`: who takes part, and changes of that.

use std::time::Duration;

use clap::{Args, Subcommand};
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;
use tokio::time::Instant;
use tripod_client::wire::change_members_request::Change;
use tripod_client::{Client, wire};
use tripod_proto::code::Code;

use crate::args::host_port::host_port;
use crate::args::newcomer::Newcomer;
use crate::cli::Global;
use crate::cmd::leader::{call_leader, leader};
use crate::cmd::status::ask_all;
use crate::confirm::Consent;
use crate::failure::Failure;
use crate::operator::who;
use crate::output::{self, Format};
use crate::view::cluster::ClusterView;
use crate::view::counted;
use crate::view::members::{MembersView, VotesView};

/// Between two looks at a change that goes on.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// How often people are told how far it is.
const TELL_EVERY: Duration = Duration::from_secs(2);

const REPLACE_EXAMPLE: &str = "\
Example, for node 2, whose machine is gone for good:
  tripod server --join 10.0.0.1:7700 --data /var/lib/tripod \\
      --client 10.0.0.9:7700 --peer 10.0.0.9:7800 --http 10.0.0.9:7900     on the new machine
  tripod member replace 2 10.0.0.9:7800                                    anywhere

The order does not matter. There are never more voters than before: the new node gets the log first, and
then takes the place of the old one in one step. A command that was interrupted is given again and goes on.";

/// What to do with members.
#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Show who votes, who only listens, who answers the leader and who lags
    List,
    /// Give an id to a node and have it receive the log; it does not vote yet
    Add {
        /// Where the other nodes will reach it
        #[arg(value_name = "HOST:PORT", value_parser = host_port)]
        peer: String,
        #[command(flatten)]
        how: How,
    },
    /// Make a learner that has caught up a voter
    Promote {
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: u64,
        #[command(flatten)]
        how: How,
    },
    /// Make a voter a learner
    Demote {
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: u64,
        #[command(flatten)]
        how: How,
    },
    /// Take a node out for good; its id never comes back
    Remove {
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: u64,
        #[command(flatten)]
        how: How,
    },
    /// Put another node in the place of one that is dead, or is to go
    #[command(after_help = REPLACE_EXAMPLE)]
    Replace {
        /// The node that goes
        #[arg(value_name = "OLD", value_parser = clap::value_parser!(u64).range(1..))]
        old: u64,
        /// Where the other nodes reach the new one; with ID=, refused unless that is the id it gets
        #[arg(value_name = "[ID=]HOST:PORT")]
        new: Newcomer,
        #[command(flatten)]
        how: How,
    },
    /// Tell the others that a node is reached at another address; then start it there
    Move {
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
        node: u64,
        #[arg(value_name = "HOST:PORT", value_parser = host_port)]
        peer: String,
        #[command(flatten)]
        how: How,
    },
    /// Give up on the change in progress; what it has done by then stays
    Cancel {
        /// Its number, as `member list` shows it
        #[arg(value_name = "CHANGE", value_parser = clap::value_parser!(u64).range(1..))]
        change: u64,
    },
}

/// How a change is made.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct How {
    /// Only show the votes before and after; change nothing
    #[arg(long)]
    plan: bool,

    /// Change it even if too few of the voters that there will be answer. Then the cluster stands still, for
    /// reads and writes, until enough of them are back, and this command cannot be undone meanwhile
    #[arg(long)]
    force: bool,

    /// Return when the change has begun; it goes on by itself
    #[arg(long)]
    no_wait: bool,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(command: MemberCommand, global: &Global) -> Result<(), Failure> {
    let operator = Operator { client: global.client()?, global };
    match command {
        MemberCommand::List => operator.list().await,
        MemberCommand::Add { peer, how } => {
            operator.change(Change::Add(wire::AddMember { peer_address: peer }), how).await
        }
        MemberCommand::Promote { node, how } => operator.change(Change::Promote(node), how).await,
        MemberCommand::Demote { node, how } => operator.change(Change::Demote(node), how).await,
        MemberCommand::Remove { node, how } => operator.change(Change::Remove(node), how).await,
        MemberCommand::Replace { old, new, how } => operator.replace(old, new, how).await,
        MemberCommand::Move { node, peer, how } => {
            let moved = wire::MoveMember { node_id: node, peer_address: peer };
            operator.change(Change::Move(moved), how).await
        }
        MemberCommand::Cancel { change } => operator.cancel(change).await,
    }
}

/// The node that does not vote any more when the change is made.
fn taken_out(change: &Change) -> Option<u64> {
    match change {
        Change::Demote(node) | Change::Remove(node) => Some(*node),
        Change::Replace(replaced) => Some(replaced.node_id),
        Change::Add(_) | Change::Promote(_) | Change::Move(_) => None,
    }
}

/// Whoever gives the command, and what the cluster is.
struct Operator<'a> {
    client: Client,
    global: &'a Global,
}

impl Operator<'_> {
    async fn list(&self) -> Result<(), Failure> {
        let view = MembersView::of(&self.members(self.global.timeout.duration()).await?);
        match self.global.format() {
            Format::Json => output::json(&view)?,
            Format::Table => output::line(&view.render())?,
        }
        Ok(())
    }

    async fn replace(&self, old: u64, new: Newcomer, how: How) -> Result<(), Failure> {
        let replaced = wire::ReplaceMember { node_id: old, peer_address: new.peer };
        let change = Change::Replace(replaced);
        if let Some(expected) = new.expected {
            let planned = self.begin(change.clone(), How { plan: true, ..how }).await?;
            if planned.node_id != expected {
                return Err(Failure::new(
                    Code::IdUnexpected,
                    format!(
                        "the new node would get id {}, not {expected}: ids are given by the cluster and never come back; \
                         give {} instead, or leave it out",
                        planned.node_id, planned.node_id
                    ),
                ));
            }
        }
        self.change(change, how).await
    }

    async fn change(&self, change: Change, how: How) -> Result<(), Failure> {
        // Whoever stands in for a dead machine may take as long as it takes to copy everything.
        let patient = matches!(change, Change::Replace(_));
        if let Some(what) = what_is_lost(&change, how)
            && !how.plan
        {
            if how.consent.will_ask() {
                let planned = self.begin(change.clone(), How { plan: true, ..how }).await?;
                output::note(&votes(&planned));
            }
            how.consent.to(what).await?;
        }
        let leaving = taken_out(&change);
        let begun = self.begin(change, how).await?;
        self.show(&begun, how)?;
        if how.plan {
            return self.show_safety(leaving).await;
        }
        if how.no_wait {
            return Ok(());
        }
        let ending = self.wait(&begun, patient).await?;
        match self.global.format() {
            Format::Json => output::json(&json!({ "change": begun.change_id, "ending": ending }))?,
            Format::Table => output::line(&ending)?,
        }
        if ending == "done" {
            Ok(())
        } else {
            Err(Failure::new(Code::ChangeFailed, format!("the change was not made: {ending}")))
        }
    }

    fn show(&self, begun: &wire::ChangeMembersResponse, how: How) -> Result<(), Failure> {
        match self.global.format() {
            Format::Json => output::json(&json!({
                "before": VotesView::of(begun.before.as_ref()),
                "after": VotesView::of(begun.after.as_ref()),
                "node": begun.node_id,
                "change": (begun.change_id != 0).then_some(begun.change_id),
            }))?,
            Format::Table => {
                output::line(&votes(begun))?;
                let what = if how.plan { "planned only" } else { "in progress" };
                output::line(&format!("node {}: {what}", begun.node_id))?;
            }
        }
        Ok(())
    }

    /// Whether now is a good time, as `status` has it.
    async fn show_safety(&self, leaving: Option<u64>) -> Result<(), Failure> {
        if self.global.format() == Format::Table {
            let view = ClusterView::of(&ask_all(&self.global.endpoints, false).await?, false);
            output::line(&view.safety_line(leaving))?;
        }
        Ok(())
    }

    /// Asks the leader to begin, whoever it is by then.
    async fn begin(&self, change: Change, how: How) -> Result<wire::ChangeMembersResponse, Failure> {
        let request =
            wire::ChangeMembersRequest { change: Some(change), by: who(), plan: how.plan, force: how.force };
        let change = async |leader: &str, timeout| Client::change_members(leader, &request, timeout).await;
        call_leader(&self.client, self.global.timeout.duration(), change).await
    }

    /// Waits for the end of a change, and gives it.
    async fn wait(&self, begun: &wire::ChangeMembersResponse, patient: bool) -> Result<String, Failure> {
        let (id, deadline) = (begun.change_id, Instant::now() + self.global.timeout.duration());
        let mut tell = Instant::now() + TELL_EVERY;
        loop {
            if let Ok(list) = self.members(LOOK_TIMEOUT).await {
                match (&list.open, &list.last) {
                    (_, Some(last)) if last.id == id => return Ok(last.ending.clone()),
                    // Another one has begun since, so this one has ended.
                    (_, Some(last)) if last.id > id => return Ok("done".to_owned()),
                    _ => {}
                }
                if Instant::now() >= tell {
                    output::note(&format!("in progress: {}", output::text(&progress(&list, begun.node_id))));
                    tell = Instant::now() + TELL_EVERY;
                }
            }
            if !patient && Instant::now() >= deadline {
                return Err(Failure::new(
                    Code::ChangeGoesOn,
                    format!(
                        "change {id} has begun and goes on by itself; `tripod member list` shows how far it is, `tripod \
                         member cancel {id}` gives it up"
                    ),
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn cancel(&self, change: u64) -> Result<(), Failure> {
        let cancel = async |leader: &str, timeout| Client::cancel_change(leader, change, timeout).await;
        call_leader(&self.client, self.global.timeout.duration(), cancel).await?;
        let begun = wire::ChangeMembersResponse { change_id: change, ..Default::default() };
        let ending = self.wait(&begun, false).await?;
        match self.global.format() {
            Format::Json => output::json(&json!({ "change": change, "ending": ending }))?,
            Format::Table => output::line(&format!("change {change}: {ending}"))?,
        }
        Ok(())
    }

    /// The members as the leader sees them, else as anybody does.
    async fn members(&self, timeout: Duration) -> Result<wire::ListMembersResponse, Failure> {
        if let Ok((_, endpoint)) = leader(&self.client).await {
            return Ok(Client::members(&endpoint, timeout).await?);
        }
        let mut asked: FuturesUnordered<_> =
            self.global.endpoints.iter().map(|endpoint| Client::members(endpoint, LOOK_TIMEOUT)).collect();
        let mut last = None;
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(list) => return Ok(list),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| Failure::new(Code::ValueIllegal, "--endpoints names no node"), Failure::from))
    }
}

/// Who votes before and after a change, for people.
fn votes(change: &wire::ChangeMembersResponse) -> String {
    let (before, after) = (VotesView::of(change.before.as_ref()), VotesView::of(change.after.as_ref()));
    format!("before  {}\nafter   {}", before.render(), after.render())
}

/// What a change destroys that no other change brings back, as an order.
fn what_is_lost(change: &Change, how: How) -> Option<String> {
    match change {
        Change::Remove(node) => Some(format!("remove node {node} for good: its id never comes back")),
        Change::Replace(replaced) => Some(format!(
            "replace node {} by the one at {}, for good: the old id never comes back",
            replaced.node_id, replaced.peer_address
        )),
        _ if how.force => Some("change the members even if the cluster stands still then".to_owned()),
        _ => None,
    }
}

/// How far a change is, for people.
fn progress(list: &wire::ListMembersResponse, node: u64) -> String {
    let what = list.open.as_ref().map_or_else(|| "it has ended".to_owned(), |open| open.what.clone());
    match list.members.iter().find(|member| member.node_id == node) {
        None => what,
        Some(member) if !member.answers => {
            format!("{what}: node {node} does not answer at {}; is it started?", member.peer_address)
        }
        Some(member) => match member.lag_entries {
            Some(lag) if lag > 0 => {
                format!("{what}: node {node} is {} behind", counted(lag, "entry", "entries"))
            }
            _ => what,
        },
    }
}
