//! Connections whose clients prove the same, by certificates or in their calls, count together; others do not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_stream::StreamExt as _;
use tripod_tls::{ClientStream, ClientTls, Mode, Port, ServerTls, Tls};

use super::{Listener, Mended, MendedIncoming, PortResources, Socket};
use crate::bytes_held::{Budget, MemoryLimits, Short};
use crate::stop::Stopping;

const HOST: &str = "127.0.0.1";
const MIB: u64 = 1 << 20;
/// How a client of HTTP/2 begins: the preface, and settings without any.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// Signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "issuer");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// The files of a node, or of a client, with this name.
    fn files_of(&self, path: &str) -> TempDir {
        let mut usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let mut hosts = Vec::new();
        if path.starts_with("node/") {
            usages.push(ExtendedKeyUsagePurpose::ServerAuth);
            hosts.push(HOST.to_owned());
        }
        let mut params = CertificateParams::new(hosts).unwrap();
        let uri = format!("spiffe://example.org/tripod/prod/{path}");
        params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        params.extended_key_usages = usages;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let place = tempfile::tempdir().unwrap();
        put(place.path(), "tls.crt", &certificate.pem());
        put(place.path(), "tls.key", &key.serialize_pem());
        put(place.path(), "ca.crt", &self.pem);
        place
    }
}

fn put(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Both ends of a connection that has begun.
type Both = (ClientStream<TcpStream>, Mended<Socket>);

/// A port of a node, which takes clients without certificates, too.
struct Site {
    authority: Authority,
    budget: Budget,
    incoming: MendedIncoming,
    port: u16,
}

impl Site {
    async fn new() -> Self {
        let authority = Authority::new();
        let node = authority.files_of("node/n1");
        let tls = ServerTls::new(&Tls::read(node.path()).unwrap(), Port::Client, Mode::Strict);
        let listener = tokio::net::TcpListener::bind((HOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let listener = Arc::new(Listener::from(listener).protected(tls.map(ServerTls::also_uncertified)));
        let budget = Budget::new(MemoryLimits { all: 100 * MIB, one_connection: 50 * MIB });
        let resources = PortResources::open().charging(budget.clone());
        let incoming = MendedIncoming::through(listener, Stopping::never(), resources);
        Self { authority, budget, incoming, port }
    }

    /// A client that proves this name.
    async fn certified(&mut self, path: &str) -> Both {
        let files = self.authority.files_of(path);
        self.connect(&ClientTls::new(&Tls::read(files.path()).unwrap(), Port::Client)).await
    }

    /// One that has no certificate.
    async fn uncertified(&mut self) -> Both {
        let files = tempfile::tempdir().unwrap();
        put(files.path(), "ca.crt", &self.authority.pem);
        self.connect(&ClientTls::uncertified(files.path(), Port::Client).unwrap()).await
    }

    async fn connect(&mut self, client: &ClientTls) -> Both {
        let (incoming, port) = (&mut self.incoming, self.port);
        let speak = async {
            let stream = TcpStream::connect((HOST, port)).await.unwrap();
            let mut stream = client.connect(stream, HOST).await.unwrap();
            stream.write_all(BEGIN).await.unwrap();
            stream.flush().await.unwrap();
            stream
        };
        let hear = async {
            let mut connection = incoming.next().await.unwrap().unwrap();
            connection.read_exact(&mut [0]).await.unwrap();
            connection
        };
        tokio::join!(speak, hear)
    }
}

#[tokio::test]
async fn connections_with_one_name_in_their_certificates_share_one_budget() {
    let mut site = Site::new().await;
    let mut open = Vec::new();
    // The certificates differ; what counts is the name.
    for path in ["job/a/task", "job/a/task", "job/a/task", "job/b/task"] {
        open.push(site.certified(path).await);
    }
    let account = |number: usize| open[number].1.calls().account();
    let held = [account(0).call(40 * MIB).unwrap(), account(1).call(30 * MIB).unwrap()];
    let limit = site.budget.limits().one_identity();
    assert_eq!(account(2).call(10 * MIB).unwrap_err(), Short::Identity { limit });
    assert!(account(3).call(10 * MIB).is_ok(), "another name");
    drop(held);
    assert!(account(2).call(50 * MIB).is_ok());
}

#[tokio::test]
async fn connections_by_which_one_bearer_calls_share_one_budget() {
    let mut site = Site::new().await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(site.uncertified().await);
    }
    let calls = |number: usize| open[number].1.calls();
    let by = |number: usize, bearer: &str| calls(number).belong_to(|| bearer.to_owned());
    let early = calls(0).account().call(10 * MIB).unwrap();
    for (number, bearer) in ["token:a", "token:a", "token:a", "token:b"].into_iter().enumerate() {
        by(number, bearer);
    }
    // The first word counts: whoever shows others on his connections has no more by it.
    by(0, "token:c");
    let held = [calls(0).account().call(40 * MIB).unwrap(), calls(1).account().call(30 * MIB).unwrap()];
    let limit = site.budget.limits().one_identity();
    assert_eq!(calls(2).account().call(10 * MIB).unwrap_err(), Short::Identity { limit });
    assert!(calls(3).account().call(10 * MIB).is_ok(), "another bearer");
    // What came before anything was proved was never held for the bearer, and is not given back for it.
    drop(early);
    assert_eq!(calls(2).account().call(10 * MIB).unwrap_err(), Short::Identity { limit });
    drop(held);
    assert!(calls(2).account().call(50 * MIB).is_ok());
}

#[tokio::test]
async fn a_certificate_counts_before_a_bearers_word() {
    let mut site = Site::new().await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(site.certified("job/a/task").await);
    }
    let calls = |number: usize| open[number].1.calls();
    for number in 0..3 {
        calls(number).belong_to(|| format!("token:{number}"));
    }
    let _held = [calls(0).account().call(40 * MIB).unwrap(), calls(1).account().call(30 * MIB).unwrap()];
    let limit = site.budget.limits().one_identity();
    assert_eq!(calls(2).account().call(10 * MIB).unwrap_err(), Short::Identity { limit });
}
