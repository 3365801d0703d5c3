//! Who says something of a node: only that node itself, by the certificate that it is about.

use tonic::Request;
use tripod_proto::code::Code;
use tripod_state::Command;
use tripod_state::ids::NodeId;
use tripod_tls::Presented;

use super::seldom::Seldom;
use crate::base::error::ProposeError;
use crate::peers::auth;
use crate::peers::proof::PeerConnection;

/// Whoever makes a call, as far as its connection has proved that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Teller {
    node: Option<u64>,
    /// What its certificate calls it.
    name: Option<String>,
    refusals: Seldom,
}

impl Teller {
    /// `refusals`: when one is told. Whoever is refused tries again several times a second.
    pub(crate) fn of<T>(request: &Request<T>, refusals: &Seldom) -> Self {
        let connection = request.extensions().get::<PeerConnection>();
        let presented = connection.and_then(|connection| connection.presented.as_ref());
        let name = presented.and_then(Presented::proved).and_then(|proved| proved.node());
        let node = auth::source_of(request.metadata());
        Self { node, name: name.map(str::to_owned), refusals: refusals.clone() }
    }

    /// Whether it may say what a command says of a node's certificate.
    ///
    /// # Errors
    /// It is another node, or has another certificate, or none.
    pub(crate) fn may_bind(&self, command: &Command) -> Result<(), ProposeError> {
        let Some((node, name)) = command.binds() else { return Ok(()) };
        if self.node.map(NodeId) == Some(node) && self.name.as_deref() == Some(name.as_str()) {
            return Ok(());
        }
        let code = Code::NodeName;
        if self.refusals.is_due() {
            tracing::warn!(code = %format_args!("T{}", code.number()), %node, "a peer says what another node's certificate is");
        }
        Err(ProposeError::NoLeader(format!(
            "{code}: only node {node} itself says what its certificate calls it"
        )))
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::member;

    use super::*;

    #[test]
    fn s22_a_node_says_its_own_certificates_name_and_nobody_elses() {
        let bind = Command::Member(member::Command::Bind { node: NodeId(3), name: "n3".into() });
        let may = |node: Option<u64>, name: Option<&str>| {
            Teller { node, name: name.map(str::to_owned), refusals: Seldom::default() }
                .may_bind(&bind)
                .is_ok()
        };
        assert!(may(Some(3), Some("n3")));
        for (node, name) in
            [(Some(2), Some("n3")), (Some(3), Some("n2")), (Some(3), None), (None, Some("n3"))]
        {
            assert!(!may(node, name), "{node:?} {name:?}");
        }
        let marked = Command::Retried(Box::new(bind.clone()));
        assert!(Teller::default().may_bind(&marked).is_err());
        let drain = Command::Member(member::Command::Drain { node: NodeId(3), drained: true });
        assert!(Teller::default().may_bind(&drain).is_ok(), "who may do that is asked elsewhere");
        let plain = Request::new(());
        assert!(Teller::of(&plain, &Seldom::default()).may_bind(&bind).is_err(), "nothing was proved");
    }

    /// A permissive node that speaks plain text to its leader asks again and again.
    #[tokio::test(start_paused = true)]
    async fn whoever_may_not_say_it_fills_no_log_however_often_it_asks() {
        let bind = Command::Member(member::Command::Bind { node: NodeId(3), name: "n3".into() });
        let drain = Command::Member(member::Command::Drain { node: NodeId(3), drained: true });
        let (refusals, plain) = (Seldom::default(), Request::new(()));
        assert!(Teller::of(&plain, &refusals).may_bind(&drain).is_ok());
        assert!(refusals.is_due(), "nothing was refused");
        let refusals = Seldom::default();
        assert!(Teller::of(&plain, &refusals).may_bind(&bind).is_err());
        assert!(!refusals.is_due(), "that is told");
        assert!(Teller::of(&plain, &refusals).may_bind(&bind).is_err(), "and this is not");
    }
}
