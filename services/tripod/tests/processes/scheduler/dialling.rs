//! Whom the nodes connect to, and who may say so.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Dev, reserve_ports, tripod};

/// A store, which comes from 127.0.0.1 and says that it is elsewhere.
struct Store(Child);

impl Store {
    fn start(node: &str, directory: &Path, advertise: &str) -> Self {
        let process = tripod()
            .args(["objstore", "--exit-with-parent", "--json", "--endpoints", node, "--advertise", advertise])
            .arg("--directory")
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        Self(process)
    }

    /// What it prints when it is registered; if it is refused, the reason.
    fn registered(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("readable");
        if line.is_empty() {
            let mut told = String::new();
            self.0.stderr.as_mut().expect("piped").read_to_string(&mut told).expect("readable");
            return Err(told);
        }
        Ok(serde_json::from_str(&line).expect("one line of JSON"))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With a list that does not have them, other addresses of this machine stand for other machines.
#[test]
fn a_store_that_names_somebody_elses_address_is_refused_by_every_node_and_its_own_is_taken() {
    let (data, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let dev = Dev::start(&ports, &data.path().join("nodes"), &["--dial-allow=10.0.0.0/8"]);
    let trap = TcpListener::bind("127.0.0.2:0").expect("a port");
    trap.set_nonblocking(true).expect("set");
    let elsewhere = trap.local_addr().expect("bound").to_string();
    for place in 0..3 {
        let node = format!("127.0.0.1:{}", dev.port + place);
        let mut stranger = Store::start(&node, &data.path().join(format!("stranger-{place}")), &elsewhere);
        let refused = stranger.registered().expect_err("it is refused");
        for part in ["T6305", &elsewhere[..9], "from 127.0.0.1", "--dial-allow"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
    assert!(trap.accept().is_err(), "nobody came");
    let own = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = own.local_addr().expect("bound").to_string();
    let mut store = Store::start(&dev.endpoints(1), &data.path().join("own"), &address);
    assert_eq!(store.registered().expect("it is taken")["address"], address.as_str());
    dev.end();
}
