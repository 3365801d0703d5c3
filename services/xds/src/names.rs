//! The addresses behind the host names that nodes announce. A client of xDS takes IP addresses only.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// How often names are looked up again: a node that is started on another machine keeps its name.
const EVERY: Duration = Duration::from_secs(5);
/// How long a look-up may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of host names.
pub(crate) struct Names {
    known: BTreeMap<String, Known>,
    due: Instant,
}

/// What is known of one name.
#[derive(Default)]
struct Known {
    /// The last that were found, ascending.
    addresses: Vec<IpAddr>,
    failing: bool,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { known: BTreeMap::new(), due: Instant::now() }
    }

    /// The addresses of a host (a name, or an address as it is written in a URL), as far as they are known.
    pub(crate) fn addresses(&self, host: &str) -> Vec<IpAddr> {
        match literal(host) {
            Some(address) => vec![address],
            None => self.known.get(host).map(|known| known.addresses.clone()).unwrap_or_default(),
        }
    }

    /// Looks up the names among `hosts` whenever it is time, and resolves when an answer has changed. Never
    /// resolves if there are no names. Dropping the future loses nothing.
    pub(crate) async fn changed(&mut self, hosts: &BTreeSet<String>) {
        let names: Vec<_> = hosts.iter().filter(|host| literal(host).is_none()).collect();
        if names.is_empty() {
            return std::future::pending().await;
        }
        self.known.retain(|name, _| hosts.contains(name));
        loop {
            let unknown = names.iter().any(|name| !self.known.contains_key(*name));
            if !unknown {
                tokio::time::sleep_until(self.due).await;
            }
            let mut changed = false;
            for name in &names {
                let found = look_up(name).await;
                changed |= self.known.entry((*name).clone()).or_default().learn(name, found);
            }
            self.due = Instant::now() + EVERY;
            if changed {
                return;
            }
        }
    }
}

impl Known {
    /// Takes in an answer; tells whether it is another one than before. A name that cannot be found for
    /// once keeps its addresses.
    fn learn(&mut self, name: &str, found: io::Result<Vec<IpAddr>>) -> bool {
        match found {
            Ok(addresses) => {
                self.failing = false;
                let changed = self.addresses != addresses;
                self.addresses = addresses;
                changed
            }
            Err(error) => {
                if !self.failing {
                    tracing::warn!(
                        host = name,
                        %error,
                        "host name of a node has no address for xds clients; announce an address instead"
                    );
                }
                self.failing = true;
                false
            }
        }
    }
}

/// An address, with or without the brackets that stand around it in front of a port.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The addresses of a name, ascending, so that all nodes tell the same.
async fn look_up(name: &str) -> io::Result<Vec<IpAddr>> {
    let asked = tokio::time::timeout(PATIENCE, tokio::net::lookup_host((name, 0))).await;
    let found = asked.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))??;
    // A machine may know its own name as a loopback address, which is another machine to everybody else.
    let addresses: BTreeSet<_> =
        found.map(|found| found.ip()).filter(|ip| name == "localhost" || !ip.is_loopback()).collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "only loopback addresses"));
    }
    Ok(addresses.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn names_are_looked_up_and_addresses_are_not() {
        let mut names = Names::new();
        assert_eq!(names.addresses("10.0.0.1"), ["10.0.0.1".parse::<IpAddr>().expect("an address")]);
        assert_eq!(names.addresses("[::1]"), ["::1".parse::<IpAddr>().expect("an address")]);
        let literals = BTreeSet::from(["10.0.0.1".to_owned(), "[::1]".to_owned()]);
        assert!(names.changed(&literals).now_or_never().is_none());

        let hosts = BTreeSet::from(["localhost".to_owned(), "10.0.0.1".to_owned()]);
        assert!(names.addresses("localhost").is_empty(), "not looked up yet");
        tripod_wait::within("an answer", names.changed(&hosts)).await;
        assert!(names.addresses("localhost").iter().all(IpAddr::is_loopback));
        assert!(!names.addresses("localhost").is_empty());
    }

    #[test]
    fn a_name_that_cannot_be_found_for_once_keeps_its_addresses() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let failure = || Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        let mut known = Known::default();
        assert!(!known.learn("node-1", failure()));
        assert!(known.learn("node-1", Ok(vec![address("10.0.0.1")])));
        assert!(!known.learn("node-1", failure()));
        assert_eq!(known.addresses, [address("10.0.0.1")]);
        assert!(!known.learn("node-1", Ok(vec![address("10.0.0.1")])));
        assert!(known.learn("node-1", Ok(vec![address("10.0.0.2")])));
    }
}
