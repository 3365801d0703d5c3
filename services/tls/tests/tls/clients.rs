//! Whom a port lets in.

use std::time::Duration;

use rcgen::ExtendedKeyUsagePurpose;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tripod_tls::{ClientTls, HANDSHAKE_TIME, Mode, Outcome, Port, ServerTls, refusal};
use tripod_wait::scaled;

use crate::support::{
    Authority, HOUR, Pair, SOON, Wanted, World, answer, connect, connect_as, counted, put, put_pair, stranger,
};

/// How long a certificate holds that is to be over before its test is.
const SHORT: Duration = Duration::from_secs(6);

fn server(world: &World, port: Port) -> (tripod_tls::Tls, ServerTls) {
    let tls = world.node_tls();
    let server = ServerTls::new(&tls, port, Mode::Strict).unwrap();
    (tls, server)
}

#[tokio::test]
async fn an_operator_is_served_and_known() {
    let world = World::new();
    let (tls, server) = server(&world, Port::Client);
    let ((served, accepted), asked) =
        connect(&server, &ClientTls::new(&world.operator_tls(), Port::Client)).await;
    served.unwrap();
    asked.unwrap();
    let presented = accepted.presented();
    let proved = presented.proved().expect("known");
    assert_eq!(proved.identity().kind.to_string(), "operator/ann");
    assert_eq!(counted(&tls, Port::Client), Outcome::Ok);
}

#[tokio::test]
async fn a_node_is_a_client_too_and_a_peer_of_nodes() {
    let world = World::new();
    for port in [Port::Client, Port::Peer] {
        let (_, server) = server(&world, port);
        let ((served, accepted), asked) = connect(&server, &ClientTls::new(&world.node_tls(), port)).await;
        served.unwrap();
        asked.unwrap();
        let presented = accepted.presented();
        let proved = presented.proved().expect("known");
        assert_eq!(proved.identity().kind.to_string(), "node/n1");
        assert!(proved.is_of_host("10.0.0.1") && proved.is_of_host("n1.example.org"));
        assert!(!proved.is_of_host("10.0.0.2") && !proved.is_of_host("n2.example.org"));
    }
}

/// How one who shows this is met at a port.
async fn met(world: &World, port: Port, chain: Vec<&Pair>) -> Outcome {
    let (tls, server) = server(world, port);
    let certificates = chain.iter().map(|pair| pair.der.clone()).collect();
    let config = stranger(&world.nodes, Some((certificates, chain[0].key())));
    let ((served, accepted), asked) = connect_as(&server, config).await;
    assert_eq!(served.is_ok(), asked.is_ok(), "{served:?} {asked:?}");
    let outcome = counted(&tls, port);
    assert_eq!(outcome == Outcome::Ok, served.is_ok());
    drop(accepted);
    outcome
}

#[tokio::test]
async fn s21_a_client_whose_certificate_does_not_hold_is_refused_with_its_outcome() {
    let world = World::new();
    let others = Authority::new("others");
    let operator = Wanted::operator;
    let uris = |uris: &[&str]| Wanted { uris: uris.iter().map(ToString::to_string).collect(), ..operator() };
    let own = operator().uris[0].clone();
    let server_only = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for (what, wanted, outcome) in [
        ("as it should be", operator(), Outcome::Ok),
        ("expired", Wanted { until: -60, ..operator() }, Outcome::Expired),
        ("not valid yet", Wanted { from: 60, ..operator() }, Outcome::Expired),
        ("of a server", Wanted { usages: server_only, ..operator() }, Outcome::BadUsage),
        ("of no usage", Wanted { usages: Vec::new(), ..operator() }, Outcome::BadUsage),
        ("two names", uris(&[&own, "spiffe://example.org/tripod/prod/operator/bob"]), Outcome::BadName),
        ("no name", uris(&[]), Outcome::BadName),
        ("no name of ours", uris(&["https://example.org/ann"]), Outcome::BadName),
        ("another cluster", uris(&["spiffe://example.org/tripod/test/operator/ann"]), Outcome::BadName),
        ("another trust domain", uris(&["spiffe://example.com/tripod/prod/operator/ann"]), Outcome::BadName),
        ("a node's name by the root of clients", Wanted::node("n2"), Outcome::BadName),
    ] {
        assert_eq!(met(&world, Port::Client, vec![&world.clients.sign(&wanted)]).await, outcome, "{what}");
    }
    assert_eq!(met(&world, Port::Client, vec![&others.sign(&operator())]).await, Outcome::UnknownCa);
    // By the root of nodes, which vouches for nobody else.
    assert_eq!(met(&world, Port::Client, vec![&world.nodes.sign(&operator())]).await, Outcome::BadName);
    let pair = world.clients.sign(&operator());
    assert_eq!(met(&world, Port::Client, vec![&pair; 40]).await, Outcome::UnknownCa, "a long chain");
    assert_eq!(
        met(&world, Port::Client, vec![&pair; 300]).await,
        Outcome::Failed,
        "a chain of more than 64 KiB"
    );
}

