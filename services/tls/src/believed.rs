//! What a client believes that has no certificate of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tripod_proto::code::Code;
use webpki::CertRevocationList;

use crate::chain::{self, Judge};
use crate::fault::Fault;
use crate::files::{REVOKED_FILE, ROOTS_FILE, RootFiles};
use crate::limits::RELOAD_EVERY;
use crate::material::revoked;
use crate::roots::Roots;

/// The roots of nodes, as a directory has them. Clones are the same. Which cluster a node is of is not judged: nothing says which one
/// is meant, so the roots should be those of this cluster only.
#[derive(Debug, Clone)]
pub(crate) struct Believed {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    current: ArcSwap<BelievedRoots>,
}

/// Those of files that hold together.
#[derive(Debug)]
pub(crate) struct BelievedRoots {
    pub(crate) node_roots: Roots,
    revoked: Vec<CertRevocationList<'static>>,
}

impl Believed {
    /// Those of a directory.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn read(directory: &Path) -> Result<Self, Fault> {
        let current = ArcSwap::from_pointee(BelievedRoots::read(directory)?);
        Ok(Self { shared: Arc::new(Shared { directory: directory.to_owned(), current }) })
    }

    pub(crate) fn current(&self) -> Arc<BelievedRoots> {
        self.shared.current.load_full()
    }

    /// Reads the files again whenever [`RELOAD_EVERY`] has passed. Never ends.
    pub(crate) async fn keep_current(self) {
        loop {
            tokio::time::sleep(RELOAD_EVERY).await;
            let shared = Arc::clone(&self.shared);
            let read = tokio::task::spawn_blocking(move || BelievedRoots::read(&shared.directory)).await;
            match read {
                Ok(Ok(newer)) => self.shared.current.store(Arc::new(newer)),
                Ok(Err(fault)) => {
                    let code = Code::TlsReload.number();
                    tracing::warn!(code = %format_args!("T{code}"), %fault, "roots not read again; those before are used on");
                }
                // The runtime ends.
                Err(_) => return,
            }
        }
    }
}

impl BelievedRoots {
    fn read(directory: &Path) -> Result<Self, Fault> {
        let files = RootFiles::read(directory)?;
        Ok(Self {
            node_roots: Roots::parse(&directory.join(ROOTS_FILE), &files.roots)?,
            revoked: revoked(&directory.join(REVOKED_FILE), &files.revoked)?,
        })
    }

    /// What nodes are judged by, now.
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { realm: None, revoked: &self.revoked, now: chain::now() }
    }
}
