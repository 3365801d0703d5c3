//! Whom the other side of a connection has proved to be.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustls_pki_types::{CertificateDer, ServerName};
use tripod_identity::{Identity, Kind};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::chain::{self, Chain};
use crate::server::ServerTls;

/// What a certificate that holds has proved.
#[derive(Debug, Clone)]
pub struct Proved {
    identity: Identity,
    leaf: CertificateDer<'static>,
    between: Vec<CertificateDer<'static>>,
    /// When the first of its certificates ends, in seconds since 1970.
    not_after: u64,
}

/// Whom the other side of one connection has proved to be, as soon as its handshake is over. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Presented(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    proved: OnceLock<Proved>,
    /// The handshake is over.
    is_encrypted: AtomicBool,
    /// To whom.
    server: Option<ServerTls>,
    /// What was current when it was last found to hold.
    held_at: AtomicU64,
}

impl Proved {
    pub(crate) fn new(identity: Identity, leaf: &CertificateDer<'_>, between: &[CertificateDer<'_>]) -> Self {
        let owned = |certificate: &CertificateDer<'_>| certificate.clone().into_owned();
        let not_after = between.iter().chain([leaf]).map(not_after).min().unwrap_or(0);
        Self { identity, leaf: owned(leaf), between: between.iter().map(owned).collect(), not_after }
    }

    pub(crate) fn chain(&self) -> Chain<'_> {
        Chain { leaf: &self.leaf, between: &self.between }
    }

    /// Whom its certificate names.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What it calls the node whose it is, if it is a node's.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match &self.identity.kind {
            Kind::Node(name) => Some(name.as_str()),
            _ => None,
        }
    }

    /// Whether the certificate is also one of that host, a DNS name or an address.
    #[must_use]
    pub fn is_of_host(&self, host: &str) -> bool {
        is_of_host(&self.leaf, host)
    }
}

/// When a certificate ends, in seconds since 1970; one that cannot be read has ended.
fn not_after(certificate: &CertificateDer<'_>) -> u64 {
    let parsed = X509Certificate::from_der(certificate).ok();
    parsed.and_then(|(_, parsed)| u64::try_from(parsed.validity().not_after.timestamp()).ok()).unwrap_or(0)
}

/// Whether a certificate is one of that host.
pub(crate) fn is_of_host(leaf: &CertificateDer<'_>, host: &str) -> bool {
    let Ok(host) = ServerName::try_from(host) else { return false };
    let leaf = webpki::EndEntityCert::try_from(leaf);
    leaf.is_ok_and(|leaf| leaf.verify_is_valid_for_subject_name(&host).is_ok())
}

impl Presented {
    /// What is proved to this server.
    pub(crate) fn to(server: ServerTls) -> Self {
        let held_at = AtomicU64::new(server.tls.generation());
        Self(Arc::new(Shared { server: Some(server), held_at, ..Shared::default() }))
    }

    /// Nothing before the handshake is over, and nothing on a connection in plain text.
    #[must_use]
    pub fn proved(&self) -> Option<&Proved> {
        self.0.proved.get()
    }

    /// The same for as long as it holds: for whoever is asked about each call, on connections that nobody ends.
    #[must_use]
    pub fn believed(&self) -> Option<&Proved> {
        self.proved().filter(|_| self.still_holds())
    }

    /// Whether the connection is protected, whoever its client is: not before the handshake is over, and never in plain text.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.is_encrypted.load(Ordering::Acquire)
    }

    pub(crate) fn note_encrypted(&self) {
        self.0.is_encrypted.store(true, Ordering::Release);
    }

    /// Whether what was proved would be believed now: no certificate has ended, none is revoked by lists that were taken since,
    /// and its root is still one. So it is where nothing was proved. Costs a comparison, unless files were replaced.
    #[must_use]
    pub fn still_holds(&self) -> bool {
        let Shared { proved, server, held_at, .. } = &*self.0;
        let (Some(proved), Some(server)) = (proved.get(), server) else { return true };
        if chain::now().as_secs() > proved.not_after {
            return false;
        }
        let generation = server.tls.generation();
        if generation == held_at.load(Ordering::Relaxed) {
            return true;
        }
        let holds = server.believes(proved);
        if holds {
            held_at.store(generation, Ordering::Relaxed);
        }
        holds
    }

    pub(crate) fn tell(&self, proved: Proved) {
        // A connection has one handshake.
        let _ = self.0.proved.set(proved);
    }
}
