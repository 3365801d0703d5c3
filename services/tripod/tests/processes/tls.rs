//! Connections of nodes that use TLS: who is let in, and how certificates are replaced. Numbers as in `s20` are those of the table of attacks on connections.

use std::fs;
use std::process::{Command, Output, Stdio};

use tripod_wait::until_blocking;

use crate::site::{NODES, Site};
use crate::support::{reserve_ports, seconds, stderr};

/// What `openssl` makes of a client port.
fn openssl(site: &Site<'_>, arguments: &[&str]) -> Option<Output> {
    let run = Command::new("openssl")
        .args(["s_client", "-connect", &site.address(1, 0), "-CAfile", "ann/ca.crt", "-verify_return_error"])
        .args(["-alpn", "h2"])
        .args(arguments)
        .current_dir(site.place)
        .stdin(Stdio::null())
        .output();
    run.ok()
}

#[test]
fn s20_s21_strict_nodes_serve_an_operator_and_nobody_else_and_survive_their_leader() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    site.start_strict();
    site.works(Some("ann"), "first");

    let plain = site.run(None, &["kv", "get", "key", "--timeout", &seconds(2.0)]);
    assert_eq!(plain.status.code(), Some(3), "{}", stderr(&plain));
    site.says(1, &["code=T1515", "outcome=\"plain\"", "port=\"client\""]);
    let stranger = site.run(Some("eve"), &["kv", "get", "key", "--timeout", &seconds(2.0)]);
    let told = stderr(&stranger);
    assert!(
        told.contains("error: T1513 tls-refused: ") && told.contains("no root that it believes"),
        "{told}"
    );
    assert_eq!(stranger.status.code(), Some(3));
    site.says(1, &["code=T1515", "outcome=\"unknown_ca\""]);
    // Whoever does not believe the nodes does not speak to them.
    site.pki(&["operator", "eve", "--ca", "ca-of-others", "--out", "mallory"]);
    let told = stderr(&site.run(Some("mallory"), &["kv", "get", "key", "--timeout", &seconds(2.0)]));
    assert!(told.contains("not signed by a root of ca.crt"), "{told}");

    if let Some(older) = openssl(&site, &["-tls1_2"]) {
        assert!(!older.status.success(), "{}", String::from_utf8_lossy(&older.stdout));
        let known =
            openssl(&site, &["-tls1_3", "-cert", "ann/tls.crt", "-key", "ann/tls.key"]).expect("there");
        let shown = String::from_utf8_lossy(&known.stdout);
        assert!(
            shown.contains("ALPN protocol: h2") && shown.contains("Verify return code: 0 (ok)"),
            "{shown}"
        );
    }

    let leader = site.leader();
    site.kill(leader);
    site.works(Some("ann"), "second");
}

#[test]
fn s22_a_node_with_the_certificate_of_another_one_takes_no_part() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    site.start_strict();
    site.works(Some("ann"), "first");
    site.kill(3);
    // A stolen certificate of node 2, at the place of node 3.
    site.start(3, &["--tls-dir", "n2"]);
    site.says(1, &["code=T1513", "certificate of node n2", "not one of host 127.0.0.3"]);
    site.works(Some("ann"), "second");
    site.kill(3);
    site.start(3, &["--tls-dir", "n3"]);
    // The other one is needed no more.
    site.kill(2);
    site.works(Some("ann"), "third");
}

#[test]
fn s24_certificates_are_replaced_while_nodes_serve_and_bad_ones_are_not_taken() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    site.start_strict();
    site.works(Some("ann"), "first");
    for node in NODES {
        site.certify(node, &format!("n{node}"));
        site.hang_up(node);
        site.says(node, &["new certificates taken", "serial="]);
        site.works(Some("ann"), &format!("with {node}"));
    }
    fs::copy(site.file("n2/tls.key"), site.file("n1/tls.key")).expect("copied");
    site.hang_up(1);
    site.says(1, &["code=T1514", "is not the key of"]);
    site.works(Some("ann"), "last");
}

