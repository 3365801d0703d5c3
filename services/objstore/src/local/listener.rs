//! The socket for processes of this machine.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::task::JoinSet;

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
        let path = directory.join(format!("objstore-{:08x}.sock", rand::random::<u32>()));
        let failed = |cause| Error::Socket { path: path.clone(), cause };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        check_private(directory).map_err(failed)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { listener, path, nodes: Arc::default() })
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

/// Refuses a directory that others may enter: whoever can open the socket can read every object.
fn check_private(directory: &Path) -> io::Result<()> {
    let mode = fs::metadata(directory)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let text = format!("others may enter the directory (mode {mode:o}); `chmod 700` it, or name another");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}
