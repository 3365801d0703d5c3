//! Within what a name means something.

use std::fmt;

use crate::{ClusterName, TrustDomain};

/// A cluster of a trust domain. What another realm's certificates say means nothing here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Realm {
    /// Whose certificates they are.
    pub trust: TrustDomain,
    /// Which of its clusters.
    pub cluster: ClusterName,
}

impl Realm {
    /// What the URI of every node begins with, and of nobody else: for clients that compare beginnings of URIs
    /// (JAX: `mtls_peer_uri_prefix`).
    #[must_use]
    pub fn nodes(&self) -> String {
        format!("{self}/node/")
    }
}

/// What every URI of the realm begins with, without a `/` behind it.
impl fmt::Display for Realm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "spiffe://{}/tripod/{}", self.trust, self.cluster)
    }
}
