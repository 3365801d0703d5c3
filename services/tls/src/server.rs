//! The accepting side.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{DistinguishedName, Error, ServerConfig};
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tripod_identity::Identity;

use crate::chain::{Chain, Side, Whose};
use crate::material::Material;
use crate::mode::Mode;
use crate::outcome::{Outcome, Refused};
use crate::port::Port;
use crate::presented::{Presented, Proved};
use crate::server_stream::ServerStream;
use crate::signatures::signatures_are_judged_by_rustls;
use crate::tls::Tls;

/// Protects the connections that come to a port. Clones are the same.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub(crate) tls: Tls,
    pub(crate) port: Port,
    pub(crate) is_permissive: bool,
    /// Also by clients that know TLS 1.2 at most.
    takes_older: bool,
    /// Also from clients without a certificate, who may prove by something else who they are.
    takes_uncertified: bool,
}

impl ServerTls {
    /// For a port; `None` if it is not protected.
    #[must_use]
    pub fn new(tls: &Tls, port: Port, mode: Mode) -> Option<Self> {
        let is_permissive = match mode {
            Mode::Off => return None,
            Mode::Permissive => true,
            Mode::Strict => false,
        };
        Some(Self { tls: tls.clone(), port, is_permissive, takes_older: false, takes_uncertified: false })
    }

    /// Takes TLS 1.2, too.
    #[must_use]
    pub fn also_older(self) -> Self {
        Self { takes_older: true, ..self }
    }

    /// Takes connections of clients that have no certificate, too, and judges one that it is shown. For a port whose every call is
    /// judged by who makes it: nobody in particular makes theirs, unless a call proves who does.
    #[must_use]
    pub fn also_uncertified(self) -> Self {
        Self { takes_uncertified: true, ..self }
    }

    /// Protects a connection from there. Its handshake is made as it is read from or written to.
    pub fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        from: Option<IpAddr>,
    ) -> ServerStream<S> {
        ServerStream::new(self.clone(), stream, from)
    }

    /// Whether what somebody has proved would be believed now.
    pub(crate) fn believes(&self, proved: &Proved) -> bool {
        let (material, presented) = (self.tls.current(), Presented::default());
        Verifier { material, port: self.port, is_optional: false, presented }.identity(proved.chain()).is_ok()
    }

    /// What a connection is accepted with that comes now. Nothing of it is kept for the next one: a client that comes
    /// back proves itself again.
    pub(crate) fn config(&self, presented: &Presented) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let material = self.tls.current();
        let own = Arc::new(SingleCertAndKey::from(Arc::clone(&material.own)));
        // Peers always have one: nothing else says which node they are.
        let is_optional = self.port == Port::Http || (self.port == Port::Client && self.takes_uncertified);
        let presented = presented.clone();
        let verifier = Arc::new(Verifier { material, port: self.port, is_optional, presented });
        let versions: &[_] = if self.takes_older {
            &[&rustls::version::TLS13, &rustls::version::TLS12]
        } else {
            &[&rustls::version::TLS13]
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(own);
        config.alpn_protocols = vec![self.port.protocol().to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// Judges one client.
#[derive(Debug)]
struct Verifier {
    material: Arc<Material>,
    port: Port,
    /// Whether a client may have no certificate. Probes and scrapers of the HTTP port have none, and see there nothing that
    /// changes anything.
    is_optional: bool,
    presented: Presented,
}

impl Verifier {
    /// Whom a client's chain proves it to be.
    fn identity(&self, chain: Chain<'_>) -> Result<Identity, Refused> {
        let Material { node_roots, client_roots, .. } = &*self.material;
        let judge = self.material.judge();
        let as_node = || judge.identity(chain, node_roots, Side::Client, Whose::Node);
        match self.port {
            Port::Peer | Port::Worker => as_node(),
            // A node is a client when it joins. Each kind of identity counts with its own roots only, and where both
            // refuse it, that word is the better one which does not only miss a root.
            Port::Client | Port::Http | Port::Store => {
                match judge.identity(chain, client_roots, Side::Client, Whose::Client) {
                    Ok(identity) => Ok(identity),
                    Err(refused) => as_node().map_err(|as_node| match refused.outcome {
                        Outcome::UnknownCa => as_node,
                        _ => refused,
                    }),
                }
            }
        }
    }
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        !self.is_optional
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let identity = self.identity(Chain { leaf: end_entity, between: intermediates })?;
        self.presented.tell(Proved::new(identity, end_entity, intermediates));
        Ok(ClientCertVerified::assertion())
    }

    signatures_are_judged_by_rustls!();
}