#[test]
fn s21_who_is_revoked_by_name_is_refused_by_every_node_and_others_are_not() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    site.pki(&["operator", "bob", "--ca", "ca", "--out", "bob"]);
    // A node whose key never was where the issuers are.
    let (host, dir) = (Site::host(3), "n3-by-request");
    site.pki(&["node", "n3", "--host", &host, "--out", dir, "--csr", "n3.csr"]);
    site.pki(&["node", "n3", "--host", &host, "--out", "signed", "--csr", "n3.csr", "--ca", "ca"]);
    for name in ["tls.crt", "ca.crt", "client-ca.crt"] {
        fs::copy(site.file("signed").join(name), site.file(dir).join(name)).expect("copied");
    }
    for (node, directory) in [(1, "n1"), (2, "n2"), (3, dir)] {
        site.start(node, &["--tls-dir", directory]);
    }
    site.works(Some("ann"), "first");
    site.works(Some("bob"), "second");

    let lists = format!("n1/crl.pem,n2/crl.pem,{dir}/crl.pem");
    site.pki(&["crl", "--ca", "ca", "--revoke", "operator/bob", "--out", &lists]);
    site.all_take(1);
    let told = site.refusal("bob");
    assert!(told.contains("T1513 tls-refused") && told.contains("it is revoked"), "{told}");
    for node in NODES {
        let at = site.address(node, 0);
        let one = ["kv", "get", "key", "--timeout", &seconds(2.0), "--endpoints", &at];
        let output = site.run(Some("bob"), &one);
        assert!(stderr(&output).contains("it is revoked"), "node {node}: {}", stderr(&output));
        site.says(node, &["code=T1515", "outcome=\"revoked\""]);
    }
    site.writes("ann", "third");
    // Whoever is made anew after that is somebody else.
    site.pki(&["operator", "bob", "--ca", "ca", "--out", "bob"]);
    site.writes("bob", "fourth");
}

#[test]
fn s25_issuers_are_replaced_in_three_steps_while_leaders_die() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    site.pki(&["init", "ca-new", "--cluster", "prod"]);
    site.start_strict();
    site.works(Some("ann"), "before");
    fs::create_dir(site.file("ann-old")).expect("made");
    let copy = |from: String, to: String| {
        fs::copy(site.place.join(from), site.place.join(to)).map(drop).expect("copied");
    };
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        copy(format!("ann/{name}"), format!("ann-old/{name}"));
    }
    let roots = |issuers: &[&str], signer: &str| -> String {
        issuers
            .iter()
            .map(|issuer| fs::read_to_string(place.path().join(issuer).join(signer)).expect("text"))
            .collect()
    };
    let believe = |issuers: &[&str]| {
        for directory in ["n1", "n2", "n3", "ann"] {
            fs::write(place.path().join(directory).join("ca.crt"), roots(issuers, "peer-ca.crt"))
                .expect("written");
        }
        for directory in ["n1", "n2", "n3"] {
            let file = place.path().join(directory).join("client-ca.crt");
            fs::write(file, roots(issuers, "client-ca.crt")).expect("written");
        }
    };
    // 1. Everybody believes both.
    believe(&["ca", "ca-new"]);
    site.all_take(1);
    site.writes("ann", "both are believed");
    // 2. Certificates are made anew by the new one.
    for node in NODES {
        let (name, host, out) = (format!("n{node}"), Site::host(node), format!("new-{node}"));
        site.pki(&["node", &name, "--ca", "ca-new", "--host", &host, "--out", &out]);
        for file in ["tls.key", "tls.crt"] {
            fs::copy(site.file(&out).join(file), site.file(&name).join(file)).expect("copied");
        }
        site.writes("ann", &format!("before node {node} has its new one"));
    }
    site.all_take(2);
    let leader = site.leader();
    site.kill(leader);
    site.writes("ann", "by an old certificate to new ones");
    site.start(leader, &["--tls-dir", &format!("n{leader}")]);
    site.pki(&["operator", "ann", "--ca", "ca-new", "--out", "ann-new"]);
    for file in ["tls.key", "tls.crt"] {
        fs::copy(site.file("ann-new").join(file), site.file("ann").join(file)).expect("copied");
    }
    site.writes("ann", "by a new certificate");
    // 3. Nobody believes the old one.
    believe(&["ca-new"]);
    site.all_take(3);
    until_blocking("the old certificate to be refused", || {
        let output = site.run(Some("ann-old"), &["kv", "get", "key", "--timeout", &seconds(2.0)]);
        (!output.status.success()).then_some(())
    });
    let leader = site.leader();
    site.kill(leader);
    site.writes("ann", "after");
}

#[test]
fn s50_a_cluster_goes_from_plain_text_to_tls_node_by_node() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    for node in NODES {
        site.start(node, &[]);
    }
    site.works(None, "plain");
    for mode in ["permissive", "strict"] {
        for node in NODES {
            site.kill(node);
            let modes = ["--peer-tls", "--client-tls", "--http-tls"].map(|flag| format!("{flag}={mode}"));
            let directory = format!("n{node}");
            let mut flags = vec!["--tls-dir", &directory];
            flags.extend(modes.iter().map(String::as_str));
            site.start(node, &flags);
            // Whoever speaks plain text is served until no node takes it any more, and whoever speaks TLS by those that do.
            if mode == "permissive" {
                site.works(None, &format!("plain {node}"));
            }
            site.works(Some("ann"), &format!("{mode} {node}"));
        }
    }
    let plain = site.run(None, &["kv", "get", "key", "--timeout", &seconds(2.0)]);
    assert_eq!(plain.status.code(), Some(3), "{}", stderr(&plain));
}
