//! What is current, and how it is replaced.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::signal::unix::{SignalKind, signal};
use tripod_identity::Identity;
use tripod_proto::code::Code;

use crate::fault::Fault;
use crate::files::{CERTIFICATE_FILE, Files};
use crate::handshakes::Handshakes;
use crate::limits::RELOAD_EVERY;
use crate::material::Material;

/// The certificates of a process. Clones are the same.
#[derive(Debug, Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    current: ArcSwap<Material>,
    handshakes: Handshakes,
    reload_failures: AtomicU64,
    /// How often what is current was replaced.
    generation: AtomicU64,
}

impl Tls {
    /// Those of a directory.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(directory: &Path) -> Result<Self, Fault> {
        let material = Material::read(directory)?;
        let shared = Shared {
            directory: directory.to_owned(),
            current: ArcSwap::from_pointee(material),
            handshakes: Handshakes::default(),
            reload_failures: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn current(&self) -> Arc<Material> {
        self.shared.current.load_full()
    }

    /// How often what is current was replaced.
    pub(crate) fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Who this process is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.current().identity.clone()
    }

    /// When the own certificate ends, in seconds since 1970.
    #[must_use]
    pub fn not_after(&self) -> u64 {
        self.current().not_after
    }

    /// The number of the own certificate, in hexadecimal.
    #[must_use]
    pub fn serial(&self) -> String {
        self.current().serial.clone()
    }

    /// How handshakes of this process's ports have ended.
    #[must_use]
    pub fn handshakes(&self) -> &Handshakes {
        &self.shared.handshakes
    }

    /// How often files were replaced by some that were not taken.
    #[must_use]
    pub fn reload_failures(&self) -> u64 {
        self.shared.reload_failures.load(Ordering::Relaxed)
    }

    /// Looks at the files again, and takes them if they are others and hold together. Whether they were taken.
    ///
    /// # Errors
    /// [`Fault`]: what was current stays.
    pub fn reload(&self) -> Result<bool, Fault> {
        let reloaded = self.try_reload();
        if reloaded.is_err() {
            self.shared.reload_failures.fetch_add(1, Ordering::Relaxed);
        }
        reloaded
    }

    fn try_reload(&self) -> Result<bool, Fault> {
        let files = Files::read(&self.shared.directory)?;
        let current = self.current();
        if files.digest() == current.digest {
            return Ok(false);
        }
        let newer = Material::parse(&files)?;
        if newer.identity != current.identity {
            let path = self.shared.directory.join(CERTIFICATE_FILE);
            let why = format!("is of {}, and this process is {}", newer.identity, current.identity);
            return Err(Fault::file(
                &path,
                why,
                "replace it by one of the same identity, or restart this process",
            ));
        }
        self.shared.current.store(Arc::new(newer));
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// Looks at the files whenever [`RELOAD_EVERY`] has passed, and when the process gets SIGHUP. Never ends.
    pub async fn keep_current(self) {
        let mut hangups = signal(SignalKind::hangup()).ok();
        let mut ticks = tokio::time::interval(RELOAD_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // The first is at once.
        ticks.tick().await;
        loop {
            let hangup = async {
                match &mut hangups {
                    Some(hangups) => hangups.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = ticks.tick() => {}
                _ = hangup => {}
            }
            let this = self.clone();
            let Ok(reloaded) = tokio::task::spawn_blocking(move || this.reload()).await else { continue };
            match reloaded {
                Ok(true) => tracing::info!(
                    serial = self.serial(),
                    not_after = self.not_after(),
                    "new certificates taken"
                ),
                Ok(false) => {}
                Err(fault) => {
                    tracing::warn!(code = %format_args!("T{}", Code::TlsReload.number()), %fault, "new certificates not taken; those before are used on");
                }
            }
        }
    }
}
