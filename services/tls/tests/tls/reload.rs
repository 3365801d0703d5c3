//! Files are replaced while connections come.

use tripod_proto::code::Code;
use tripod_tls::{ClientTls, Mode, Outcome, Port, ServerTls};

use crate::support::{Authority, Wanted, World, connect, connect_as, counted, put, put_pair, stranger};

#[tokio::test]
async fn s24_new_certificates_are_taken_and_bad_ones_are_not() {
    let world = World::new();
    let tls = world.node_tls();
    let server = ServerTls::new(&tls, Port::Client, Mode::Strict).unwrap();
    let client = ClientTls::new(&world.operator_tls(), Port::Client);
    let works = async || {
        let ((served, _), asked) = connect(&server, &client).await;
        served.and(asked).is_ok()
    };
    assert_eq!(tls.reload(), Ok(false), "nothing is new");
    for serial in 10..30 {
        put_pair(world.node.path(), &world.nodes.sign(&Wanted { serial, ..Wanted::node("n1") }));
        assert_eq!(tls.reload(), Ok(true));
        assert_eq!(tls.serial(), format!("{serial:02x}"));
        assert!(works().await);
    }
    let last = tls.serial();
    let good = world.nodes.sign(&Wanted { serial: 40, ..Wanted::node("n1") });
    // Half of a pair, as it stands there between two writes.
    put(world.node.path(), "tls.crt", &good.pem);
    assert_eq!(tls.reload().map_err(|fault| fault.code()), Err(Code::TlsFile));
    put_pair(world.node.path(), &world.nodes.sign(&Wanted { until: -60, ..Wanted::node("n1") }));
    assert_eq!(tls.reload().map_err(|fault| fault.code()), Err(Code::TlsExpired));
    put_pair(world.node.path(), &world.nodes.sign(&Wanted::node("n2")));
    assert_eq!(tls.reload().map_err(|fault| fault.code()), Err(Code::TlsFile), "another node's");
    assert_eq!((tls.reload_failures(), tls.serial()), (3, last));
    assert!(works().await, "the last good one is used on");
    put_pair(world.node.path(), &good);
    assert_eq!((tls.reload(), tls.serial()), (Ok(true), "28".to_owned()));
    assert!(works().await);
}

#[tokio::test]
async fn s21_a_list_that_is_replaced_counts_from_the_next_connection_on() {
    let world = World::new();
    let tls = world.node_tls();
    let server = ServerTls::new(&tls, Port::Client, Mode::Strict).unwrap();
    let client = ClientTls::new(&world.operator_tls(), Port::Client);
    let works = async || {
        let ((served, _), asked) = connect(&server, &client).await;
        served.and(asked).is_ok()
    };
    let serial = Wanted::operator().serial;
    for (revoked, served) in [(serial + 1, true), (serial, false), (serial + 2, true)] {
        put(world.node.path(), "crl.pem", &world.clients.revoking(revoked));
        assert_eq!((tls.reload(), tls.reload()), (Ok(true), Ok(false)), "by content");
        assert_eq!(works().await, served, "{revoked} is revoked");
    }
    // A list that cannot be read does not revoke nobody.
    put(world.node.path(), "crl.pem", &world.clients.revoking(serial));
    assert_eq!(tls.reload(), Ok(true));
    put(world.node.path(), "crl.pem", "-----BEGIN X509 CRL-----\nnone\n-----END X509 CRL-----\n");
    assert_eq!(tls.reload().map_err(|fault| fault.code()), Err(Code::TlsFile));
    assert!(!works().await);
    // One of an issuer that nobody believes says nothing.
    put(world.node.path(), "crl.pem", &Authority::new("others").revoking(serial));
    assert_eq!(tls.reload(), Ok(true));
    assert!(works().await);
}

#[tokio::test]
async fn s25_lists_of_an_issuer_and_of_its_replacement_of_the_same_name_revoke_what_each_has_signed() {
    let world = World::new();
    let newer = Authority::new("clients");
    put(world.node.path(), "client-ca.crt", &format!("{}{}", world.clients.pem, newer.pem));
    let (of_old, of_new) = (world.clients.revoking(7), newer.revoking(8));
    let both = format!("{of_old}{of_new}");
    let turned = format!("{of_new}{of_old}");
    for (lists, revoked) in
        [(&of_old, (true, false)), (&of_new, (false, true)), (&both, (true, true)), (&turned, (true, true))]
    {
        put(world.node.path(), "crl.pem", lists);
        let outcome = |revoked| if revoked { Outcome::Revoked } else { Outcome::Ok };
        for (issuer, serial, expected) in [
            (&world.clients, 7, outcome(revoked.0)),
            (&world.clients, 8, Outcome::Ok),
            (&newer, 7, Outcome::Ok),
            (&newer, 8, outcome(revoked.1)),
        ] {
            let tls = world.node_tls();
            let server = ServerTls::new(&tls, Port::Client, Mode::Strict).unwrap();
            let pair = issuer.sign(&Wanted { serial, ..Wanted::operator() });
            let config = stranger(&world.nodes, Some((vec![pair.der.clone()], pair.key())));
            let ((served, _), _) = connect_as(&server, config).await;
            assert_eq!(served.is_ok(), expected == Outcome::Ok, "{serial}: {served:?}");
            assert_eq!(counted(&tls, Port::Client), expected, "{serial}");
        }
    }
}
