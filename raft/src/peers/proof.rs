//! Whether whoever calls has proved by TLS to be the node that it says it is.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tonic::Extensions;
use tripod_gate::Caller;
use tripod_proto::code::Code;
use tripod_state::ids::CertificateName;
use tripod_tls::{PeerTls, Presented};

use super::channels::Channels;
use super::expected::Expected;
use super::succession::Succession;

/// Refusals are logged so often at most: a peer that is refused tries again several times a second.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// What is known of a connection that came to the peer port. Every call that comes by it carries it.
#[derive(Debug, Clone, Default)]
pub struct PeerConnection {
    pub(crate) succession: Succession,
    /// Absent where connections are not protected.
    pub(crate) presented: Option<Presented>,
    /// Who calls, as the gate sees it, since it first asked.
    caller: Arc<OnceLock<Arc<Caller>>>,
}

impl PeerConnection {
    /// One of which nothing is known but this.
    pub(crate) fn new(presented: Option<Presented>) -> Self {
        Self { presented, ..Self::default() }
    }

    /// Who calls by the connection of these extensions: whom its certificate names; in plain text whoever it may be.
    pub(crate) fn caller(extensions: &Extensions) -> Option<Arc<Caller>> {
        let connection = extensions.get::<Self>()?;
        let caller = connection.caller.get_or_init(|| {
            let proved = connection.presented.as_ref().and_then(Presented::proved);
            let caller = proved.map(|proved| Caller::by_path(proved.identity().clone()));
            Arc::new(caller.unwrap_or(Caller::Legacy))
        });
        Some(Arc::clone(caller))
    }
}

/// Judges what was proved. A node is known by the host of its address, as its certificate is one of that host, and by the
/// name that the log has bound to its id.
#[derive(Clone)]
pub(crate) struct Proof {
    tls: PeerTls,
    expected: Expected,
    channels: Channels,
    /// Where the first members are, until the log has said where members are.
    initial: BTreeMap<u64, String>,
    logged: Arc<Mutex<Option<Instant>>>,
}

impl Proof {
    pub(crate) fn new(
        (tls, expected): (PeerTls, Expected),
        channels: Channels,
        initial: BTreeMap<u64, String>,
    ) -> Self {
        Self { tls, expected, channels, initial, logged: Arc::default() }
    }

    /// Why a call is refused that came by that connection and says that it is of `node`; `None` if it is let in. Of a
    /// node that is no member yet nobody knows where it is: it must be a node of this cluster.
    pub(crate) fn refusal(&self, connection: Option<&PeerConnection>, node: Option<u64>) -> Option<String> {
        let presented = connection.and_then(|connection| connection.presented.as_ref());
        let has_proved = presented.is_some_and(|presented| presented.proved().is_some());
        let Some(node) = node else {
            // A build that does not say which node it is does not know TLS.
            return has_proved.then(|| "this connection does not say which node it is of".to_owned());
        };
        let address = self.channels.address_of(node, &self.initial);
        let name = self.expected.of(node);
        let name = name.as_ref().map(CertificateName::as_str);
        match &address {
            Some(address) => self.tls.impostor(presented, host_of(address), name),
            None if has_proved => None,
            None => self.tls.impostor(presented, "", None),
        }
    }

    /// Logs a refusal, unless one was logged a moment ago.
    pub(crate) fn log(&self, from: &str, why: &str) {
        let (now, mut logged) = (Instant::now(), self.logged.lock());
        if logged.is_none_or(|at| now.duration_since(at) >= LOG_EVERY) {
            *logged = Some(now);
            tracing::warn!(code = %format_args!("T{}", Code::TlsRefused.number()), from, why, "a call of a peer was refused");
        }
    }
}

/// The host of a `HOST:PORT`.
pub(crate) fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_what_a_certificate_names() {
        for (address, host) in
            [("10.0.0.1:7800", "10.0.0.1"), ("[::1]:7800", "::1"), ("n1.example.org:7800", "n1.example.org")]
        {
            assert_eq!(host_of(address), host);
        }
    }
}
