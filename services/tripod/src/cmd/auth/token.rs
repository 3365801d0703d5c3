//! `tripod auth token`: tokens of a cluster.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use tripod_client::wire;
use tripod_local::files;
use tripod_proto::code::Code;

use crate::args::lifetime::Lifetime;
use crate::cli::Global;
use crate::failure::Failure;
use crate::operator::who;
use crate::output::{self, Format};
use crate::view::time::now_ms;
use crate::view::token::{MadeView, TokensView};

const CREATE_ABOUT: &str = "\
Examples:
  tripod auth token create agent --job train --out train.token
  tripod auth token create task --job train --task 3 --lifetime 6h --out task3.token
  tripod auth token create viewer --name grafana --lifetime 90d --out grafana.token
  tripod auth token create join --out join.token

Kinds and what they prove:
  operator, viewer              a person or a program by its --name: may change the cluster, or look
  agent                         all tasks of --job on a host
  task                          any task of --job, or the one that --task names
  driver, worker, store         a process of the scheduler of --job
  join                          a node that joins; one use

Without --out the token is printed, alone, on standard output. It is told once: nobody can look it up later.
Nobody makes a token that may do more than its maker. It is told over TLS, or on the host of the node that answers.";

const REVOKE_ABOUT: &str = "\
Example: a token was pasted where it does not belong:
  tripod auth token list          find its id, the third part of its text
  tripod auth token revoke ID
Each node refuses it from the first call on after it has applied that, within a second.";

/// What to do with tokens of a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, which is shown this once
    #[command(after_help = CREATE_ABOUT)]
    Create(CreateArgs),
    /// List tokens: ids, what they prove, who made them, until when; never their texts
    List,
    /// End a token at once, on every node
    #[command(after_help = REVOKE_ABOUT)]
    Revoke {
        /// Its id, as `tripod auth token list` shows it
        id: String,
    },
}

/// Flags of `auth token create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What it proves
    kind: TokenKind,

    /// The job to which it is confined
    #[arg(long, value_name = "JOB")]
    job: Option<String>,

    /// The only task that it is for
    #[arg(long, value_name = "N")]
    task: Option<u32>,

    /// The operator's or viewer's name; of other kinds a note for people
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// How long it lives, such as 30m, 12h or 90d, which is the most; of `join` an hour [default: 24h; join: 1h]
    #[arg(long, value_name = "TIME")]
    lifetime: Option<Lifetime>,

    /// Write it to this file, which must not be there yet and is for its user only
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What a token proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenKind {
    Join,
    Agent,
    Task,
    Worker,
    Driver,
    Store,
    Operator,
    Viewer,
}

impl TokenKind {
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

pub(super) async fn run(command: TokenCommand, global: &Global) -> Result<(), Failure> {
    let client = global.client()?;
    match command {
        TokenCommand::Create(args) => create(&client, args, global).await,
        TokenCommand::List => {
            let view = TokensView::of(&client.tokens().await?, now_ms());
            match global.format() {
                Format::Json => output::json(&view)?,
                Format::Table => output::line(&view.render())?,
            }
            Ok(())
        }
        TokenCommand::Revoke { id } => {
            client.revoke_token(&wire::RevokeTokenRequest { id: id.clone(), by: who() }).await?;
            match global.format() {
                Format::Json => output::json(&json!({ "id": id, "revoked": true }))?,
                Format::Table => output::line(&format!("token {id} is revoked"))?,
            }
            Ok(())
        }
    }
}

async fn create(client: &tripod_client::Client, args: CreateArgs, global: &Global) -> Result<(), Failure> {
    // Before there is a token that could not be written down.
    let file = args.out.as_deref().map(fresh).transpose()?;
    let request = wire::CreateTokenRequest {
        kind: args.kind.word(),
        job: args.job.unwrap_or_default(),
        task: args.task,
        name: args.name.unwrap_or_default(),
        lifetime_ms: args.lifetime.map_or(0, |lifetime| lifetime.0),
        by: who(),
    };
    let made = client.create_token(&request).await;
    let made = made.inspect_err(|_| args.out.iter().for_each(|path| drop(std::fs::remove_file(path))))?;
    let view = MadeView {
        id: made.id,
        kind: request.kind,
        expires_ms: made.expires_ms,
        file: args.out.clone(),
        token: file.is_none().then(|| made.token.clone()),
    };
    if let (Some(mut file), Some(path)) = (file, &args.out) {
        let written = writeln!(file, "{}", made.token).and_then(|()| file.sync_all());
        written.map_err(|error| not_written(path, &error))?;
    }
    tell(&view, global)
}

/// A file that was not there.
pub(super) fn fresh(path: &Path) -> Result<std::fs::File, Failure> {
    files::options().write(true).create_new(true).open(path).map_err(|error| not_written(path, &error))
}

pub(super) fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    let text =
        format!("--out {} cannot be written: {error}; name a file that is not there yet", path.display());
    Failure::new(Code::TokenFile, text)
}

/// The token, and besides it for whom and how long.
pub(super) fn tell(view: &MadeView, global: &Global) -> Result<(), Failure> {
    match (global.format(), &view.token) {
        (Format::Json, _) => output::json(view)?,
        (Format::Table, Some(token)) => {
            output::note(&view.render(now_ms()));
            output::line(token)?;
        }
        (Format::Table, None) => output::line(&view.render(now_ms()))?,
    }
    Ok(())
}