#[tokio::test]
async fn s22_at_the_peer_port_nobody_is_let_in_but_nodes_of_this_cluster() {
    let world = World::new();
    let sign = |authority: &Authority, wanted: Wanted| authority.sign(&wanted);
    let theirs =
        Wanted { uris: vec!["spiffe://example.org/tripod/test/node/n1".to_owned()], ..Wanted::node("n1") };
    for (pair, outcome) in [
        (sign(&world.nodes, Wanted::node("n2")), Outcome::Ok),
        (sign(&world.clients, Wanted::operator()), Outcome::UnknownCa),
        (sign(&world.clients, Wanted::node("n2")), Outcome::UnknownCa),
        (sign(&world.nodes, Wanted::operator()), Outcome::BadName),
        (sign(&world.nodes, theirs), Outcome::BadName),
    ] {
        assert_eq!(met(&world, Port::Peer, vec![&pair]).await, outcome);
    }
}

#[tokio::test]
async fn who_is_revoked_is_refused_and_told_so() {
    let world = World::new();
    put(world.node.path(), "crl.pem", &world.clients.revoking(Wanted::operator().serial));
    let (tls, server) = server(&world, Port::Client);
    let ((served, _), asked) = connect(&server, &ClientTls::new(&world.operator_tls(), Port::Client)).await;
    assert!(served.is_err());
    let text = refusal(&asked.unwrap_err()).expect("a word of TLS");
    assert_eq!(text, "the server refused this certificate: it is revoked");
    assert_eq!(counted(&tls, Port::Client), Outcome::Revoked);
    let other = Wanted { serial: 8, ..Wanted::operator() };
    assert_eq!(met(&world, Port::Client, vec![&world.clients.sign(&other)]).await, Outcome::Ok);
}

#[tokio::test]
async fn s26_who_is_revoked_or_whose_time_is_over_is_believed_no_longer_on_a_connection_that_stands() {
    let world = World::new();
    let (tls, server) = server(&world, Port::Client);
    let client = ClientTls::new(&world.operator_tls(), Port::Client);
    let ((served, accepted), _) = connect(&server, &client).await;
    served.unwrap();
    let node = ClientTls::new(&world.node_tls(), Port::Client);
    let ((served, other), _) = connect(&server, &node).await;
    served.unwrap();
    let until = i64::try_from(scaled(SHORT).as_secs()).unwrap();
    let short = world.clients.sign(&Wanted { until, serial: 9, ..Wanted::operator() });
    let config = stranger(&world.nodes, Some((vec![short.der.clone()], short.key())));
    let ((served, soon_over), _) = connect_as(&server, config).await;
    served.unwrap();
    let holds = || {
        [&accepted, &other, &soon_over].map(|accepted| {
            let presented = accepted.presented();
            assert!(presented.proved().is_some());
            // Its time may be over in between.
            let (believed, holds) = (presented.believed().is_some(), presented.still_holds());
            assert!(believed || !holds);
            believed
        })
    };
    assert_eq!(holds(), [true, true, true]);
    put(world.node.path(), "crl.pem", &world.clients.revoking(Wanted::operator().serial));
    assert_eq!(holds(), [true, true, true], "the list was not taken yet");
    assert!(tls.reload().unwrap());
    tripod_wait::until("the certificate's time to be over", || (!holds()[2]).then_some(())).await;
    assert_eq!(holds(), [false, true, false]);
}

#[tokio::test]
async fn who_shows_no_certificate_or_asks_for_another_protocol_is_refused() {
    let world = World::new();
    let (tls, one) = server(&world, Port::Client);
    let ((served, _), asked) = connect_as(&one, stranger(&world.nodes, None)).await;
    assert!(served.is_err() && asked.is_err());
    assert_eq!(counted(&tls, Port::Client), Outcome::NoCertificate);
    for protocols in [vec![b"http/1.1".to_vec()], Vec::new()] {
        let (tls, one) = server(&world, Port::Client);
        let pair = world.clients.sign(&Wanted::operator());
        let mut config = stranger(&world.nodes, Some((vec![pair.der.clone()], pair.key())));
        config.alpn_protocols = protocols;
        let ((served, _), asked) = connect_as(&one, config).await;
        assert!(served.is_err() && asked.is_err());
        assert_eq!(counted(&tls, Port::Client), Outcome::BadAlpn);
    }
}

