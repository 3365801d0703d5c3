//! Who proposes what: whom a call's certificate or token has proved to call, where its port asks for that.
//!
//! What a client's call proposes is proposed while the call is under way, and so it is known then who makes it. What this
//! node proposes of its own is no client's, and carries nobody's identity.

use tripod_gate::Caller;
use tripod_identity::Kind;
use tripod_port::Speaker;
use tripod_state::Command;
use tripod_state::identity::Identity;
use tripod_state::ids::TaskId;

/// Has what a call of this caller proposes say who proposed it; `None` if it has proved nothing.
pub(crate) fn speaker(caller: &Caller) -> Option<Speaker> {
    match caller {
        Caller::Proved { identity, .. } => Some(Speaker::of(of_log(&identity.kind))),
        Caller::Anonymous | Caller::Legacy | Caller::Ungranted(_) | Caller::Listener(_) => None,
    }
}

/// The command as whoever makes the present call proposes it.
pub(crate) fn signed(command: Command) -> Command {
    match Speaker::present::<Identity>() {
        Some(identity) => command.by(Identity::clone(&identity)),
        None => command,
    }
}

/// An identity of this cluster, as its log has it.
fn of_log(kind: &Kind) -> Identity {
    match kind {
        Kind::Node(name) => Identity::Node(name.as_str().into()),
        Kind::Operator(name) => Identity::Operator(name.as_str().into()),
        Kind::Viewer(name) => Identity::Viewer(name.as_str().into()),
        Kind::Agent(job) => Identity::Agent(job.as_str().into()),
        Kind::Task { job, number } => {
            Identity::Task { job: job.as_str().into(), task: number.map(|number| TaskId(number.get())) }
        }
        Kind::Driver(job) => Identity::Driver(job.as_str().into()),
        Kind::Worker(job) => Identity::Worker(job.as_str().into()),
        Kind::Store(job) => Identity::Store(job.as_str().into()),
    }
}

#[cfg(test)]
mod tests {
    use tripod_port::CallerConnection;
    use tripod_state::ids::JobId;
    use tripod_state::{Scope, kv};

    use super::*;

    fn delete() -> Command {
        let scope = Scope { job: JobId(1), service: None };
        Command::Kv(kv::Command::Delete { scope, key: "k".to_owned() })
    }

    fn of(path: &str) -> Caller {
        Caller::by_path(format!("spiffe://example.org/tripod/main/{path}").parse().expect("it is one"))
    }

    #[tokio::test]
    async fn a_command_carries_who_makes_its_call_and_nobody_elsewhere() {
        let connection = CallerConnection::default();
        let agent = speaker(&of("job/train/agent")).expect("it is proved");
        let by_agent = delete().by(Identity::Agent("train".into()));
        assert_eq!(agent.scope(connection, async { signed(delete()) }).await, by_agent);
        // Another call by the same connection, of which that is not known.
        assert_eq!(connection.scope(async { signed(delete()) }).await, delete());
        assert_eq!(signed(delete()), delete(), "this node's own");
    }

    #[test]
    fn whoever_can_prove_something_has_the_same_path_in_the_log_and_others_have_none() {
        for path in [
            "node/n1",
            "operator/ann",
            "viewer/victor",
            "job/train/agent",
            "job/train/task",
            "job/train/task/2147483647",
            "job/train/driver",
            "job/train/worker",
            "job/train/store",
        ] {
            let Caller::Proved { identity, .. } = of(path) else { panic!("{path} is proved") };
            let of_log = of_log(&identity.kind);
            assert_eq!(of_log.to_string(), path);
            assert_eq!(of_log.check(), Ok(()), "{path}");
        }
        let listener = Caller::Listener("train".parse().expect("it is a name"));
        for nobody in [Caller::Anonymous, Caller::Legacy, listener] {
            assert!(speaker(&nobody).is_none(), "{nobody}");
        }
    }
}
