//! `tripod job events` and `tripod events`: what happened.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tripod_client::{Client, Error, Follower, News, wire};
use tripod_proto::code::Code;

use crate::args::moment::Moment;
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::events::{EventLine, EventsView, HeadView, trace};
use crate::view::time;

/// Before and behind a moment that is asked about.
pub(super) const AROUND_MS: u64 = 150_000;
/// How long a follower rests when no node answers.
const REST: std::time::Duration = std::time::Duration::from_millis(500);

const JOB_EXAMPLES: &str = "\
The events of a job are kept by every node, so they are there whoever led meanwhile, and also while nobody leads. The first line
says since when they are complete, how many were told by one that was there, and how many had to make room. Of a job that was
deleted the last 32 milestones stay for a week. Times are UTC. Within a second all losses are one event, in the order in which
they began: the first one is what explains the others.

Examples:
  tripod job events train                                  all that is kept
  tripod job events train --since 10m --task 2             what concerned task 2 in the last ten minutes
  tripod job events train --kind given-up,ended,failed     who was lost, and why
  tripod job events train --follow -o json                 a line of JSON for each event, until the job is deleted
  tripod job events train --export trace.json              for https://ui.perfetto.dev or a browser's tracing page";

const EXAMPLES: &str = "\
Lists the milestones of all jobs, also of those that were deleted within a week, and what happened to the cluster itself:
elections, changes of members, drained nodes, feature levels. Times are UTC.

Examples:
  tripod events --at 03:12                          five minutes around the last 03:12
  tripod events --at 2026-11-27T03:12 -o json
  tripod events --since 2h --kind term-changed      elections of the last two hours
  tripod events --node 2 --since 1h                 what node 2 has seen itself: its disk, its contact, failed calls";

/// Which events are wanted.
#[derive(Debug, Args)]
pub(crate) struct Wanted {
    /// Not those that were over before: 03:12, 03:12:07, 2026-11-27T03:12, or so long ago: 90s, 10m, 2h, 3d
    #[arg(long, value_name = "MOMENT")]
    since: Option<Moment>,

    /// Not those that began later
    #[arg(long, value_name = "MOMENT")]
    until: Option<Moment>,

    /// Only these kinds, such as `given-up,barrier-failed`
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kind: Vec<String>,

    /// Write them to this file as a trace, for Perfetto and browsers, instead of printing them
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
}

/// Flags of `job events`.
#[derive(Debug, Args)]
#[command(after_help = JOB_EXAMPLES)]
pub(crate) struct JobEventsArgs {
    /// The job's name
    name: String,

    #[command(flatten)]
    wanted: Wanted,

    /// Only those of this task, and those that concern none in particular
    #[arg(long, value_name = "ID")]
    task: Option<i32>,

    /// Go on with what happens from now on, until the job is deleted or Ctrl-C
    #[arg(long, conflicts_with_all = ["until", "export"])]
    follow: bool,
}

/// Flags of `events`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EventsArgs {
    /// Five minutes around this moment: 03:12, 03:12:07 or 2026-11-27T03:12
    #[arg(long, value_name = "MOMENT", conflicts_with_all = ["since", "until"])]
    at: Option<Moment>,

    /// Not the cluster's, but what this node has seen itself since it began, by its own clock
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    node: Option<u64>,

    #[command(flatten)]
    wanted: Wanted,
}

impl Wanted {
    fn filter(&self, task_id: Option<i32>, now_ms: u64) -> wire::EventFilter {
        wire::EventFilter {
            since_ms: self.since.map_or(0, |since| since.ms(now_ms)),
            until_ms: self.until.map_or(0, |until| until.ms(now_ms)),
            task_id,
            kinds: self.kind.clone(),
        }
    }
}