#[tokio::test]
async fn the_http_port_serves_who_has_no_certificate_and_judges_who_has_one() {
    let world = World::new();
    let (_, one) = server(&world, Port::Http);
    let mut config = stranger(&world.nodes, None);
    config.alpn_protocols = Vec::new();
    let ((served, accepted), asked) = connect_as(&one, config).await;
    served.unwrap();
    asked.unwrap();
    assert!(accepted.presented().proved().is_none());
    let others = Authority::new("others").sign(&Wanted::operator());
    let mut config = stranger(&world.nodes, Some((vec![others.der.clone()], others.key())));
    config.alpn_protocols = Vec::new();
    assert!(connect_as(&one, config).await.0.0.is_err());
}

#[tokio::test]
async fn s30_a_client_port_serves_who_has_no_certificate_only_where_that_was_said_and_a_peer_port_never() {
    let world = World::new();
    for (port, said, is_served) in
        [(Port::Client, true, true), (Port::Client, false, false), (Port::Peer, true, false)]
    {
        let (tls, one) = server(&world, port);
        let one = if said { one.also_uncertified() } else { one };
        let ((served, accepted), asked) = connect_as(&one, stranger(&world.nodes, None)).await;
        assert_eq!((served.is_ok(), asked.is_ok()), (is_served, is_served), "{port:?} {said}");
        let presented = accepted.presented();
        assert!(presented.proved().is_none() && presented.still_holds());
        assert_eq!(presented.is_encrypted(), is_served);
        let outcome = if is_served { Outcome::Ok } else { Outcome::NoCertificate };
        assert_eq!(counted(&tls, port), outcome);
    }
    // Our own client without a certificate judges the server as every other one.
    let (tls, one) = server(&world, Port::Client);
    let bare = tempfile::tempdir().expect("a directory");
    assert!(ClientTls::uncertified(bare.path(), Port::Client).is_err(), "there are no roots");
    std::fs::copy(world.node.path().join("ca.crt"), bare.path().join("ca.crt")).expect("copied");
    let client = ClientTls::uncertified(bare.path(), Port::Client).expect("roots are enough");
    let ((served, _), asked) = connect(&one.clone().also_uncertified(), &client).await;
    assert!(served.is_ok() && asked.is_ok(), "{served:?} {asked:?}");
    assert_eq!(counted(&tls, Port::Client), Outcome::Ok);
    let ((_, _), asked) = connect(&one, &client).await;
    assert_eq!(refusal(&asked.expect_err("refused")).as_deref(), Some("the server wants a certificate"));
    // A certificate that is shown is judged all the same.
    let (tls, one) = server(&world, Port::Client);
    let others = Authority::new("others").sign(&Wanted::operator());
    let config = stranger(&world.nodes, Some((vec![others.der.clone()], others.key())));
    assert!(connect_as(&one.also_uncertified(), config).await.0.0.is_err());
    assert_eq!(counted(&tls, Port::Client), Outcome::UnknownCa);
}

#[tokio::test]
async fn s44_a_worker_lets_in_nodes_only_a_store_clients_too_and_both_must_be_of_a_job() {
    let world = World::new();
    let made = |path: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        put_pair(directory.path(), &world.clients.sign(&Wanted::of(path)));
        put(directory.path(), "ca.crt", &world.nodes.pem);
        put(directory.path(), "client-ca.crt", &world.clients.pem);
        (tripod_tls::Tls::read(directory.path()).expect("they hold together"), directory)
    };
    let (worker, _worker_files) = made("job/own/worker");
    let (store, _store_files) = made("job/own/store");
    let (driver, _driver_files) = made("job/own/driver");
    let (other, _other_files) = made("job/other/store");
    let node = world.node_tls();
    for (whose, port, at, is_served) in [
        (&node, Port::Worker, &worker, true),
        (&node, Port::Store, &store, true),
        (&store, Port::Store, &store, true),
        (&driver, Port::Store, &store, true),
        (&driver, Port::Worker, &worker, false),
        (&store, Port::Worker, &worker, false),
        // Whoever listens must be a worker or a store, and not only somebody.
        (&node, Port::Worker, &driver, false),
        (&node, Port::Worker, &node, false),
    ] {
        let server = ServerTls::new(at, port, Mode::Strict).expect("protected");
        let ((served, _), asked) = connect(&server, &ClientTls::new(whose, port)).await;
        let (whose, at) = (whose.identity(), at.identity());
        assert_eq!(served.is_ok() && asked.is_ok(), is_served, "{whose} at {port:?} of {at}");
    }
    // Nodes are of no job. Whoever is of one fetches nothing from another one, and gives nothing to it.
    let server = ServerTls::new(&other, Port::Store, Mode::Strict).expect("protected");
    for (whose, is_taken) in [(&node, true), (&store, false), (&driver, false), (&other, true)] {
        let client = ClientTls::new(whose, Port::Store).of_own_job();
        let (_, asked) = connect(&server, &client).await;
        assert_eq!(asked.is_ok(), is_taken, "{} at a store of another job", whose.identity());
    }
}

