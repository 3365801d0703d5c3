//! Opening the places where clients find the agent.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use tripod_local::Peers;
use tripod_port::{Binder, Listener, NotOpened};

use crate::config::Listen;
use crate::error::Error;

/// How long another process may keep the directory of a socket locked, and how often it is tried.
const ALONE_LIMIT: Duration = Duration::from_secs(1);
const ALONE_PAUSE: Duration = Duration::from_millis(5);

const BINDER: Binder = Binder {
    flag: "--listen",
    others: "another process, perhaps another agent,",
    form: "HOST:PORT or unix:PATH",
};

/// Nodes of MindSpore know a host and a port, and nothing else.
const MINDSPORE_BINDER: Binder = Binder { flag: "--mindspore", form: "HOST:PORT", ..BINDER };

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
    let opened = match place {
        Listen::Tcp(address) => tcp(&BINDER, address, allow_remote).await,
        Listen::Unix(path) => {
            let _alone = alone(path).await;
            let peers = Peers::with(socket_uids, ", or name it with --socket-uids");
            let listener = BINDER.unix(&place.to_string(), path, peers);
            listener.map(|listener| Opened { listener, place: place.clone() })
        }
    };
    opened.map_err(|error| Error::Listen(error.to_string()))
}

/// Opens the place for nodes of MindSpore.
///
/// # Errors
/// [`Error::Listen`].
pub(crate) async fn open_for_mindspore(address: &str, allow_remote: bool) -> Result<Opened, Error> {
    let opened = tcp(&MINDSPORE_BINDER, address, allow_remote).await;
    opened.map_err(|error| Error::Listen(error.to_string()))
}

async fn tcp(binder: &Binder, address: &str, allow_remote: bool) -> Result<Opened, NotOpened> {
    let found = binder.find(address).await?;
    if !allow_remote && found.iter().any(|address| !address.ip().is_loopback()) {
        return Err(binder.refuse(
            address,
            &"other machines could reach it, and whoever reaches the agent acts for its job",
            "listen on 127.0.0.1, or add --allow-remote",
        ));
    }
    let listener = binder.tcp_at(address, found.as_slice()).await?;
    let bound = listener.local_addr().map_err(|error| binder.refuse(address, &error, "check the address"))?;
    Ok(Opened { listener: listener.into(), place: Listen::Tcp(bound.to_string()) })
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
