//! What is wrong with files is told with the file and what mends it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use tripod_proto::code::Code;
use tripod_tls::Tls;

use crate::support::{Authority, Wanted, World, put, put_pair};

#[test]
fn each_fault_names_its_file_and_what_mends_it() {
    let others = Authority::new("others");
    let spoil = |spoil: &dyn Fn(&World)| {
        let world = World::new();
        spoil(&world);
        let fault = Tls::read(world.node.path()).expect_err("refused");
        let text = fault.to_string().replace(&world.node.path().display().to_string(), "DIR");
        (fault.code(), text)
    };
    let signed = |wanted: Wanted| spoil(&|world| put_pair(world.node.path(), &world.nodes.sign(&wanted)));
    let file = |world: &World, name: &str, text: &str| put(world.node.path(), name, text);
    for (spoilt, code, words) in [
        (
            spoil(&|world| fs::remove_file(world.node.path().join("tls.key")).unwrap()),
            Code::TlsFile,
            "T1511 tls-file: DIR/tls.key is missing; next: make it by `tripod pki --help`, or copy it to DIR",
        ),
        (
            spoil(&|world| {
                fs::set_permissions(world.node.path().join("tls.key"), Permissions::from_mode(0o644))
                    .unwrap();
            }),
            Code::TlsFile,
            "DIR/tls.key has mode 0644: others may read the key; next: chmod 600 DIR/tls.key",
        ),
        (
            spoil(&|world| file(world, "tls.key", &world.nodes.sign(&Wanted::node("n1")).key_pem)),
            Code::TlsFile,
            "DIR/tls.key is not the key of DIR/tls.crt",
        ),
        (spoil(&|world| file(world, "tls.key", "none")), Code::TlsFile, "DIR/tls.key has no key"),
        (spoil(&|world| file(world, "tls.crt", "none")), Code::TlsFile, "DIR/tls.crt has no certificate"),
        (spoil(&|world| file(world, "ca.crt", "none")), Code::TlsFile, "DIR/ca.crt has no certificate"),
        (spoil(&|world| file(world, "crl.pem", "none")), Code::TlsFile, "DIR/crl.pem has no list"),
        (
            spoil(&|world| file(world, "ca.crt", &world.nodes.pem.repeat(9))),
            Code::TlsFile,
            "DIR/ca.crt has more than 8 roots",
        ),
        (
            spoil(&|world| file(world, "tls.crt", &"x".repeat((1 << 20) + 1))),
            Code::TlsFile,
            "DIR/tls.crt has more than 1048576 bytes",
        ),
        (
            spoil(&|world| file(world, "ca.crt", &others.pem)),
            Code::TlsFile,
            "DIR/tls.crt cannot be used: no root that is believed has signed the certificate",
        ),
        (
            signed(Wanted { until: -60, ..Wanted::node("n1") }),
            Code::TlsExpired,
            "T1512 tls-expired: DIR/tls.crt expired 6",
        ),
        (
            signed(Wanted { from: 60, ..Wanted::node("n1") }),
            Code::TlsExpired,
            "s; next: check this machine's clock",
        ),
        (
            signed(Wanted { uris: Vec::new(), ..Wanted::node("n1") }),
            Code::TlsFile,
            "DIR/tls.crt cannot be used: the certificate has no URI of SPIFFE",
        ),
    ] {
        assert!(spoilt.0 == code && spoilt.1.contains(words), "{spoilt:?}, and not {words}");
    }
}

#[test]
fn a_node_with_one_list_of_roots_believes_it_for_clients_too() {
    let world = World::new();
    fs::remove_file(world.node.path().join("client-ca.crt")).unwrap();
    assert!(Tls::read(world.node.path()).is_ok());
}
