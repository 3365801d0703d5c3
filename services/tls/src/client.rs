//! The connecting side.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, Error};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tripod_identity::{JobName, Kind};

use crate::believed::{Believed, BelievedRoots};
use crate::chain::{Chain, Side, Whose};
use crate::fault::Fault;
use crate::limits::HANDSHAKE_TIME;
use crate::material::Material;
use crate::outcome::{Outcome, Refused};
use crate::port::Port;
use crate::presented::is_of_host;
use crate::rewound::Rewound;
use crate::signatures::signatures_are_judged_by_rustls;
use crate::tls::Tls;

/// A protected connection to a node.
pub type ClientStream<S> = tokio_rustls::client::TlsStream<S>;

/// Protects connections to ports of nodes. Clones are the same.
#[derive(Debug, Clone)]
pub struct ClientTls {
    source: Source,
    port: Port,
    /// Whether a worker or a store must be of the job of this process, if that is of one.
    is_confined: bool,
}

/// By which files.
#[derive(Debug, Clone)]
enum Source {
    Certified(Tls),
    /// Without a certificate: who connects proves by something else who it is.
    Uncertified(Believed),
}

/// What they are at present.
#[derive(Debug)]
enum Current {
    Certified(Arc<Material>),
    Uncertified(Arc<BelievedRoots>),
}

impl ClientTls {
    /// For connections to that port of nodes.
    #[must_use]
    pub fn new(tls: &Tls, port: Port) -> Self {
        Self { source: Source::Certified(tls.clone()), port, is_confined: false }
    }

    /// The same, which takes no worker and no store of another job than that of the own certificate. A node is of no job, and takes
    /// those of all.
    #[must_use]
    pub fn of_own_job(self) -> Self {
        Self { is_confined: true, ..self }
    }

