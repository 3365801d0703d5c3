//! `tripod diagnose`: who is missing in a job, since when, and why.

mod bundle;
mod past;
mod stacks;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tripod_client::{Client, wire};

use crate::args::moment::Moment;
use crate::args::seconds::Seconds;
use crate::cli::Global;
use crate::cmd::job::unknown;
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::view::time;

const EXAMPLES: &str = "\
The first line is the answer: what is wrong, where the cause is, and whether that is certain or only likely.
Times are in UTC. It ends with 0 when nothing is wrong, with 1 when something is, and with 3 when no node
answers. Without a leader it answers from one node's memory, and says so.

Examples:
  tripod diagnose train                       who is missing, since when, and what to do
  tripod diagnose train --watch               again every two seconds, until Ctrl-C
  tripod diagnose train --json | jq .verdict,.missing
  tripod diagnose train --at 03:12            what went wrong around that time, also of a job that was deleted
  tripod diagnose train --bundle train.json   besides, all that is known into a file, for somebody elsewhere
  tripod diagnose train --stacks              besides, where the Python programs on this machine stand (needs py-spy)
  tripod explain T7105                        what a finding means";

/// Flags of `diagnose`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiagnoseArgs {
    /// The job's name
    job: String,

    /// Print as many lines as there are; otherwise 24 at most
    #[arg(long)]
    all: bool,

    /// Show it again and again until Ctrl-C; what is no terminal gets one after the other
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    watch: Option<Seconds>,

    /// How long a task must have waited before another one is blamed for it. Without it 10 s, and 30 s or twice the longest
    /// wait of late where that other one may be computing
    #[arg(long, value_name = "SECONDS")]
    after: Option<Seconds>,

    /// Not now, but in the five minutes around this moment, by the job's events: 03:12, 03:12:07, 2026-11-27T03:12, 10m.
    /// With --json it prints what `job events` prints
    #[arg(long, value_name = "MOMENT", conflicts_with_all = ["watch", "after", "all", "bundle"])]
    at: Option<Moment>,

    /// Besides, write all that is known of the job, the cluster and what its nodes have seen into this file, as JSON, for this
    /// user only. No value of a key is in it, but the last that programs wrote to their standard error
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    bundle: Option<PathBuf>,

    /// Besides, where the programs stand that `tripod run` has started on this machine: py-spy reads them, and they go on
    #[arg(long, conflicts_with_all = ["watch", "at"])]
    stacks: bool,
}

/// Gives what the process ends with: a finding is no failure of the command.
pub(crate) async fn run(args: &DiagnoseArgs, global: &Global) -> Result<ExitCode, Failure> {
    let client = global.client()?;
    if let Some(at) = args.at {
        return past::show(&client, &args.job, at.ms(time::now_ms()), global.format()).await;
    }
    if let Some(pause) = args.watch {
        return tokio::select! {
            watched = watch(args, &client, global.format(), pause) => watched,
            // Whoever ends a watch has seen what there was to see.
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted.map(|()| ExitCode::SUCCESS)?),
        };
    }
    let mut found = ask(args, &client).await?;
    if args.stacks {
        found = stacks::add(&client, &args.job, found).await?;
    }
    print(&found, global.format(), false)?;
    if let Some(file) = &args.bundle {
        bundle::write(&client, &args.job, &found, file).await?;
    }
    Ok(if found.found { ExitCode::from(Exit::Failed as u8) } else { ExitCode::SUCCESS })
}

async fn watch(
    args: &DiagnoseArgs,
    client: &Client,
    format: Format,
    pause: Seconds,
) -> Result<ExitCode, Failure> {
    loop {
        print(&ask(args, client).await?, format, true)?;
        tokio::time::sleep(pause.duration()).await;
    }
}

async fn ask(args: &DiagnoseArgs, client: &Client) -> Result<wire::DiagnoseJobResponse, Failure> {
    let after = args.after.map(Seconds::duration);
    match client.diagnose(&args.job, args.all, after).await? {
        Some(found) => Ok(found),
        None => Err(unknown(client, &args.job).await),
    }
}

fn print(found: &wire::DiagnoseJobResponse, format: Format, again: bool) -> Result<(), Failure> {
    match format {
        Format::Json => output::json_line(&found.json)?,
        Format::Table if again => output::screen(&found.text)?,
        Format::Table => output::line(&found.text)?,
    }
    Ok(())
}
