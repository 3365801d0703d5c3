//! Connections whose clients prove the same name by their certificates count together; others do not.

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

async fn connect(incoming: &mut MendedIncoming, port: u16, files: &TempDir) -> Both {
    let client = ClientTls::new(&Tls::read(files.path()).unwrap(), Port::Client);
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

#[tokio::test]
async fn connections_with_one_name_in_their_certificates_share_one_budget() {
    let authority = Authority::new();
    let node = authority.files_of("node/n1");
    // The certificates differ; what counts is the name.
    let names = ["job/a/task", "job/a/task", "job/a/task", "job/b/task"];
    let clients = names.map(|name| authority.files_of(name));
    let tls = ServerTls::new(&Tls::read(node.path()).unwrap(), Port::Client, Mode::Strict);
    let listener = tokio::net::TcpListener::bind((HOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let listener = Arc::new(Listener::from(listener).protected(tls));
    let budget = Budget::new(MemoryLimits { all: 100 * MIB, one_connection: 50 * MIB });
    let resources = PortResources::open().charging(budget.clone());
    let mut incoming = MendedIncoming::through(listener, Stopping::never(), resources);

    let mut open = Vec::new();
    for files in &clients {
        open.push(connect(&mut incoming, port, files).await);
    }
    let account = |number: usize| open[number].1.calls().account();
    let held = [account(0).call(40 * MIB).unwrap(), account(1).call(30 * MIB).unwrap()];
    let limit = budget.limits().one_identity();
    assert_eq!(account(2).call(10 * MIB).unwrap_err(), Short::Identity { limit });
    assert!(account(3).call(10 * MIB).is_ok(), "another name");
    drop(held);
    assert!(account(2).call(50 * MIB).is_ok());
}