    /// The same for a process without a certificate, by the roots of a directory.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn uncertified(directory: &Path, port: Port) -> Result<Self, Fault> {
        Ok(Self { source: Source::Uncertified(Believed::read(directory)?), port, is_confined: false })
    }

    /// Looks at the files now and then, as [`Tls::keep_current`] does. Never ends.
    pub async fn keep_current(self) {
        match self.source {
            Source::Certified(tls) => tls.keep_current().await,
            Source::Uncertified(believed) => believed.keep_current().await,
        }
    }

    /// Makes the handshake on a connection to `host`, a DNS name or an address, with what is current now. The server must
    /// be a node of this cluster, and its certificate one of that host.
    ///
    /// # Errors
    /// The server does not hold, or the handshake took longer than [`HANDSHAKE_TIME`]. That the server refuses this side
    /// shows when it is read from for the first time.
    pub async fn connect<S>(&self, stream: S, host: &str) -> io::Result<ClientStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.connect_to(stream, host, None).await
    }

    /// [`Self::connect`] to the node whose certificate has that `known` name, if one is given.
    ///
    /// # Errors
    /// Those of [`Self::connect`]; it is another node.
    pub(crate) async fn connect_to<S>(
        &self,
        stream: S,
        host: &str,
        known: Option<&str>,
    ) -> io::Result<ClientStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let unnamed =
            |_| io::Error::new(io::ErrorKind::InvalidInput, format!("{host} is no host of a certificate"));
        let name = ServerName::try_from(host.to_owned()).map_err(unnamed)?;
        let config = self.config(host, known.map(str::to_owned)).map_err(io::Error::other)?;
        let late =
            |_| io::Error::new(io::ErrorKind::TimedOut, format!("no handshake within {HANDSHAKE_TIME:?}"));
        let stream = timeout(HANDSHAKE_TIME, TlsConnector::from(config).connect(name, stream))
            .await
            .map_err(late)??;
        if stream.get_ref().1.alpn_protocol() != Some(self.port.protocol()) {
            let text = format!("{host} does not speak the protocol that is expected there (ALPN)");
            return Err(Refused::new(Outcome::BadAlpn, text).into());
        }
        Ok(stream)
    }

    /// [`Self::connect`] to a server that begins at once when the handshake is over, as those of HTTP/2 do: and waits until
    /// it has begun. So that it refuses this side shows here, where nothing was asked of it.
    ///
    /// # Errors
    /// Those of [`Self::connect`], and the server's refusal.
    pub async fn connect_and_hear<S>(&self, stream: S, host: &str) -> io::Result<Rewound<ClientStream<S>>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = self.connect(stream, host).await?;
        timeout(HANDSHAKE_TIME, Rewound::when_heard(stream)).await.map_err(late)?
    }

    fn config(&self, host: &str, known: Option<String>) -> Result<Arc<ClientConfig>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let (current, own) = match &self.source {
            Source::Certified(tls) => {
                let material = tls.current();
                let own = Arc::clone(&material.own);
                (Current::Certified(material), Some(own))
            }
            Source::Uncertified(believed) => (Current::Uncertified(believed.current()), None),
        };
        let (port, is_confined) = (self.port, self.is_confined);
        let verifier = Arc::new(Verifier { current, port, is_confined, host: host.to_owned(), known });
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match own {
            Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![self.port.protocol().to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

fn late(_: Elapsed) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no handshake within {HANDSHAKE_TIME:?}"))
}

/// Judges one server.
#[derive(Debug)]
struct Verifier {
    current: Current,
    port: Port,
    is_confined: bool,
    host: String,
    /// What the certificate of the node calls it that is to answer, if that is known.
    known: Option<String>,
}

impl Verifier {
    /// Whether the server is a worker or an object store. Their certificates are made for a job and not for a host: which one was
    /// meant is said by the call.
    fn check_worker(&self, chain: Chain<'_>) -> Result<(), Refused> {
        let Current::Certified(material) = &self.current else {
            let text = "workers and stores are connected to with a certificate";
            return Err(Refused::new(Outcome::NoCertificate, text));
        };
        let roots = &material.client_roots;
        let identity = material.judge().identity(chain, roots, Side::Server, Whose::Client)?;
        match identity.kind {
            Kind::Worker(job) | Kind::Store(job) if self.is_confined && is_other(material, &job) => {
                let text = format!("the server's certificate is one of job {job}, which is another job");
                Err(Refused::new(Outcome::BadName, text))
            }
            Kind::Worker(_) | Kind::Store(_) => Ok(()),
            other => {
                let text = format!("the server's certificate is of {other}, which is no worker and no store");
                Err(Refused::new(Outcome::BadName, text))
            }
        }
    }
}

/// Whether it is not the job of the own certificate.
fn is_other(material: &Material, job: &JobName) -> bool {
    material.identity.kind.job().is_some_and(|own| own != job)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = Chain { leaf: end_entity, between: intermediates };
        if matches!(self.port, Port::Store | Port::Worker) {
            self.check_worker(chain)?;
            return Ok(ServerCertVerified::assertion());
        }
        let (judge, roots) = match &self.current {
            Current::Certified(material) => (material.judge(), &material.node_roots),
            Current::Uncertified(believed) => (believed.judge(), &believed.node_roots),
        };
        let identity = judge.identity(chain, roots, Side::Server, Whose::Node)?;
        if !is_of_host(end_entity, &self.host) {
            let text =
                format!("the server's certificate, of {}, is not one of host {}", identity.kind, self.host);
            return Err(Refused::new(Outcome::BadName, text).into());
        }
        if let (Some(known), Kind::Node(name)) = (&self.known, &identity.kind)
            && known != name.as_str()
        {
            let text = format!(
                "the server's certificate is of node/{name}, and the node that was dialled has that of node/{known}"
            );
            return Err(Refused::new(Outcome::BadName, text).into());
        }
        Ok(ServerCertVerified::assertion())
    }

    signatures_are_judged_by_rustls!();
}