#[tokio::test]
async fn nothing_of_a_connection_serves_for_another_one() {
    let world = World::new();
    let (tls, one) = server(&world, Port::Client);
    let pair = world.clients.sign(&Wanted::operator());
    let config = stranger(&world.nodes, Some((vec![pair.der.clone()], pair.key())));
    for _ in 0..2 {
        // The client keeps what tickets it gets, and would use them.
        let ((served, accepted), asked) = connect_as(&one, config.clone()).await;
        served.unwrap();
        asked.unwrap();
        assert!(accepted.presented().proved().is_some(), "each proves itself anew");
    }
    assert_eq!(tls.handshakes().count(Port::Client, Outcome::Ok), 2);
}

#[tokio::test]
async fn plain_text_is_refused_where_it_is_strict_and_served_where_it_is_permissive() {
    let world = World::new();
    for (mode, is_served) in [(Mode::Strict, false), (Mode::Permissive, true)] {
        let tls = world.node_tls();
        let server = ServerTls::new(&tls, Port::Client, mode).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let mut accepted = server.accept(ours, None);
        theirs.write_all(b"PRI ").await.unwrap();
        assert_eq!(answer(&mut accepted).await.is_ok(), is_served);
        assert_eq!(counted(&tls, Port::Client), Outcome::Plain);
        assert!(accepted.presented().proved().is_none());
        if is_served {
            let mut heard = [0; 4];
            theirs.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"PRI ", "the byte that was looked at is there");
        }
        let client = ClientTls::new(&world.operator_tls(), Port::Client);
        let ((served, _), asked) = connect(&server, &client).await;
        served.unwrap();
        asked.unwrap();
    }
    assert!(ServerTls::new(&world.node_tls(), Port::Client, Mode::Off).is_none());
}

#[tokio::test]
async fn the_server_says_nothing_before_the_client_has() {
    let world = World::new();
    let (_, server) = server(&world, Port::Client);
    let (ours, mut theirs) = tokio::io::duplex(1 << 10);
    let mut accepted = server.accept(ours, None);
    assert!(tokio::time::timeout(SOON, accepted.write_all(b"settings")).await.is_err());
    assert!(tokio::time::timeout(SOON, theirs.read_u8()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn s5_a_handshake_that_stops_half_way_ends_in_time() {
    let world = World::new();
    // Nothing, and the beginning of a record.
    for begun in [&b""[..], &[0x16, 3, 1, 2, 0, 1]] {
        let (tls, server) = server(&world, Port::Client);
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let mut accepted = server.accept(ours, None);
        theirs.write_all(begun).await.unwrap();
        let read = tokio::time::timeout(HANDSHAKE_TIME * 2, accepted.read_u8()).await.expect("it ends");
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(counted(&tls, Port::Client), Outcome::Timeout);
    }
}

#[tokio::test]
async fn tls_1_2_is_taken_only_where_that_was_said() {
    let world = World::new();
    let pair = world.clients.sign(&Wanted { until: 2 * HOUR, ..Wanted::operator() });
    let older = || {
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(world.nodes.der.clone()).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![pair.der.clone()], pair.key())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    };
    let (_, server) = server(&world, Port::Client);
    assert!(connect_as(&server, older()).await.0.0.is_err());
    let ((served, accepted), asked) = connect_as(&server.also_older(), older()).await;
    served.unwrap();
    asked.unwrap();
    assert!(accepted.presented().proved().is_some());
}
