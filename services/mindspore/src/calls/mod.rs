//! Calls to nodes of a parameter server: the connection that their protocol has its scheduler open.
//!
//! A node is told one thing at a time, on a connection that is kept for as long as it is one of its cluster's, and says the
//! same back. What it says is matched by the number of the request; of a payload only so much is kept as somebody looks at.
//!
//! | module | holds |
//! |---|---|
//! | `dial` | how a connection is made |
//! | `call` | what a node is told, as bytes |
//! | `contents` | from an order of the state to what the node is told |
//! | `answers` | frames as they come from a node |
//! | `connection` | a connection, and the numbers of its requests |
//! | `turns` | how many calls are under way |
//! | `failed` | why a node was not told |

mod answers;
mod call;
mod connection;
mod contents;
mod dial;
mod failed;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use self::turns::Turns;

pub(crate) use self::answers::Answer;
pub(crate) use self::call::{Call, Query};
pub(crate) use self::connection::Connection;
pub(crate) use self::contents::Contents;
pub(crate) use self::failed::Failed;
pub(crate) use self::turns::Standing;

pub(crate) use self::dial::by;
pub use self::dial::{Bytestream, Dial, Dialling};

/// How long a connection may take to be made, with the turns of those before it.
const DIAL_TIME: Duration = Duration::from_secs(5);

/// Makes connections to nodes, a bounded number of calls at a time. Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct Calls {
    dial: Dial,
    turns: Arc<Turns>,
}

impl Calls {
    pub(crate) fn new(dial: Dial) -> Self {
        Self { dial, turns: Arc::default() }
    }

    /// Waits until one more call may be under way, which it is until the result is dropped.
    pub(crate) async fn turn(&self, standing: Standing) -> OwnedSemaphorePermit {
        self.turns.take(standing).await
    }

    /// Connects to a node.
    ///
    /// # Errors
    /// [`Failed`]: nothing was sent.
    pub(crate) async fn connect(&self, address: &str) -> Result<Connection, Failed> {
        match tokio::time::timeout(DIAL_TIME, (self.dial)(address.to_owned())).await {
            Ok(Ok(stream)) => Ok(Connection::over(stream)),
            Ok(Err(error)) => Err(Failed::to_connect(error)),
            Err(_) => Err(Failed::Unreached(std::io::ErrorKind::TimedOut.into())),
        }
    }
}

/// Where a node listens, as addresses are written.
pub(crate) fn address(ip: &str, port: u32) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tripod_dial::{Allow, Dialler, Rule};

    use super::*;

    #[test]
    fn an_address_of_either_kind_is_written_so_that_its_port_is_found() {
        assert_eq!(address("10.0.0.7", 40_053), "10.0.0.7:40053");
        assert_eq!(address("fd00::7", 1), "[fd00::7]:1");
    }

    #[tokio::test]
    async fn whom_a_node_must_not_connect_to_is_told_from_who_is_not_there() {
        let rule = Rule { allow: Allow::Own, flag: "--dial-allow", here_only: false };
        let calls = Calls::new(by(&Dialler::new(rule)));
        let refused = calls.connect("169.254.169.254:80").await.err();
        let why = refused.map(|failed| failed.to_string()).unwrap_or_default();
        assert!(why.starts_with("T6305 dial-refused"), "{why}");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let (connected, accepted) = tokio::join!(calls.connect(&place), listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
        drop(listener);
        assert!(matches!(calls.connect(&place).await.err(), Some(Failed::Unreached(_))));
    }
}
