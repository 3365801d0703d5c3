//! Telling the cluster what this node's certificate calls it, so that no other certificate is taken for this node's.

use std::time::{Duration, Instant};

use tripod_gateway::{Consistency, Gateway};
use tripod_identity::Kind;
use tripod_proto::code::Code;
use tripod_state::ids::{CertificateName, NodeId};
use tripod_state::member::Refusal;
use tripod_state::{Command, Fault, State, member};
use tripod_tls::Tls;

use crate::failure::Failure;

/// Between two looks at whether the cluster knows it. The feature level may be raised at any time, and one that is lowered
/// makes the cluster forget it.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A refusal stays one until somebody has done something.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Tells it whenever the cluster can know it and does not. Ends for a process that is no node's.
pub(crate) async fn run(gateway: Gateway, node: NodeId, tls: Tls) {
    let Kind::Node(name) = tls.identity().kind else { return };
    let name = CertificateName::from(name.as_str());
    let mut warned: Option<Instant> = None;
    loop {
        let told = tell(&gateway, node, &name).await;
        let is_due = warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if let (Err(failure), true) = (told, is_due) {
            tracing::warn!(%failure, "the cluster does not know this node by its certificate");
            warned = Some(Instant::now());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn tell(gateway: &Gateway, node: NodeId, name: &CertificateName) -> Result<(), Failure> {
    let command = Command::Member(member::Command::Bind { node, name: name.clone() });
    let look = |state: &State| (state.too_early(&command).is_none(), state.certificate_name(node).cloned());
    match gateway.read(Consistency::Local, look).await? {
        (false, _) => return Ok(()),
        (true, Some(bound)) if bound == *name => return Ok(()),
        // Its peers let nothing of it through, so the leader would not hear it.
        (true, Some(bound)) => return Err(refused(node, name, &Refusal::NameBound { node, bound })),
        (true, None) => {}
    }
    match gateway.submit(command).await? {
        Ok(_) => Ok(()),
        // It is told so by its peers, and ends; or it is tried again when the level is raised.
        Err(Fault::Member(Refusal::NodeRemoved { .. }) | Fault::Level(_)) => Ok(()),
        Err(Fault::Member(refusal)) => Err(refused(node, name, &refusal)),
        Err(fault) => Err(Failure::new(Code::Refused, fault.text())),
    }
}

fn refused(node: NodeId, name: &CertificateName, refusal: &Refusal) -> Failure {
    let text = match refusal {
        Refusal::NameBound { bound, .. } => format!(
            "this certificate is of node/{name}, and node {node} is known by that of node/{bound}: its peers refuse it; \
             next: give it a certificate of node/{bound}, or put another node in its place: `tripod member replace \
             {node} HOST:PORT`"
        ),
        Refusal::NameTaken { node: other, .. } => format!(
            "this certificate is of node/{name}, by which node {other} is known, so node {node} is known by none; next: \
             give it a certificate of its own: `tripod pki node NAME`"
        ),
        refusal => format!("the name of this certificate, node/{name}, was refused: {refusal:?}"),
    };
    Failure::new(Code::NodeName, text)
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{LogIndex, Term, TimeMs};
    use tripod_state::member::Listed;
    use tripod_state::{ApplyContext, Envelope, level};

    use super::*;

    /// Two nodes at the newest level, and what node 2 says of its certificate after node 1 has.
    fn second_says(first: &str, second: &str) -> Result<(), Refusal> {
        let mut state = State::default();
        let listed = [1, 2].map(|node| Listed { node: NodeId(node), peer: format!("h:{node}"), voter: true });
        state.follow_members(&listed);
        let heard = vec![NodeId(1), NodeId(2)];
        let raise = Command::Level(level::Command::Raise { to: level::NEWEST, heard });
        let bind = |node, name: &str| {
            Command::Member(member::Command::Bind { node: NodeId(node), name: name.into() })
        };
        let mut said = Ok(());
        for (index, command) in [(1, raise), (2, bind(1, first)), (3, bind(2, second))] {
            let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(1) };
            said = match state.apply(&context, Envelope { stamp: None, command }).reply {
                Ok(_) => Ok(()),
                Err(Fault::Member(refusal)) => Err(refusal),
                Err(fault) => panic!("{fault:?}"),
            };
        }
        said
    }

    #[test]
    fn a_refusal_says_what_to_do_next() {
        assert_eq!(second_says("n1", "n2"), Ok(()));
        let taken = second_says("n1", "n1").expect_err("it is node 1's");
        let failure = refused(NodeId(2), &"n1".into(), &taken).to_string();
        assert!(
            failure.starts_with("T4207 node-name: ") && failure.contains("by which node 1 is known"),
            "{failure}"
        );
        let bound = Refusal::NameBound { node: NodeId(2), bound: "n2".into() };
        let failure = refused(NodeId(2), &"x".into(), &bound).to_string();
        assert!(failure.contains("next: give it a certificate of node/n2"), "{failure}");
        assert!(failure.contains("`tripod member replace 2 HOST:PORT`"), "{failure}");
    }
}
