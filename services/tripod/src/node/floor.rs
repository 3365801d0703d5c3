//! How nodes are to be protected at least. The cluster says it, and this node keeps it in its data directory, so that it is
//! known at the next start before anything is served.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tripod_gateway::{Consistency, Gateway};
use tripod_local::files;
use tripod_proto::code::Code;
use tripod_state::State;
use tripod_state::identity::Mode;

use crate::failure::Failure;
use crate::logging::number;

const FILE: &str = "security-floor";
const TEMPORARY: &str = "security-floor.tmp";
/// More than the longest word has.
const BYTES_MAX: u64 = 32;
/// Between two looks at what the cluster says.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A node that is below goes on, and says so.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Refuses to start a node that is protected as `own` where the cluster wanted more when it was last heard.
///
/// # Errors
/// [`Code::BelowFloor`]; unless it is to start `below` it.
pub(super) fn check(data: &Path, own: Mode, below: bool) -> Result<(), Failure> {
    if below {
        return Ok(());
    }
    let floor = read(data).map_err(|error| {
        let text = format!("{} cannot be used: {error}; mend or remove that file", data.join(FILE).display());
        Failure::new(Code::BelowFloor, text)
    })?;
    if own >= floor {
        return Ok(());
    }
    let text = format!(
        "this node would be protected as `{own}`, and the cluster wants `{floor}` at least: {}; next: start it so, or with \
         --below-floor, which `tripod status` shows",
        wanted(floor)
    );
    Err(Failure::new(Code::BelowFloor, text))
}

/// The settings of a node that is protected so.
fn wanted(floor: Mode) -> &'static str {
    match floor {
        Mode::Off => "any settings",
        Mode::Permissive => "--tls-dir, with --peer-tls and --client-tls permissive or strict",
        Mode::Rehearse => {
            "--tls-dir, with --peer-tls and --client-tls permissive or strict, and --authorise log"
        }
        Mode::Enforce => "--tls-dir, with --peer-tls strict, --client-tls strict and --authorise enforce",
        Mode::Strict => {
            "--tls-dir, with --peer-tls, --client-tls and --http-tls strict, and --authorise enforce"
        }
    }
}

/// Keeps what the cluster says, and says it if this node is below, for as long as it runs.
pub(super) async fn keep(gateway: Gateway, data: PathBuf, own: Mode) {
    let (mut kept, mut warned) = (read(&data).ok(), None::<Instant>);
    loop {
        if let Some(floor) = said(&gateway, kept).await {
            if kept != Some(floor) {
                let place = data.clone();
                match spawn_blocking(move || write(&place, floor)).await {
                    Ok(Ok(())) => kept = Some(floor),
                    Ok(Err(error)) => {
                        let code = number(Code::BelowFloor);
                        tracing::warn!(code, %floor, %error, "the floor of the cluster cannot be written down");
                    }
                    Err(_) => return,
                }
            }
            if own < floor && warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
                let code = number(Code::BelowFloor);
                tracing::warn!(code, %floor, protection = %own, "this node is less protected than the cluster wants");
                warned = Some(Instant::now());
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What the cluster says now. A node that has just started may know less than it knew: so a floor that is lower than the one
/// it has `kept` is asked for again, of the leader.
async fn said(gateway: &Gateway, kept: Option<Mode>) -> Option<Mode> {
    let look = |state: &State| state.floor().mode;
    let known = gateway.read(Consistency::Local, look).await.ok()?;
    if kept.is_some_and(|kept| kept <= known) {
        return Some(known);
    }
    gateway.read(Consistency::Linearizable, look).await.ok()
}

/// What was kept; without a file nothing is wanted.
fn read(data: &Path) -> io::Result<Mode> {
    let file = match File::open(data.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Mode::Off),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    text.trim()
        .parse()
        .map_err(|why| io::Error::new(ErrorKind::InvalidData, format!("it says {text:?}, and {why}")))
}

/// Blocks.
fn write(data: &Path, floor: Mode) -> io::Result<()> {
    let temporary = data.join(TEMPORARY);
    let mut file = files::create(&temporary)?;
    writeln!(file, "{floor}")?;
    file.sync_all()?;
    fs::rename(&temporary, data.join(FILE))?;
    File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s50_a_node_does_not_start_below_the_floor_that_it_has_heard_of() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path();
        check(data, Mode::Off, false).expect("it has heard of none");
        write(data, Mode::Enforce).expect("writable");
        assert_eq!(read(data).expect("readable"), Mode::Enforce);
        for own in [Mode::Enforce, Mode::Strict] {
            check(data, own, false).expect("it is as safe");
        }
        for own in [Mode::Off, Mode::Permissive, Mode::Rehearse] {
            let failure = check(data, own, false).expect_err("it is below");
            assert_eq!(failure.code(), Code::BelowFloor);
            let text = failure.to_string();
            assert!(
                text.starts_with("T1523 below-floor: ") && text.contains("--authorise enforce"),
                "{text}"
            );
            check(data, own, true).expect("it was asked for");
        }
        write(data, Mode::Off).expect("writable");
        check(data, Mode::Off, false).expect("it was taken back");
    }

    #[test]
    fn a_note_that_says_nothing_lets_no_node_start() {
        let place = tempfile::tempdir().expect("a directory");
        let long = "x".repeat(100);
        for text in ["", "Strict", "strictest", long.as_str()] {
            fs::write(place.path().join(FILE), text).expect("writable");
            let failure = check(place.path(), Mode::Strict, false).expect_err(text);
            assert_eq!(failure.code(), Code::BelowFloor);
        }
    }

    #[tokio::test]
    async fn a_floor_is_written_down_as_soon_as_the_cluster_says_it() {
        use tripod_state::identity::IdentityCommand;
        use tripod_state::{Command, level};

        let place = tempfile::tempdir().expect("a directory");
        let (gateway, _backend) = Gateway::in_memory();
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
        let set = IdentityCommand::SetFloor { mode: Mode::Rehearse, by: "ops".to_owned() };
        gateway.submit(Command::Identity(set)).await.expect("no outage").expect("not refused");
        assert_eq!(said(&gateway, None).await, Some(Mode::Rehearse));
        let kept = keep(gateway, place.path().to_owned(), Mode::Strict);
        let read = async {
            while !matches!(read(place.path()), Ok(Mode::Rehearse)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = kept => panic!("it goes on"),
            () = read => {}
        }
    }
}
