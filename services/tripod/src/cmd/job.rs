//! `tripod job`: jobs and where they are.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tokio::time::Instant;
use tripod_client::{Client, Error, wire};
use tripod_proto::code::Code;

use crate::args::job_flags::JobFlags;
use crate::cli::Global;
use crate::cmd::events;
use crate::cmd::status::ask_all;
use crate::confirm::Consent;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::settings::nearest;
use crate::view::cluster::client_addresses;
use crate::view::job::{self, JobView};
use crate::view::job_ports::JobPortsView;
use crate::view::task::TaskFilter;
use crate::view::time;

/// How long a created job's ports may take to open before it is printed without those that are closed.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);
/// As its front end is named.
const MINDSPORE: &str = "mindspore";

const EXAMPLES: &str = "\
Examples:
  tripod job create train --tasks 8 --heartbeat-timeout 20
  tripod job create train --tasks 8 -o json | jq -r .target
  tripod job create tf --members chief:1,worker:2 --member worker:0=10.0.0.1:2222

The target is what jax.distributed.initialize() takes as coordinator address.";

const SHOW_EXAMPLES: &str = "\
Examples:
  tripod job show train --state lost,ended,never-came
  tripod job show train -o json | jq .task_states,.barriers
  tripod job show train                   while nobody leads: as one node remembers it, with exit code 3
  export GRPC_XDS_BOOTSTRAP_CONFIG=\"$(tripod job show train --xds-bootstrap)\"
                                          then JAX may connect to xds:///train:1";

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Create a job: a namespace for tasks, keys and barriers with its own port on every node
    #[command(after_help = EXAMPLES)]
    Create(CreateArgs),
    /// Show every job
    List,
    /// Show a job, where it is, its tasks, and who waits for whom
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// The job's name
        name: String,

        /// Print instead what a gRPC client needs to find the job's nodes by itself: one line of JSON
        #[arg(long)]
        xds_bootstrap: bool,

        #[command(flatten)]
        filter: TaskFilter,
    },
    /// Show what happened to a job, also to one that was deleted
    Events(events::JobEventsArgs),
    /// Write a note about a job that `job show` prints, for people; an empty one takes it away
    Note {
        /// The job's name
        name: String,
        /// Up to 1,024 bytes
        note: String,
    },
    /// Delete a job and everything in it; its waiting calls end with an error
    Delete {
        /// The job's name
        name: String,

        #[command(flatten)]
        consent: Consent,
    },
}

/// Flags of `job create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// 1 to 63 characters of a-z, 0-9, `-`, `_`, `.`, the first a letter or digit
    name: String,

    /// How many tasks; their ids are 0 to N-1
    #[arg(long, value_name = "N", required_unless_present = "members")]
    tasks: Option<u32>,

    #[command(flatten)]
    flags: JobFlags,
}

pub(crate) async fn run(command: JobCommand, global: &Global) -> Result<(), Failure> {
    let client = global.client()?;
    match command {
        JobCommand::Create(args) => create(&client, &args, global).await,
        JobCommand::List => list(&client, global.format()).await,
        JobCommand::Show { name, xds_bootstrap: false, filter } => {
            show(&client, &name, &filter, global).await
        }
        JobCommand::Show { name, xds_bootstrap: true, .. } => bootstrap(&client, &name, global).await,
        JobCommand::Events(args) => events::of_job(&args, global).await,
        JobCommand::Note { name, note } => {
            if let Err(error) = client.jobs().note(&name, &note).await {
                return Err(with_nearest(&client, &name, error).await);
            }
            match global.format() {
                Format::Json => Ok(output::json(&json!({ "job": name, "note": note }))?),
                Format::Table => Ok(()),
            }
        }
        JobCommand::Delete { name, consent } => {
            if !consent.is_given() {
                // Nobody is asked about what is not there.
                existing(&client, &name).await?;
            }
            consent.to(format!("delete job `{name}` and everything in it")).await?;
            match client.jobs().delete(&name).await {
                Err(error) => Err(with_nearest(&client, &name, error).await),
                Ok(()) => Ok(()),
            }
        }
    }
}

async fn create(client: &Client, args: &CreateArgs, global: &Global) -> Result<(), Failure> {
    let tasks = args.flags.tasks(args.tasks)?.expect("the command line has one of the two");
    let spec = args.flags.to_wire(tasks)?;
    let mut job = match client.jobs().create(&args.name, &spec).await {
        Err(Error::OutcomeUnknown { .. }) => created_after_all(client, args).await?,
        outcome => outcome?,
    };
    leave_out_closed(&mut job, OPEN_TIMEOUT, global).await?;
    print(&JobView::place(&job), global.format())
}