pub(crate) async fn of_job(args: &JobEventsArgs, global: &Global) -> Result<(), Failure> {
    let client = global.client()?;
    let filter = args.wanted.filter(args.task, time::now_ms());
    let Some(answer) = client.job_events(&args.name, filter.clone()).await? else {
        return Err(unknown(&args.name));
    };
    if let Some(file) = &args.wanted.export {
        return export(file, &answer, global.format());
    }
    if !args.follow {
        return show(&answer, false, global.format());
    }
    tokio::select! {
        followed = follow(&client, args, &answer, global.format()) => followed,
        // Whoever ends it has seen what there was to see.
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

pub(crate) async fn run(args: &EventsArgs, global: &Global) -> Result<(), Failure> {
    let now_ms = time::now_ms();
    let mut filter = args.wanted.filter(None, now_ms);
    if let Some(at) = args.at.map(|at| at.ms(now_ms)) {
        (filter.since_ms, filter.until_ms) = (at.saturating_sub(AROUND_MS), at.saturating_add(AROUND_MS));
    }
    let client = global.client()?;
    let answer = match args.node {
        Some(node) => of_node(&client, node, filter).await?,
        None => client.cluster_events(filter).await?,
    };
    match &args.wanted.export {
        Some(file) => export(file, &answer, global.format()),
        None => show(&answer, true, global.format()),
    }
}

/// What that node has seen itself.
///
/// # Errors
/// Also if the node that was asked does not know the question.
pub(crate) async fn of_node(
    client: &Client,
    node: u64,
    filter: wire::EventFilter,
) -> Result<wire::EventsResponse, Failure> {
    let answer = client.node_events(node, filter).await?;
    if answer.of_node == node {
        return Ok(answer);
    }
    let text =
        "the node that was asked is of an earlier build, which does not know what single nodes have seen";
    Err(Failure::new(Code::EventsNotTold, text))
}

fn show(answer: &wire::EventsResponse, by_job: bool, format: Format) -> Result<(), Failure> {
    let view = EventsView::of(answer);
    match format {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render(by_job))?,
    }
    verdict(&view.head)
}

/// What is shown may be old, or nothing may have been told: programs must not take it for news.
pub(super) fn verdict(head: &HeadView) -> Result<(), Failure> {
    if head.is_untold() {
        let text = "the cluster's feature level is below 11, so it does not tell what happens; next: `tripod level show`";
        return Err(Failure::new(Code::EventsNotTold, text));
    }
    match head.remembered() {
        Some((node, why)) => {
            let why = output::text(why);
            let text = format!(
                "events: nobody leads, so they are shown as node {node} remembers them ({why}); next: `tripod status`"
            );
            Err(Failure::new(Code::NoLeader, text))
        }
        None => Ok(()),
    }
}

pub(super) fn unknown(name: &str) -> Failure {
    let text = format!(
        "nothing is known of a job `{name}`: it is not there, and was not deleted within a week; see what is with \
         `tripod job list` and `tripod events`"
    );
    Failure::new(Code::EventsUnknown, text)
}

fn export(file: &Path, answer: &wire::EventsResponse, format: Format) -> Result<(), Failure> {
    let text = serde_json::to_string(&trace::trace(answer)).map_err(std::io::Error::from)?;
    let failed = |error: std::io::Error| {
        Failure::new(Code::OutputFailed, format!("{} cannot be written: {error}", file.display()))
    };
    fs::write(file, text).map_err(failed)?;
    let head = HeadView::of(answer);
    match format {
        Format::Json => output::json(&json!({ "file": file, "events": answer.events.len() }))?,
        Format::Table => output::line(&format!(
            "{}\n{} events in {}; open it in https://ui.perfetto.dev",
            head.render(),
            answer.events.len(),
            file.display()
        ))?,
    }
    verdict(&head)
}

async fn follow(
    client: &Client,
    args: &JobEventsArgs,
    first: &wire::EventsResponse,
    format: Format,
) -> Result<(), Failure> {
    let head = HeadView::of(first);
    if head.is_untold() {
        return verdict(&head);
    }
    match format {
        Format::Json => first.events.iter().try_for_each(|event| output::json(&EventLine::of(event)))?,
        Format::Table => output::line(&EventsView::of(first).render(false))?,
    }
    let mut follower: Follower = client.follow_events(&args.name, first);
    loop {
        let news = match follower.next().await {
            Ok(news) => news,
            // Whoever follows waits for the cluster to come back: nothing is lost meanwhile.
            Err(error @ (Error::Refused { .. } | Error::Config(_))) => return Err(error.into()),
            Err(_) => {
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        tell(&news, args, format)?;
        if news.ended {
            return Ok(());
        }
    }
}

fn tell(news: &News, args: &JobEventsArgs, format: Format) -> Result<(), Failure> {
    if news.dropped > 0 {
        match format {
            Format::Json => output::json(&json!({ "dropped": news.dropped }))?,
            Format::Table => output::line(&format!("... {} events were dropped", news.dropped))?,
        }
    }
    for event in news.events.iter().filter(|event| is_wanted(event, args)) {
        match format {
            Format::Json => output::json(&EventLine::of(event))?,
            Format::Table => output::line(&EventLine::of(event).render(false))?,
        }
    }
    Ok(())
}

/// As the nodes judge it; here, too, so that nothing that was left out counts as dropped.
fn is_wanted(event: &wire::Event, args: &JobEventsArgs) -> bool {
    let of_task = |task: i32| event.tasks.iter().any(|range| (range.first..=range.last).contains(&task));
    let concerns = args.task.is_none_or(|task| event.tasks.is_empty() || of_task(task));
    concerns && (args.wanted.kind.is_empty() || args.wanted.kind.contains(&event.kind))
}
