//! The socket for processes of this machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tripod_local::{Loose, Peers, PrivateDirectory};

use super::session;
use crate::error::Error;
use crate::incarnation::{Current, Incarnation};
use crate::relay::Nodes;

/// Rest after an error of accepting, which is mostly that there are too many descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket; its file goes with it.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Whose processes it serves.
    peers: Peers,
    /// Where messages of those processes go.
    nodes: Arc<Nodes>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        _ = fs::remove_file(&self.path);
    }
}

impl Listener {
    /// Makes the directory, for this user only, and a socket in it with a name that no other store has.
    ///
    /// # Errors
    /// [`Error::Socket`].
    pub(crate) fn bind(directory: &Path) -> Result<Self, Error> {
        let name = format!("objstore-{:08x}.sock", rand::random::<u32>());
        // Whoever can open the socket can read every object, and what is in its place is believed.
        let directory = PrivateDirectory::open(directory, Loose::Refuse)
            .map_err(|refused| Error::Socket { path: directory.join(&name), cause: refused.into() })?;
        let path = directory.path().join(name);
        let failed = |cause| Error::Socket { path: path.clone(), cause };
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let peers = Peers::own("");
        fs::set_permissions(&path, Permissions::from_mode(peers.socket_mode())).map_err(failed)?;
        Ok(Self { listener, path, peers, nodes: Arc::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Serves until the store ends. Connections end with the incarnation that they were made to: the objects that
    /// their processes hold are no longer those of the scheduler.
    pub(crate) async fn serve(self, mut current: Current, address: Arc<str>) {
        loop {
            let Ok(incarnation) = current.wait_for(Option::is_some).await.map(|found| found.clone()) else {
                return;
            };
            let Some(incarnation) = incarnation else { continue };
            let mut sessions = JoinSet::new();
            tokio::select! {
                never = self.accept(&mut sessions, &incarnation, &address) => never,
                changed = current.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn accept(&self, sessions: &mut JoinSet<()>, incarnation: &Arc<Incarnation>, address: &Arc<str>) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    // Who is refused is told to the log.
                    Ok((stream, _)) if self.peers.admit(&stream).is_err() => {}
                    Ok((stream, _)) => {
                        let nodes = Arc::clone(&self.nodes);
                        let incarnation = Arc::clone(incarnation);
                        _ = sessions.spawn(session::serve(stream, incarnation, Arc::clone(address), nodes));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a process of this machine could not be let in");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Some(_) = sessions.join_next() => {}
            }
        }
    }
}
