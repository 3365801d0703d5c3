//! `tripod mindspore`: the MindSpore clusters of a job.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use tripod_client::wire::mindspore_plan_request::Change;
use tripod_client::wire::mindspore_scale_request::Change as Scale;
use tripod_client::{Client, Mindspore, wire};
use tripod_proto::code::Code;

use crate::args::added::added;
use crate::cli::Global;
use crate::cmd::kv::{STANDARD_INPUT, close, standard_input};
use crate::confirm::Consent;
use crate::failure::Failure;
use crate::node::DEFAULT_JOB;
use crate::output::{self, Format};
use crate::view::count;
use crate::view::mindspore::events::EventsView;
use crate::view::mindspore::nodes::NodesView;
use crate::view::mindspore::plan::PlanView;
use crate::view::mindspore::state::StateView;
use crate::view::time;

/// How long one call waits for events at most; the client asks again.
const EVENTS_WAIT: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
A job is the scheduler of MindSpore programs that register with it: of a dynamic cluster (MindSpore 1.8 and later), or
of a parameter server or of federated learning (1.2 to 2.2). `state` and `nodes` show both kinds; only servers of the
second kind can be scaled. What they show, and what to do about it, is in docs/runbooks/scale-mindspore-servers.md.

Examples:
  tripod mindspore state --job fl                      how far the cluster is, and what it waits for
  tripod mindspore nodes --job fl                      who has which rank, who is dead, who knows what
  tripod mindspore scale --job fl --servers +2 --plan  what two more servers would do
  tripod mindspore events --job fl --follow            what nodes tell all others, as it comes";

const SCALE_EXAMPLES: &str = "\
Scaling begins when all nodes live and know of each other, and else is refused (T6501). More servers: every node is told
and registers again, and the new ones are to be started; until all have come `tripod mindspore abort` takes it back, and
after 5 minutes it is taken back by itself. Fewer servers: those that are named, or those of the highest ranks, are told to
leave, and the others move up; that can be taken back by nobody, so it asks first. The server of rank 0 stays.

Examples:
  tripod mindspore scale --job fl --servers +2 --plan
  tripod mindspore scale --job fl --to-servers 3 --yes
  tripod mindspore scale --job fl --leave server-4,server-5 --yes
  tripod mindspore scale --job fl --servers +2 --generation 7   only if it is what was planned for generation 7

The generation is compared when the change is made, so nothing comes between. Below feature level 11 it is compared by the
node that answers, just before it hands the change on.";

const EVENTS_ABOUT: &str = "\
Events are numbered, and kept until every node of the cluster has them. So what is shown is what somebody lacks, and
all that comes while --follow looks on, but for what every node had before anybody could look: that is counted.";

/// What to do with MindSpore's clusters.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum MindsporeCommand {
    /// Show how far the clusters of a job are, and what they wait for
    State {
        #[command(flatten)]
        of: JobArg,
    },
    /// Show their nodes: role, rank, address, who lives, and what each has been told
    Nodes {
        #[command(flatten)]
        of: JobArg,
    },
    /// Change the number of servers of a parameter server's cluster
    #[command(after_help = SCALE_EXAMPLES)]
    Scale(ScaleArgs),
    /// Take back that the cluster scales out, while new servers are waited for
    Abort {
        /// Refuse unless the cluster is of this generation, as the scaling that is meant has begun it; a node of a build
        /// without feature level 11 ignores this
        #[arg(long, value_name = "N")]
        generation: Option<u64>,
        #[command(flatten)]
        of: JobArg,
    },
    /// Show what nodes have told all others
    #[command(after_help = EVENTS_ABOUT)]
    Events(EventsArgs),
    /// Tell all servers of federated learning something
    Switch(SwitchArgs),
}

/// Which job.
#[derive(Debug, Args)]
pub(crate) struct JobArg {
    /// The job whose clusters they are
    #[arg(long, value_name = "NAME", default_value = DEFAULT_JOB)]
    job: String,
}

/// Flags of `mindspore scale`.
#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    to: Size,
    /// Only show what it would do: who gets which rank, and who leaves; change nothing
    #[arg(long)]
    plan: bool,
    /// Refuse unless the cluster is of this generation, as a plan has shown it
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    of: JobArg,
}

/// Another number of servers, in one of three ways.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Size {
    /// So many servers more
    #[arg(long, value_name = "+N", value_parser = added)]
    servers: Option<u32>,
    /// So many servers, whatever there are now; if there are more, those of the highest ranks leave
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    to_servers: Option<u32>,
    /// These servers leave
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    leave: Option<Vec<String>>,
}

/// Flags of `mindspore events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on until interrupted
    #[arg(long)]
    follow: bool,
    /// Only events of higher numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    #[command(flatten)]
    of: JobArg,
}

/// Flags of `mindspore switch`.
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// What they are told
    what: What,
    /// The parameters of a new instance, which are JSON: a file; `-`: standard input
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Refuse unless the cluster is of this generation, as `state` has shown it; a node of a build without feature level 11
    /// ignores this
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    #[command(flatten)]
    of: JobArg,
}

/// What servers are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Begin another instance of federated learning
    NewInstance,
    /// Let clients of federated learning take part
    EnableFls,
    /// Let them take part no more
    DisableFls,
}

