//! `tripod job`: jobs and where they are.

use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tripod_client::{Client, Error, wire};

use crate::args::job_flags::JobFlags;
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::job::{self, JobView};

/// How long a created job's ports may take to open before it is printed anyway.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const ASK_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

const EXAMPLES: &str = "\
Examples:
  tripod job create train --tasks 8 --heartbeat-timeout 20
  tripod job create train --tasks 8 -o json | jq -r .target

The target is what jax.distributed.initialize() takes as coordinator address.";

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Create a job: a namespace for tasks, keys and barriers with its own port on every node
    #[command(after_help = EXAMPLES)]
    Create(CreateArgs),
    /// Show every job
    List,
    /// Show a job, where it is, and its tasks
    Show {
        /// The job's name
        name: String,
    },
    /// Delete a job and everything in it; its waiting calls end with an error
    Delete {
        /// The job's name
        name: String,
    },
}

/// Flags of `job create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// 1 to 63 characters of a-z, 0-9, `-`, `_`, `.`, the first a letter or digit
    name: String,

    /// How many tasks; their ids are 0 to N-1
    #[arg(long, value_name = "N")]
    tasks: u32,

    #[command(flatten)]
    flags: JobFlags,
}

pub(crate) async fn run(command: JobCommand, global: &Global) -> Result<(), Failure> {
    let client = global.client()?;
    match command {
        JobCommand::Create(args) => create(&client, &args, global.format()).await,
        JobCommand::List => list(&client, global.format()).await,
        JobCommand::Show { name } => show(&client, &name, global.format()).await,
        JobCommand::Delete { name } => Ok(client.jobs().delete(&name).await?),
    }
}

async fn create(client: &Client, args: &CreateArgs, format: Format) -> Result<(), Failure> {
    let spec = args.flags.to_wire(args.tasks);
    let job = match client.jobs().create(&args.name, &spec).await {
        Err(Error::OutcomeUnknown { .. }) => created_after_all(client, args).await?,
        outcome => outcome?,
    };
    let view = JobView::place(&job);
    wait_until_open(client, &view).await;
    print(&view, format)
}

/// After a lost answer: the job may be there, and whether it is ours can only be guessed.
async fn created_after_all(client: &Client, args: &CreateArgs) -> Result<wire::Job, Failure> {
    let name = &args.name;
    match client.jobs().get(name).await? {
        Some(job) => {
            eprintln!("the answer was lost, but there is a job `{name}` now; it may be somebody else's");
            Ok(job)
        }
        None => Err(Failure::Failed(format!(
            "job create: the answer was lost and there is no job `{name}`; try again"
        ))),
    }
}

/// Waits until the job's port is open on every node that is up: whoever reads the addresses connects
/// at once, and not every client tries twice.
async fn wait_until_open(client: &Client, job: &JobView) {
    let deadline = Instant::now() + OPEN_TIMEOUT;
    let mut closed: Vec<&str> = job.addresses().iter().map(String::as_str).collect();
    loop {
        let mut still = Vec::new();
        for address in closed {
            let opened = tokio::time::timeout_at(deadline, TcpStream::connect(address)).await;
            if !matches!(opened, Ok(Ok(_))) {
                still.push(address);
            }
        }
        closed = still;
        let open = job.addresses().len() - closed.len();
        if closed.is_empty() || Instant::now() >= deadline || open >= nodes_up(client).await {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many of the endpoints answer.
async fn nodes_up(client: &Client) -> usize {
    client.status(ASK_TIMEOUT, false).await.iter().filter(|answer| answer.status.is_ok()).count()
}

async fn list(client: &Client, format: Format) -> Result<(), Failure> {
    let jobs = client.jobs().list().await?;
    match format {
        Format::Json => output::json(&jobs.iter().map(JobView::full).collect::<Vec<_>>())?,
        Format::Table => output::line(&job::list(&jobs))?,
    }
    Ok(())
}

async fn show(client: &Client, name: &str, format: Format) -> Result<(), Failure> {
    let job = client.jobs().get(name).await?.ok_or_else(|| {
        Failure::Failed(format!("there is no job `{name}`; see the jobs with `tripod job list`"))
    })?;
    print(&JobView::full(&job), format)
}

fn print(view: &JobView, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}
