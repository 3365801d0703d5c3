//! Whom the other side of a connection has proved to be.

use std::sync::{Arc, OnceLock};

use rustls_pki_types::{CertificateDer, ServerName};
use tripod_identity::Identity;

/// What a certificate that holds has proved.
#[derive(Debug, Clone)]
pub struct Proved {
    identity: Identity,
    leaf: CertificateDer<'static>,
}

/// Whom the other side of one connection has proved to be, as soon as its handshake is over. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Presented(Arc<OnceLock<Proved>>);

impl Proved {
    pub(crate) fn new(identity: Identity, leaf: CertificateDer<'static>) -> Self {
        Self { identity, leaf }
    }

    /// Whom its certificate names.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether the certificate is also one of that host, a DNS name or an address.
    #[must_use]
    pub fn is_of_host(&self, host: &str) -> bool {
        is_of_host(&self.leaf, host)
    }
}

/// Whether a certificate is one of that host.
pub(crate) fn is_of_host(leaf: &CertificateDer<'_>, host: &str) -> bool {
    let Ok(host) = ServerName::try_from(host) else { return false };
    let leaf = webpki::EndEntityCert::try_from(leaf);
    leaf.is_ok_and(|leaf| leaf.verify_is_valid_for_subject_name(&host).is_ok())
}

impl Presented {
    /// Nothing before the handshake is over, and nothing on a connection in plain text.
    #[must_use]
    pub fn proved(&self) -> Option<&Proved> {
        self.0.get()
    }

    pub(crate) fn tell(&self, proved: Proved) {
        // A connection has one handshake.
        let _ = self.0.set(proved);
    }
}
