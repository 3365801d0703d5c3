//! `tripod kv`: keys of a job.

use std::io::{self, Read as _};

use bytes::Bytes;
use clap::{Args, Subcommand};
use serde_json::json;
use tripod_client::{Client, Condition, Consistency, Entry, Kv};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::node::DEFAULT_JOB;
use crate::output::{self, Format};
use crate::view::key::{self, KeyView};

const EXAMPLES: &str = "\
Examples:
  tripod kv put config/rate 0.1
  tripod kv put model/weights < weights.bin
  tripod kv put model/weights - < weights.bin           the same
  tripod kv get config/rate
  tripod kv list config/ --job train";

/// The value that stands for what comes by standard input, as everywhere.
pub(super) const STANDARD_INPUT: &str = "-";

/// What to do with keys.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum KvCommand {
    /// Print a key's value
    Get(GetArgs),
    /// Write a key; the value comes from the argument or from standard input
    Put(PutArgs),
    /// Delete a key and everything under `KEY/`
    Delete {
        key: String,
        #[command(flatten)]
        of: JobArg,
    },
    /// Show the keys that begin with a prefix
    List(ListArgs),
}

/// Which job.
#[derive(Debug, Args)]
pub(crate) struct JobArg {
    /// The job whose keys these are
    #[arg(long, value_name = "NAME", default_value = DEFAULT_JOB)]
    job: String,
}

/// Flags of `kv get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    key: String,
    /// Read the first node's memory, possibly old; works without a leader
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    of: JobArg,
}

/// Flags of `kv put`.
#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    key: String,
    /// The value; `-`: all of standard input [default: -]
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// Refuse if the key exists
    #[arg(long, conflicts_with = "expected_version")]
    create_only: bool,
    /// Refuse unless the key has this version; 0: unless it does not exist
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<u64>,
    #[command(flatten)]
    of: JobArg,
}

/// Flags of `kv list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What the keys begin with
    #[arg(default_value = "")]
    prefix: String,
    /// Do not fetch the values
    #[arg(long)]
    keys_only: bool,
    /// At most this many keys [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    of: JobArg,
}

pub(crate) async fn run(command: KvCommand, global: &Global) -> Result<(), Failure> {
    let client = global.client()?;
    let format = global.format();
    match command {
        KvCommand::Get(args) => get(&client, &args, format).await,
        KvCommand::Put(args) => put(&client, args, format).await,
        KvCommand::Delete { key, of } => delete(&client, &key, &of, format).await,
        KvCommand::List(args) => list(&client.kv(&args.of.job), &args, format).await,
    }
}

async fn get(client: &Client, args: &GetArgs, format: Format) -> Result<(), Failure> {
    let consistency = if args.local { Consistency::Local } else { Consistency::Linearizable };
    let entry = client.kv(&args.of.job).get(&args.key, consistency).await?.ok_or_else(|| {
        Failure::new(
            Code::KeyUnknown,
            format!(
                "there is no key `{}` in job `{}`; see the keys with `tripod kv list --job {}`",
                args.key, args.of.job, args.of.job
            ),
        )
    })?;
    match format {
        Format::Json => output::json(&KeyView::of(&entry))?,
        // The value and nothing else, so that it can be written to a file.
        Format::Table => output::bytes(&entry.value)?,
    }
    Ok(())
}

async fn put(client: &Client, args: PutArgs, format: Format) -> Result<(), Failure> {
    let condition = match args.expected_version {
        Some(version) => Condition::Version(version),
        None if args.create_only => Condition::CreateOnly,
        None => Condition::Always,
    };
    let value = match args.value {
        Some(value) if value != STANDARD_INPUT => Bytes::from(value),
        _ => standard_input().await?,
    };
    let written = client.kv(&args.of.job).put(&args.key, value, condition).await;
    close(client).await;
    let written = written?;
    match format {
        Format::Json => output::json(&json!({ "version": written.version, "index": written.index }))?,
        Format::Table => output::line(&format!("version {} index {}", written.version, written.index))?,
    }
    Ok(())
}

async fn delete(client: &Client, key: &str, of: &JobArg, format: Format) -> Result<(), Failure> {
    let deleted = client.kv(&of.job).delete(key).await;
    close(client).await;
    let deleted = deleted?;
    match format {
        Format::Json => output::json(&json!({ "deleted": deleted }))?,
        Format::Table => output::line(&format!("deleted {deleted}"))?,
    }
    Ok(())
}

async fn list(kv: &Kv, args: &ListArgs, format: Format) -> Result<(), Failure> {
    let limit = args.limit.unwrap_or(usize::MAX);
    let mut entries: Vec<Entry> = Vec::new();
    while entries.len() < limit {
        let after = entries.last().map_or("", |entry| entry.key.as_str());
        let ask = u32::try_from(limit - entries.len()).unwrap_or(0);
        let page = kv.list(&args.prefix, after, ask, args.keys_only).await?;
        let done = !page.more || page.entries.is_empty();
        entries.extend(page.entries);
        if done {
            break;
        }
    }
    match format {
        Format::Json if args.keys_only => {
            output::json(&entries.iter().map(KeyView::without_value).collect::<Vec<_>>())?;
        }
        Format::Json => output::json(&entries.iter().map(KeyView::of).collect::<Vec<_>>())?,
        Format::Table => output::line(&key::list(&entries, args.keys_only))?,
    }
    Ok(())
}

/// Ends the session of a write; if that fails, it ends by itself when it is found idle.
pub(super) async fn close(client: &Client) {
    if let Err(error) = client.close().await {
        tracing::debug!(%error, "session was not closed");
    }
}

pub(super) async fn standard_input() -> Result<Bytes, Failure> {
    let read = tokio::task::spawn_blocking(|| {
        let mut value = Vec::new();
        io::stdin().lock().read_to_end(&mut value).map(|_| value)
    });
    match read.await {
        Ok(Ok(value)) => Ok(Bytes::from(value)),
        Ok(Err(error)) => Err(Failure::new(
            Code::InputFailed,
            format!("cannot read the value from standard input: {error}"),
        )),
        Err(error) => Err(Failure::new(Code::Defect, format!("reading standard input was cut: {error}"))),
    }
}
