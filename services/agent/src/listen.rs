//! Opening the places where clients find the agent.

use std::fs::{File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener, lookup_host};
use tokio::time::Instant;
use tripod_local::{NotPrivate, Peers, check_place};
use tripod_port::Listener;

use crate::config::Listen;
use crate::error::Error;

/// How long another process may keep the directory of a socket locked, and how often it is tried.
const ALONE_LIMIT: Duration = Duration::from_secs(1);
const ALONE_PAUSE: Duration = Duration::from_millis(5);

/// An open place.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) listener: Listener,
    /// The place as it really is: with its port, if any free one was asked for.
    pub(crate) place: Listen,
}

/// Opens one place.
///
/// # Errors
/// [`Error::Listen`].
pub(crate) async fn open(place: &Listen, allow_remote: bool, socket_uids: &[u32]) -> Result<Opened, Error> {
    match place {
        Listen::Tcp(address) => tcp(address, allow_remote).await,
        Listen::Unix(path) => {
            let _alone = alone(path).await;
            let peers = Peers::with(socket_uids, ", or name it with --socket-uids");
            let listener = Listener::Unix(unix(path, &peers)?, peers);
            Ok(Opened { listener, place: place.clone() })
        }
    }
}

async fn tcp(address: &str, allow_remote: bool) -> Result<Opened, Error> {
    let failed = |error: &io::Error| refuse(address, error, next_step(error));
    let resolved: Vec<SocketAddr> = lookup_host(address).await.map_err(|error| failed(&error))?.collect();
    if !allow_remote && resolved.iter().any(|address| !address.ip().is_loopback()) {
        return Err(refuse(
            address,
            &"other machines could reach it, and whoever reaches the agent acts for its job",
            "listen on 127.0.0.1, or add --allow-remote",
        ));
    }
    let listener = TcpListener::bind(resolved.as_slice()).await.map_err(|error| failed(&error))?;
    let bound = listener.local_addr().map_err(|error| failed(&error))?;
    Ok(Opened { listener: Listener::Tcp(listener), place: Listen::Tcp(bound.to_string()) })
}

fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process, perhaps another agent, listens there; end it or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address; choose one of its own",
        io::ErrorKind::PermissionDenied => "the port needs a privilege; choose one above 1023",
        io::ErrorKind::InvalidInput => "write it as HOST:PORT or unix:PATH",
        _ => "check the address",
    }
}

/// Keeps other agents from looking at the same directory, so that of two that are started at once at the
/// place of a dead one, the second does not take the first one's new socket for the old one. Whoever holds
/// such a lock for long is no agent, and is not waited for; a directory that cannot be locked is not.
async fn alone(path: &Path) -> Option<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = File::open(parent).ok()?;
    let deadline = Instant::now() + ALONE_LIMIT;
    while directory.try_lock().is_err() && Instant::now() < deadline {
        tokio::time::sleep(ALONE_PAUSE).await;
    }
    Some(directory)
}

/// Opens a unix socket. A socket file that a killed agent left behind is replaced; anything else at that
/// path is not.
fn unix(path: &Path, peers: &Peers) -> Result<UnixListener, Error> {
    let name = format!("unix:{}", path.display());
    match check_place(path) {
        // Whoever could replace the socket could be taken for the agent.
        Err(error @ NotPrivate::Refused { .. }) => {
            return Err(Error::Listen(format!("cannot listen on --listen {name}: {error}")));
        }
        // What is wrong is told when it cannot be made.
        Ok(()) | Err(NotPrivate::Io { .. }) => {}
    }
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            return Err(refuse(&name, &"a file that is no socket is there", "choose another path"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(refuse(
                &name,
                &"another process, perhaps another agent, listens there",
                "end it or choose another path",
            ));
        }
        std::fs::remove_file(path).map_err(|error| refuse(&name, &error, "remove the file"))?;
        tracing::info!(path = %path.display(), "socket left by an earlier process replaced");
    }
    let made = UnixListener::bind(path).and_then(|listener| {
        std::fs::set_permissions(path, Permissions::from_mode(peers.socket_mode()))?;
        Ok(listener)
    });
    made.map_err(|error| {
        refuse(&name, &error, "check that the directory exists, may be written, and that the path is short")
    })
}

fn refuse(place: &str, why: &dyn std::fmt::Display, next: &str) -> Error {
    Error::Listen(format!("cannot listen on --listen {place}: {why}; {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> Listen {
        Listen::Tcp("127.0.0.1:0".into())
    }

    #[tokio::test]
    async fn a_port_in_use_is_named_with_its_flag() {
        let first = open(&local(), false, &[]).await.expect("a free port");
        let text = open(&first.place, false, &[]).await.expect_err("in use").to_string();
        assert!(text.starts_with(&format!("cannot listen on --listen {}: ", first.place)), "{text}");
        assert!(text.ends_with("end it or choose another port"), "{text}");
    }

    #[tokio::test]
    async fn only_loopback_is_opened_unless_more_is_allowed() {
        let everywhere = Listen::Tcp("0.0.0.0:0".into());
        let text = open(&everywhere, false, &[]).await.expect_err("refused").to_string();
        assert!(text.contains("other machines could reach it"), "{text}");
        open(&everywhere, true, &[]).await.expect("allowed");
    }

    #[tokio::test]
    async fn a_socket_left_behind_is_replaced_but_a_live_one_or_a_file_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = Listen::Unix(directory.path().join("agent.sock"));
        drop(open(&socket, false, &[]).await.expect("free"));
        let alive = open(&socket, false, &[]).await.expect("nobody listens any more");
        let text = open(&socket, false, &[]).await.expect_err("in use").to_string();
        assert!(text.starts_with(&format!("cannot listen on --listen {socket}: another process")), "{text}");
        drop(alive);

        let file = directory.path().join("notes");
        std::fs::write(&file, "mine").expect("written");
        let text = open(&Listen::Unix(file.clone()), false, &[]).await.expect_err("a file").to_string();
        assert!(text.contains("no socket"), "{text}");
        assert!(file.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn agents_that_start_at_once_look_at_a_directory_one_after_the_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = Listen::Unix(directory.path().join("agent.sock"));
        let first = File::open(directory.path()).expect("there");
        first.lock().expect("nobody else has it");
        let second = tokio::spawn(async move { open(&socket, false, &[]).await });
        tokio::time::sleep(ALONE_LIMIT / 2).await;
        assert!(!second.is_finished(), "the first one is not ready yet");
        drop(first);
        second.await.expect("no panic").expect("free");
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_that_somebody_keeps_locked_is_used_in_the_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = File::open(directory.path()).expect("there");
        kept.lock().expect("nobody else has it");
        let begun = Instant::now();
        open(&Listen::Unix(directory.path().join("agent.sock")), false, &[]).await.expect("free");
        assert_eq!(begun.elapsed(), ALONE_LIMIT);
    }
}