/// After a lost answer: the job may be there, and whether it is ours can only be guessed.
async fn created_after_all(client: &Client, args: &CreateArgs) -> Result<wire::Job, Failure> {
    let name = &args.name;
    match client.jobs().get(name).await? {
        Some(job) => {
            output::note(&format!(
                "the answer was lost, but there is a job `{name}` now; it may be somebody else's"
            ));
            Ok(job)
        }
        None => Err(Failure::new(
            Code::OutcomeUnknown,
            format!("job create: the answer was lost and there is no job `{name}`; try again"),
        )),
    }
}

/// Waits until every node that is up says that it has opened the job's port: whoever reads the addresses
/// connects at once, and not every client tries twice. Where a node cannot, somebody else may listen, so
/// that address is left out with a warning.
async fn leave_out_closed(
    job: &mut wire::Job,
    patience: Duration,
    global: &Global,
) -> Result<JobPortsView, Failure> {
    let deadline = Instant::now() + patience;
    let ports = loop {
        let ports = JobPortsView::of(job.id, &ask_all(&global.endpoints, false).await?);
        if ports.all_open() || Instant::now() >= deadline {
            break ports;
        }
        tokio::time::sleep(PAUSE).await;
    };
    for warning in ports.warnings(&job.name) {
        output::note(&format!("warning: {warning}"));
    }
    ports.leave_out_closed(job);
    Ok(ports)
}

async fn list(client: &Client, format: Format) -> Result<(), Failure> {
    let jobs = client.jobs().list().await?;
    match format {
        Format::Json => output::json(&jobs.iter().map(JobView::full).collect::<Vec<_>>())?,
        Format::Table => output::line(&job::list(&jobs))?,
    }
    Ok(())
}

async fn show(client: &Client, name: &str, filter: &TaskFilter, global: &Global) -> Result<(), Failure> {
    let Some(mut job) = client.jobs().get_or_remembered(name).await? else {
        return Err(unknown(client, name).await);
    };
    let ports = leave_out_closed(&mut job, Duration::ZERO, global).await?;
    print(&JobView::of_tasks(&job, filter).with_mindspore(ports.own(MINDSPORE)), global.format())?;
    match &job.as_of {
        Some(as_of) => Err(remembered(name, as_of)),
        None => Ok(()),
    }
}

/// What is shown may be old, and programs must not take it for news.
fn remembered(name: &str, as_of: &wire::AsOf) -> Failure {
    Failure::new(
        Code::NoLeader,
        format!(
            "job show: nobody leads, so job `{name}` is shown as node {} remembers it ({}); next: `tripod status`",
            as_of.node_id,
            output::text(&as_of.why)
        ),
    )
}

async fn existing(client: &Client, name: &str) -> Result<wire::Job, Failure> {
    match client.jobs().get(name).await? {
        Some(job) => Ok(job),
        None => Err(unknown(client, name).await),
    }
}

/// The failure of a call about a job: if there is no such job, with the one that may be meant.
async fn with_nearest(client: &Client, name: &str, error: Error) -> Failure {
    match error {
        // After a lost answer it may have been there.
        Error::Refused { reason, after_unknown: false, .. } if reason == "job-unknown" => {
            unknown(client, name).await
        }
        error => error.into(),
    }
}

/// That there is no such job, and which one may be meant.
pub(super) async fn unknown(client: &Client, name: &str) -> Failure {
    // What cannot be listed is near to nothing: the failure stays that of the call.
    let jobs = client.jobs().list().await.unwrap_or_default();
    let near = nearest(name, jobs.iter().map(|job| job.name.as_str()));
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    let text = format!("there is no job `{name}`; {near}see the jobs with `tripod job list`");
    Failure::new(Code::JobUnknown, text)
}

/// Data is the JSON alone, so that a shell can put it into a variable; what to do with it is told beside.
async fn bootstrap(client: &Client, name: &str, global: &Global) -> Result<(), Failure> {
    let job = existing(client, name).await?;
    let nodes = client_addresses(&ask_all(&global.endpoints, false).await?);
    let nodes = if nodes.is_empty() { &global.endpoints } else { &nodes };
    output::line(&tripod_xds::bootstrap(&job.name, nodes))?;
    if global.format() == Format::Table {
        output::note(&job::xds_exports(&job.name));
    }
    Ok(())
}

fn print(view: &JobView, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&view.render(time::now_ms()))?,
    }
    Ok(())
}
