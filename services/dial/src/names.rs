//! The addresses of names.

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::turns::Turns;

/// Names that are looked up at a time. Each takes a thread, for as long as the system's resolver likes.
const LOOKUPS_MAX: usize = 32;
/// Of these, for one asker.
const LOOKUPS_OF_ONE_MAX: usize = 4;
/// How long an answer is waited for.
const LOOKUP_TIME: Duration = Duration::from_secs(2);
/// Bytes of a name, as in the DNS.
const NAME_BYTES_MAX: usize = 253;
/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 16;

/// How a name's addresses are found; it may block.
pub type LookUp = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// Looks names up, a few at a time.
pub(crate) struct Names {
    look_up: LookUp,
    turns: Turns<String>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Names {
    pub(crate) fn new(look_up: LookUp) -> Self {
        Self { look_up, turns: Turns::new(LOOKUPS_MAX, LOOKUPS_OF_ONE_MAX) }
    }

    /// As this machine resolves names.
    pub(crate) fn of_system() -> Self {
        // The port is anyone: what is asked for is the addresses.
        Self::new(Arc::new(|name| Ok((name, 1).to_socket_addrs()?.map(|found| found.ip()).collect())))
    }

    /// The addresses of a name, each once, IPv4 first. `asker`: who is to wait if it asks for many.
    ///
    /// # Errors
    /// Why there are none, for people.
    pub(crate) async fn addresses(&self, name: &str, asker: String) -> Result<Vec<IpAddr>, String> {
        if name.len() > NAME_BYTES_MAX {
            return Err(format!("no name has {} bytes", name.len()));
        }
        let asked = async {
            let turn = self.turns.take(asker).await;
            let (look_up, name) = (Arc::clone(&self.look_up), name.to_owned());
            tokio::task::spawn_blocking(move || {
                let found = look_up(&name);
                // Not before the thread is free, whether or not somebody still waits.
                drop(turn);
                found
            })
            .await
        };
        let found =
            timeout(LOOKUP_TIME, asked).await.map_err(|_| format!("no answer within {LOOKUP_TIME:?}"))?;
        let found = found.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let mut addresses: Vec<IpAddr> = found.into_iter().map(|address| address.to_canonical()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(ADDRESSES_MAX);
        if addresses.is_empty() { Err("it has none".to_owned()) } else { Ok(addresses) }
    }
}
