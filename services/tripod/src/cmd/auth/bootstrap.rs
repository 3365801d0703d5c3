//! `tripod auth bootstrap`: an operator's token for a cluster in which nobody has one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
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
alone. Only the node's user and root can do that. The file of --out has the token before the node is asked; a refusal takes
it away. If the node does not answer within --timeout, the token is kept, or printed, all the same, and holds from when
the node is up and a majority leads. Without --out it is lost if this command is stopped while it waits.

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
    let text =
        TokenText::draw(Kind::Operator).map_err(|error| cannot(&io::Error::other(error.to_string())))?;
    let token = text.write();
    // Before anybody is asked: a token that holds and that nobody has would keep all others from being made here.
    if let Some(path) = &args.out {
        keep(&token, path)?;
    }
    let asked = Asked {
        name: args.name.clone(),
        lifetime_ms: args.lifetime.0,
        by: who(),
        ..Asked::of(text.id, text.secret.hash(text.id))
    };
    place.ask(&asked).map_err(|error| {
        withdraw(args);
        if error.kind() == io::ErrorKind::AlreadyExists { waits_already(&place) } else { cannot(&error) }
    })?;
    let now = crate::view::time::now_ms();
    let expires_ms = match answer(&place, &asked.id, global.timeout.duration()).await {
        Ok(Some(Answered { expires_ms: None, refused, .. })) => {
            withdraw(args);
            return Err(Failure::told(Code::TokenBootstrap, refused));
        }
        Ok(Some(Answered { expires_ms: Some(expires_ms), .. })) => expires_ms,
        // It was asked for, so the token may come to hold, whether anybody waits for that or not.
        Ok(None) => {
            output::note(&open_still("the node has not answered yet", args));
            now.saturating_add(args.lifetime.0)
        }
        Err(error) => {
            output::note(&open_still(
                &format!("whether the node has answered cannot be seen ({error})"),
                args,
            ));
            now.saturating_add(args.lifetime.0)
        }
    };
    let view = MadeView {
        id: asked.id,
        kind: Kind::Operator.word().to_owned(),
        expires_ms,
        file: args.out.clone(),
        token: args.out.is_none().then(|| token.to_string()),
    };
    tell(&view, global)
}

/// Writes the token to a new file, durably.
fn keep(token: &str, path: &Path) -> Result<(), Failure> {
    let mut file = fresh(path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let written = writeln!(file, "{token}").and_then(|()| file.sync_all()).and_then(|()| {
        // One that may be written to and not be read cannot be synced.
        File::open(directory.unwrap_or(Path::new("."))).map_or(Ok(()), |directory| directory.sync_all())
    });
    written.map_err(|error| {
        let _ = fs::remove_file(path);
        not_written(path, &error)
    })
}

/// Takes away the file of a token that will never hold.
fn withdraw(args: &BootstrapArgs) {
    args.out.iter().for_each(|path| drop(fs::remove_file(path)));
}

/// What is said if nothing is known of a token that was asked for.
fn open_still(why: &str, args: &BootstrapArgs) -> String {
    let kept = args.out.as_ref().map_or_else(String::new, |path| format!("; {} is kept", path.display()));
    format!(
        "{why}{kept}: the token holds from when the node is up and a majority leads, or it is refused; until then \
         nothing is known of it. Look with `tripod status`, and for it with `tripod auth token list`"
    )
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
