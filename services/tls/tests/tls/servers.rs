//! Which servers are spoken to.

use std::sync::Arc;

use rcgen::ExtendedKeyUsagePurpose;
use rustls::ServerConfig;
use tokio::io::AsyncReadExt as _;
use tripod_tls::{ClientTls, Dialled, Mode, PeerTls, Port, refusal};

use crate::support::{Authority, HOST, Wanted, World, answer, impostor};

/// What our client says of a server.
async fn said(world: &World, config: Arc<ServerConfig>) -> Option<String> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let client = ClientTls::new(&world.operator_tls(), Port::Client);
    let serving = async {
        if let Ok(mut stream) = tokio_rustls::TlsAcceptor::from(config).accept(ours).await {
            let _ = stream.read_u8().await;
        }
    };
    let (_, connected) = tokio::join!(serving, async { client.connect(theirs, HOST).await.map(drop) });
    connected.err().map(|error| refusal(&error).expect("a word of TLS"))
}

#[tokio::test]
async fn s20_a_server_whose_certificate_does_not_hold_is_not_spoken_to_and_the_words_say_why() {
    let world = World::new();
    let node = || Wanted::node("n1");
    let client_only = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let theirs = Wanted { uris: vec!["spiffe://example.org/tripod/test/node/n1".to_owned()], ..node() };
    for (wanted, words) in [
        (node(), None),
        (Wanted { until: -60, ..node() }, Some("the server's certificate has expired, or is not valid yet")),
        (Wanted { from: 60, ..node() }, Some("the server's certificate has expired, or is not valid yet")),
        (
            Wanted { hosts: vec!["10.0.0.2".to_owned()], ..node() },
            Some("the server's certificate, of node/n1, is not one of host 10.0.0.1"),
        ),
        (Wanted { usages: client_only, ..node() }, Some("the server's certificate is not one for servers")),
        (theirs, Some("the identity is of another cluster")),
        (
            Wanted { hosts: vec![HOST.to_owned()], ..Wanted::of("job/a/worker") },
            Some("the certificate is of job/a/worker, which is not a node"),
        ),
    ] {
        assert_eq!(said(&world, impostor(&world.nodes.sign(&wanted))).await.as_deref(), words);
    }
    let stranger = Authority::new("others").sign(&node());
    let words = "the server's certificate is not signed by a root of ca.crt";
    assert_eq!(said(&world, impostor(&stranger)).await.as_deref(), Some(words));
    // Whoever has stolen what vouches for clients is no server.
    assert_eq!(said(&world, impostor(&world.clients.sign(&node()))).await.as_deref(), Some(words));
}

#[tokio::test]
async fn a_server_of_another_protocol_is_not_spoken_to() {
    let world = World::new();
    let mut config = Arc::unwrap_or_clone(impostor(&world.nodes.sign(&Wanted::node("n1"))));
    config.alpn_protocols = Vec::new();
    let words = said(&world, Arc::new(config)).await.expect("refused");
    assert_eq!(words, "10.0.0.1 does not speak the protocol that is expected there (ALPN)");
}

/// A peer that knows nothing of TLS: what it hears is no preface of HTTP/2.
async fn ancient(mut stream: tokio::io::DuplexStream) {
    let _ = stream.read(&mut [0; 24]).await;
}

#[tokio::test]
async fn a_permissive_node_speaks_plain_to_one_that_knows_no_tls_and_to_no_other() {
    let world = World::new();
    for (mode, is_plain) in [(Mode::Permissive, true), (Mode::Strict, false)] {
        let peers = PeerTls::new(&world.node_tls(), mode).unwrap();
        let dialled = peers
            .dial(HOST, None, || async {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                tokio::spawn(ancient(ours));
                Ok(theirs)
            })
            .await;
        assert_eq!(matches!(dialled, Ok(Dialled::Plain(_))), is_plain, "{dialled:?}");
        // One that shows a certificate of others is not one that knows no TLS.
        let acceptor: tokio_rustls::TlsAcceptor =
            impostor(&Authority::new("others").sign(&Wanted::node("n1"))).into();
        let dialled = peers
            .dial(HOST, None, || async {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                tokio::spawn(acceptor.accept(ours).into_fallible());
                Ok(theirs)
            })
            .await;
        assert!(dialled.is_err());
    }
}

#[tokio::test]
async fn s22_a_node_is_believed_to_be_the_one_at_a_host_only_with_a_certificate_of_that_host() {
    let world = World::new();
    let peers = PeerTls::new(&world.node_tls(), Mode::Strict).unwrap();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let mut accepted = peers.accept(ours, None);
    let dialling = async {
        let stream = tokio::sync::Mutex::new(Some(theirs));
        let dialled =
            peers.dial(HOST, None, || async { Ok(stream.lock().await.take().expect("once")) }).await.unwrap();
        let Dialled::Protected(mut stream) = dialled else { panic!("plain") };
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"ping").await.unwrap();
        tokio::io::AsyncWriteExt::flush(&mut stream).await.unwrap();
        stream.read_u8().await.unwrap();
    };
    let (answered, ()) = tokio::join!(answer(&mut accepted), dialling);
    answered.unwrap();
    let presented = accepted.presented();
    assert_eq!(peers.impostor(Some(&presented), HOST, None), None);
    assert_eq!(peers.impostor(Some(&presented), HOST, Some("n1")), None);
    let text = peers.impostor(Some(&presented), HOST, Some("n2")).expect("it has the key of another node");
    assert!(text.contains("node/n1") && text.contains("node/n2"), "{text}");
    let text = peers.impostor(Some(&presented), "10.0.0.3", None).expect("refused");
    assert!(text.contains("node n1") && text.contains("10.0.0.3"), "{text}");
    assert!(peers.impostor(None, HOST, None).is_some(), "plain text proves nothing");
    let permissive = PeerTls::new(&world.node_tls(), Mode::Permissive).unwrap();
    assert_eq!(permissive.impostor(None, HOST, None), None);
    assert!(permissive.impostor(Some(&presented), "10.0.0.3", None).is_some());
}

#[tokio::test]
async fn s22_whoever_dials_a_node_takes_no_other_node_for_it() {
    let world = World::new();
    let peers = PeerTls::new(&world.node_tls(), Mode::Strict).unwrap();
    for (known, holds) in [(None, true), (Some("n1"), true), (Some("n2"), false)] {
        let acceptor = peers.clone();
        let dialled = peers
            .dial(HOST, known, || async {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                let mut accepted = acceptor.accept(ours, None);
                tokio::spawn(async move { accepted.read_u8().await });
                Ok(theirs)
            })
            .await;
        match dialled {
            Ok(Dialled::Protected(_)) => assert!(holds, "{known:?}"),
            Ok(Dialled::Plain(_)) => panic!("plain"),
            Err(error) => {
                assert!(!holds, "{known:?}: {error}");
                let words = refusal(&error).expect("a word of TLS");
                assert!(words.contains("node/n1") && words.contains("node/n2"), "{words}");
            }
        }
    }
}