pub(crate) async fn run(command: MindsporeCommand, global: &Global) -> Result<(), Failure> {
    let (client, format) = (global.client()?, global.format());
    match command {
        MindsporeCommand::State { of } => {
            let view = StateView::of(&of.job, client.mindspore(&of.job).state().await?);
            print(format, &view, || view.render(time::now_ms()))
        }
        MindsporeCommand::Nodes { of } => {
            let view = NodesView::of(&of.job, client.mindspore(&of.job).nodes().await?);
            print(format, &view, || view.render(time::now_ms()))
        }
        MindsporeCommand::Scale(args) => scale(&client, args, format).await,
        MindsporeCommand::Abort { generation, of } => {
            let aborted = client.mindspore(&of.job).abort(generation).await;
            close(&client).await;
            aborted?;
            print(format, &json!({ "job": of.job }), || {
                format!("taken back; `tripod mindspore state --job {}` shows how far it is", of.job)
            })
        }
        MindsporeCommand::Events(args) => events(&client.mindspore(&args.of.job), &args, format).await,
        MindsporeCommand::Switch(args) => switch(&client, args, format).await,
    }
}

/// What is done is what was planned: the plan says which servers, and of which generation it is.
async fn scale(client: &Client, args: ScaleArgs, format: Format) -> Result<(), Failure> {
    let job = args.of.job;
    let mindspore = client.mindspore(&job);
    let mut plan = mindspore.plan(&args.to.change()).await?;
    if let Some(expected) = args.generation.filter(|expected| *expected != plan.generation) {
        return Err(Failure::new(
            Code::PlanOutdated,
            format!(
                "the cluster is of generation {}, not {expected}, and the plan may be another one; look again with --plan",
                plan.generation
            ),
        ));
    }
    if args.plan {
        let view = PlanView::of(&job, plan, None);
        return print(format, &view, || view.render());
    }
    let leaving = plan.leave.take().unwrap_or_default();
    let change = if leaving.node_ids.is_empty() {
        Scale::AddServers(plan.add_servers)
    } else {
        let who = count(leaving.node_ids.len() as u64, "server");
        let names = leaving.node_ids.join(", ");
        args.consent.to(format!("have {who} leave the cluster of job `{job}` for good: {names}")).await?;
        Scale::Leave(leaving)
    };
    let begun = mindspore.scale(&change, Some(plan.generation)).await;
    close(client).await;
    let view = PlanView::of(&job, plan, Some(begun?));
    print(format, &view, || view.render())
}

impl Size {
    fn change(self) -> Change {
        match (self.servers, self.to_servers) {
            (Some(more), _) => Change::AddServers(more),
            (None, Some(all)) => Change::ToServers(all),
            (None, None) => Change::Leave(wire::MindsporeLeave { node_ids: self.leave.unwrap_or_default() }),
        }
    }
}

async fn events(mindspore: &Mindspore, args: &EventsArgs, format: Format) -> Result<(), Failure> {
    let answer = mindspore.events(args.after, Duration::ZERO).await?;
    let mut after = after(&answer, args.after);
    let view = EventsView::of(&args.of.job, answer);
    if !args.follow || view.has_news() {
        print(format, &view, || view.render())?;
    }
    if !args.follow {
        return Ok(());
    }
    loop {
        let answer = mindspore.events(after, EVENTS_WAIT).await?;
        after = self::after(&answer, after);
        let view = EventsView::of(&args.of.job, answer);
        if view.has_news() {
            print(format, &view, || view.render())?;
        }
    }
}

/// The number of the last event that was told of, or was gone before.
fn after(answer: &wire::MindsporeEvents, before: u64) -> u64 {
    answer.next.saturating_sub(1).max(before)
}

async fn switch(client: &Client, args: SwitchArgs, format: Format) -> Result<(), Failure> {
    let job = args.of.job;
    let body = match args.body {
        Some(_) if args.what != What::NewInstance => {
            let text = "only a new instance has parameters; leave out --body";
            return Err(Failure::new(Code::FlagsConflict, text));
        }
        Some(file) => parameters(&file).await?,
        None => Bytes::new(),
    };
    let switch = match args.what {
        What::NewInstance => wire::MindsporeSwitch::NewInstance,
        What::EnableFls => wire::MindsporeSwitch::EnableFls,
        What::DisableFls => wire::MindsporeSwitch::DisableFls,
    };
    let told = client.mindspore(&job).switch(switch, body, args.generation).await;
    close(client).await;
    let number = told?;
    print(format, &json!({ "job": job, "switch": number }), || {
        format!(
            "all servers are told, by number {number}; `tripod mindspore state --job {job}` says ready when they have answered"
        )
    })
}

/// Servers read them as JSON, and end if it is none.
async fn parameters(file: &Path) -> Result<Bytes, Failure> {
    let shown = file.display().to_string();
    let body = if shown == STANDARD_INPUT {
        standard_input().await?
    } else {
        let read = tokio::fs::read(file).await;
        let failed = |error| Failure::new(Code::InputFailed, format!("cannot read {shown}: {error}"));
        read.map(Bytes::from).map_err(failed)?
    };
    match serde_json::from_slice::<Value>(&body) {
        Ok(_) => Ok(body),
        Err(error) => Err(Failure::new(
            Code::ValueIllegal,
            format!("--body {shown} is no JSON: {error}; nothing was told"),
        )),
    }
}

fn print(format: Format, view: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&text())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_follows_asks_behind_what_was_told_and_never_goes_back() {
        let answer = |next| wire::MindsporeEvents { next, ..Default::default() };
        assert_eq!(after(&answer(13), 0), 12);
        assert_eq!(after(&answer(1), 40), 40, "that number is still to come");
    }
}
