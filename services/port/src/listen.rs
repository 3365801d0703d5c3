//! Opening the places where clients find a process, with errors that name the flag, the place and the next step.

use std::fmt::Display;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::net::{TcpListener, ToSocketAddrs, UnixListener, lookup_host};
use tripod_local::{NotPrivate, Peers, check_path};

use crate::connection::Listener;

/// Binds ports and sockets, with the words in which it is told that one cannot be bound.
#[derive(Debug, Clone, Copy)]
pub struct Binder {
    /// The flag that names the place.
    pub flag: &'static str,
    /// Who else may listen there, such as `another process`.
    pub others: &'static str,
    /// How a place is written, such as `HOST:PORT`.
    pub form: &'static str,
}

/// Why a place could not be opened. The text names the flag, the place, why, and what to do next; where others could
/// replace what is made there, its code is that of [`NotPrivate`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotOpened(String);

impl Binder {
    /// Opens a port at a `HOST:PORT`.
    ///
    /// # Errors
    /// [`NotOpened`].
    pub async fn tcp(&self, address: &str) -> Result<TcpListener, NotOpened> {
        self.tcp_at(address, address).await
    }

    /// [`Self::tcp`] where `address` was found to be.
    ///
    /// # Errors
    /// [`NotOpened`].
    pub async fn tcp_at(&self, address: &str, found: impl ToSocketAddrs) -> Result<TcpListener, NotOpened> {
        TcpListener::bind(found).await.map_err(|error| self.failed(address, &error))
    }

    /// Where a `HOST:PORT` is.
    ///
    /// # Errors
    /// [`NotOpened`].
    pub async fn find(&self, address: &str) -> Result<Vec<SocketAddr>, NotOpened> {
        let found = lookup_host(address).await.map_err(|error| self.failed(address, &error))?;
        Ok(found.collect())
    }

    /// Opens a unix socket that `name` names for the processes that `peers` lets in. A socket file that a killed process left
    /// behind is replaced; anything else at that path is not.
    ///
    /// # Errors
    /// [`NotOpened`].
    pub fn unix(&self, name: &str, path: &Path, peers: Peers) -> Result<Listener, NotOpened> {
        match check_path(path) {
            // Whoever could replace the socket could be taken for this process.
            Err(error @ NotPrivate::Refused { .. }) => {
                return Err(NotOpened(format!("cannot listen on {} {name}: {error}", self.flag)));
            }
            // What is wrong is told when it cannot be made.
            Ok(()) | Err(NotPrivate::Io { .. }) => {}
        }
        if let Ok(meta) = std::fs::symlink_metadata(path) {
            if !meta.file_type().is_socket() {
                return Err(self.refuse(name, &"a file that is no socket is there", "choose another path"));
            }
            if UnixStream::connect(path).is_ok() {
                let why = format!("{} listens there", self.others);
                return Err(self.refuse(name, &why, "end it or choose another path"));
            }
            std::fs::remove_file(path).map_err(|error| self.refuse(name, &error, "remove the file"))?;
            tracing::info!(path = %path.display(), "socket left by an earlier process replaced");
        }
        let made = UnixListener::bind(path).and_then(|listener| {
            std::fs::set_permissions(path, Permissions::from_mode(peers.socket_mode()))?;
            Ok(listener)
        });
        let next = "check that the directory exists, may be written, and that the path is short";
        let listener = made.map_err(|error| self.refuse(name, &error, next))?;
        Ok(Listener::unix(listener, peers))
    }

    /// That a place is not opened, why, and what to do next.
    #[must_use]
    pub fn refuse(&self, place: &str, why: &dyn Display, next: &str) -> NotOpened {
        NotOpened(format!("cannot listen on {} {place}: {why}; {next}", self.flag))
    }

    fn failed(&self, address: &str, error: &io::Error) -> NotOpened {
        let next = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("{} listens there; end it or choose another port", self.others)
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address; choose one of its own".to_owned()
            }
            io::ErrorKind::PermissionDenied => "the port needs a privilege; choose one above 1023".to_owned(),
            io::ErrorKind::InvalidInput => format!("write it as {}", self.form),
            _ => "check the address".to_owned(),
        };
        self.refuse(address, error, &next)
    }
}
