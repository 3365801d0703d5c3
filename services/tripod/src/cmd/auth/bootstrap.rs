//! `tripod auth bootstrap`: an operator's token for a cluster in which nobody has one.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;
use tripod_proto::code::Code;
use tripod_state::token::Kind;
use tripod_token::TokenText;

use crate::args::lifetime::Lifetime;
use crate::bootstrap::{Answered, Asked, Place};
use crate::cli::Global;
use crate::cmd::auth::token::{fresh, not_written, tell};
use crate::failure::Failure;
use crate::operator::who;
use crate::output;
use crate::view::token::MadeView;

/// Between two looks for an answer.
const PAUSE: Duration = Duration::from_millis(100);

const ABOUT: &str = "\
Example, on the machine of node 1, whose user is `tripod`:
  sudo tripod auth bootstrap --data /var/lib/tripod --name alice --out alice.token

It leaves a hash in the data directory, which the node proposes to the cluster; the token itself is known to this command
alone. Only the node's user and root can do that. If the node does not answer within --timeout, the token is printed
all the same, and holds from when the node is up and a majority leads.

It is refused while there is an operator's token that can be used: that one makes others, with `tripod auth token create`.
All nodes must support feature level 11 (`tripod level show`).";

/// Flags of `auth bootstrap`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub(crate) struct BootstrapArgs {
    /// Data directory of a node of the cluster, on this machine
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Name of the operator
    #[arg(long, value_name = "NAME", default_value = "bootstrap")]
    name: String,

    /// How long it lives, 90d at most
    #[arg(long, value_name = "TIME", default_value = "24h")]
    lifetime: Lifetime,

    /// Write it to this file, which must not be there yet and is for its user only
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) async fn run(args: &BootstrapArgs, global: &Global) -> Result<(), Failure> {
    let place = Place::of(&args.data);
    let cannot = |error: &io::Error| {
        let data = args.data.display();
        let text = format!(
            "--data {data} cannot be used: {error}; name the directory that `tripod server --data` has on this machine, and run this as \
             the node's user or root"
        );
        Failure::new(Code::TokenBootstrap, text)
    };
    if !args.data.join("identity.json").try_exists().map_err(|error| cannot(&error))? {
        return Err(cannot(&io::Error::other("no node has used it")));
    }
    let file = args.out.as_deref().map(fresh).transpose()?;
    let text =
        TokenText::draw(Kind::Operator).map_err(|error| cannot(&io::Error::other(error.to_string())))?;
    let asked = Asked {
        name: args.name.clone(),
        lifetime_ms: args.lifetime.0,
        by: who(),
        ..Asked::of(text.id, text.secret.hash(text.id))
    };
    let answered = match place.ask(&asked) {
        Ok(()) => answer(&place, &asked.id, global.timeout.duration()).await.map_err(|error| cannot(&error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(waits_already(&place)),
        Err(error) => Err(cannot(&error)),
    };
    let answered = answered.and_then(|answered| match answered {
        Some(Answered { expires_ms: None, refused, .. }) => Err(Failure::told(Code::TokenBootstrap, refused)),
        other => Ok(other),
    });
    let answered =
        answered.inspect_err(|_| args.out.iter().for_each(|path| drop(std::fs::remove_file(path))))?;
    let token = text.write();
    if let (Some(mut file), Some(path)) = (file.as_ref(), &args.out) {
        let written = writeln!(file, "{}", *token).and_then(|()| file.sync_all());
        written.map_err(|error| not_written(path, &error))?;
    }
    let now = crate::view::time::now_ms();
    let expires_ms = answered.as_ref().and_then(|answered| answered.expires_ms);
    if expires_ms.is_none() {
        output::note(
            "the node has not answered yet: the token holds from when it is up and a majority leads; until then \
             nothing is known of it. Look with `tripod status`",
        );
    }
    let view = MadeView {
        id: asked.id,
        kind: Kind::Operator.word().to_owned(),
        expires_ms: expires_ms.unwrap_or(now.saturating_add(args.lifetime.0)),
        file: args.out.clone(),
        token: file.is_none().then(|| token.to_string()),
    };
    tell(&view, global)
}

/// What the node answers; `None`: nothing so far.
async fn answer(place: &Place, id: &str, patience: Duration) -> io::Result<Option<Answered>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answered) = place.take_answer()?
            && answered.id == id
        {
            return Ok(Some(answered));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn waits_already(place: &Place) -> Failure {
    let file = place.asked_file();
    let text = format!(
        "one was asked for before and the node has not answered; start the node, or remove {} and run this again",
        file.display()
    );
    Failure::new(Code::TokenBootstrap, text)
}
