//! Who proposes what: whom the connection has proved by which a call came, where its port asks for that.
//!
//! What a client's call proposes is proposed while the call is under way, and so is its connection known then. What this
//! node proposes of its own is no client's, and carries nobody's identity.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tripod_port::CallerConnection;
use tripod_state::Command;
use tripod_state::identity::Identity;

/// By the numbers of connections, of which no two of a process have the same. As many as are open and have called.
static KNOWN: RwLock<BTreeMap<u64, Arc<Identity>>> = RwLock::new(BTreeMap::new());

/// That it is known who calls by a connection, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Proposer {
    connection: u64,
}

impl Proposer {
    /// Whoever calls by the connection has proved to be what this path says; `None` if that is nobody for a log.
    pub(crate) fn of(connection: CallerConnection, path: &str) -> Option<Self> {
        let identity = Arc::new(Identity::of_path(path)?);
        let connection = connection.number();
        KNOWN.write().insert(connection, identity);
        Some(Self { connection })
    }
}

impl Drop for Proposer {
    fn drop(&mut self) {
        KNOWN.write().remove(&self.connection);
    }
}

/// The command as whoever makes the present call proposes it.
pub(crate) fn signed(command: Command) -> Command {
    let present = CallerConnection::current().and_then(|connection| {
        let known = KNOWN.read();
        known.get(&connection.number()).map(|identity| Identity::clone(identity))
    });
    match present {
        Some(identity) => command.by(identity),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use tripod_port::CallerAddress;
    use tripod_state::ids::JobId;
    use tripod_state::{Scope, kv};

    use super::*;

    fn delete() -> Command {
        let scope = Scope { job: JobId(1), service: None };
        Command::Kv(kv::Command::Delete { scope, key: "k".to_owned() })
    }

    #[tokio::test]
    async fn a_command_carries_who_calls_by_its_connection_and_nobody_elsewhere() {
        let [agent, other] = [(); 2].map(|()| CallerConnection::from(CallerAddress::default()));
        let proposer = Proposer::of(agent, "job/train/agent").expect("it is one");
        let by_agent = delete().by(Identity::Agent("train".into()));
        assert_eq!(agent.scope(async { signed(delete()) }).await, by_agent);
        assert_eq!(other.scope(async { signed(delete()) }).await, delete(), "of whom nothing is known");
        assert_eq!(signed(delete()), delete(), "this node's own");
        drop(proposer);
        assert_eq!(agent.scope(async { signed(delete()) }).await, delete(), "it is over");
        assert!(Proposer::of(agent, "listener/train").is_none());
    }
}
