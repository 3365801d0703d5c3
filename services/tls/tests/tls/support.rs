//! Issuers, certificates, and both ends of a connection.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber,
};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tripod_tls::{ClientTls, Outcome, Port, ServerStream, ServerTls, Tls};

pub(crate) const REALM: &str = "spiffe://example.org/tripod/prod";
pub(crate) const HOST: &str = "10.0.0.1";
pub(crate) const HOUR: i64 = 3600;

/// Who signs.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
}

/// What a certificate is to say.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) uris: Vec<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) usages: Vec<ExtendedKeyUsagePurpose>,
    /// Seconds from now.
    pub(crate) from: i64,
    pub(crate) until: i64,
    pub(crate) serial: u64,
}

/// A certificate and its key.
pub(crate) struct Pair {
    pub(crate) pem: String,
    pub(crate) key_pem: String,
    pub(crate) der: CertificateDer<'static>,
    key: Vec<u8>,
}

pub(crate) fn at(seconds: i64) -> OffsetDateTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    OffsetDateTime::from_unix_timestamp(i64::try_from(now).unwrap() + seconds).unwrap()
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { pem: certificate.pem(), der: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    pub(crate) fn sign(&self, wanted: &Wanted) -> Pair {
        let mut params = CertificateParams::new(wanted.hosts.clone()).unwrap();
        for uri in &wanted.uris {
            params.subject_alt_names.push(SanType::URI(uri.clone().try_into().unwrap()));
        }
        params.extended_key_usages.clone_from(&wanted.usages);
        params.serial_number = Some(SerialNumber::from(wanted.serial));
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (at(wanted.from), at(wanted.until));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            der: certificate.der().clone(),
            key: key.serialize_der(),
        }
    }

    /// The list that revokes a number.
    pub(crate) fn revoking(&self, serial: u64) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: at(-HOUR),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: at(-HOUR),
            next_update: at(HOUR),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

impl Wanted {
    pub(crate) fn of(path: &str) -> Self {
        let usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let uris = vec![format!("{REALM}/{path}")];
        Self { uris, hosts: Vec::new(), usages, from: -HOUR, until: HOUR, serial: 7 }
    }

    pub(crate) fn node(name: &str) -> Self {
        Self {
            hosts: vec![HOST.to_owned(), "n1.example.org".to_owned()],
            ..Self::of(&format!("node/{name}"))
        }
    }

    pub(crate) fn operator() -> Self {
        Self { usages: vec![ExtendedKeyUsagePurpose::ClientAuth], ..Self::of("operator/ann") }
    }
}

impl Pair {
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }
}

/// Two issuers, and a directory for each of a node and an operator.
pub(crate) struct World {
    pub(crate) nodes: Authority,
    pub(crate) clients: Authority,
    pub(crate) node: TempDir,
    pub(crate) operator: TempDir,
}

pub(crate) fn put(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn put_pair(directory: &Path, pair: &Pair) {
    put(directory, "tls.crt", &pair.pem);
    put(directory, "tls.key", &pair.key_pem);
}

impl World {
    pub(crate) fn new() -> Self {
        let (nodes, clients) = (Authority::new("nodes"), Authority::new("clients"));
        let [node, operator] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        put_pair(node.path(), &nodes.sign(&Wanted::node("n1")));
        put(node.path(), "ca.crt", &nodes.pem);
        put(node.path(), "client-ca.crt", &clients.pem);
        put_pair(operator.path(), &clients.sign(&Wanted::operator()));
        put(operator.path(), "ca.crt", &nodes.pem);
        Self { nodes, clients, node, operator }
    }

    pub(crate) fn node_tls(&self) -> Tls {
        Tls::read(self.node.path()).unwrap()
    }

    pub(crate) fn operator_tls(&self) -> Tls {
        Tls::read(self.operator.path()).unwrap()
    }
}

/// A client that shows `chain`, whatever that is, and asks for these protocols.
pub(crate) fn stranger(
    roots: &Authority,
    chain: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> ClientConfig {
    let mut store = RootCertStore::empty();
    store.add(roots.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(store);
    let mut config = match chain {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// A server that shows a pair, whatever that is.
pub(crate) fn impostor(pair: &Pair) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pair.der.clone()], pair.key())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// Says something and hears it again, so that each side knows that the other has taken it.
async fn ask<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.write_all(b"ping").await?;
    stream.flush().await?;
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).await?;
    assert_eq!(&heard, b"ping");
    Ok(())
}

pub(crate) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).await?;
    stream.write_all(&heard).await?;
    stream.flush().await
}

/// What became of a connection on both sides: the server's with its stream.
pub(crate) type Both = ((io::Result<()>, ServerStream<DuplexStream>), io::Result<()>);

/// A connection of one of our own clients.
pub(crate) async fn connect(server: &ServerTls, client: &ClientTls) -> Both {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let mut accepted = server.accept(ours, None);
    let serving = async move {
        let answered = answer(&mut accepted).await;
        (answered, accepted)
    };
    tokio::join!(serving, async { ask(client.connect(theirs, HOST).await?).await })
}

/// A connection of somebody else.
pub(crate) async fn connect_as(server: &ServerTls, config: ClientConfig) -> Both {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let mut accepted = server.accept(ours, None);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = HOST.try_into().unwrap();
    let serving = async move {
        let answered = answer(&mut accepted).await;
        (answered, accepted)
    };
    tokio::join!(serving, async { ask(connector.connect(name, theirs).await?).await })
}

/// The one outcome that was counted for a port.
pub(crate) fn counted(tls: &Tls, port: Port) -> Outcome {
    let all: Vec<_> =
        Outcome::ALL.into_iter().filter(|outcome| tls.handshakes().count(port, *outcome) > 0).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

pub(crate) const SOON: Duration = Duration::from_millis(100);
