//! Whether other machines could use the node's ports in plain text.

use super::{Check, Plan, Verdict};
use crate::args::tls_flags::NodePorts;
use crate::args::ui::Ui;
use crate::plain_text::Names;

const NAME: &str = "plain-text";

/// One check, if any address is known. A node that was told to serve in plain text starts, and is warned of.
pub(super) fn check(plan: &Plan) -> Option<Check> {
    let ports = NodePorts {
        client: plan.client.as_deref(),
        peer: plan.peer.as_deref(),
        http: plan.http.as_deref(),
        ui: plan.ui.as_ref().and_then(Ui::own_address),
        mindspore: plan.mindspore_ports.is_some(),
    };
    if [ports.client, ports.peer, ports.http, ports.ui] == [None; 4] {
        return None;
    }
    if let Err(refused) = plan.tls.check_ports(&ports, Names::LookedUp) {
        return Some(Check::new(NAME, Verdict::Fail, refused.to_string()));
    }
    if !plan.tls.serves_others_in_plain_text(&ports) {
        return Some(Check::new(NAME, Verdict::Ok, "no other machine can use a port in plain text"));
    }
    let check =
        Check::new(NAME, Verdict::Warn, "other machines can use ports in plain text, as --insecure says");
    Some(check.next("give the node certificates (docs/security.md), and take --insecure away"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::tls_flags::TlsFlags;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        tls: TlsFlags,
    }

    fn verdict(client: &str, flags: &[&str]) -> Option<Verdict> {
        let line = Line::try_parse_from(["node"].iter().chain(flags)).expect("well-formed");
        let client = Some(client.to_owned()).filter(|client| !client.is_empty());
        check(&Plan { client, tls: line.tls, ..Plan::default() }).map(|check| check.verdict)
    }

    #[test]
    fn a_port_that_others_reach_fails_unless_it_is_protected_or_meant() {
        assert_eq!(verdict("", &[]), None);
        assert_eq!(verdict("127.0.0.1:1", &[]), Some(Verdict::Ok));
        assert_eq!(verdict("10.0.0.1:1", &[]), Some(Verdict::Fail));
        assert_eq!(verdict("10.0.0.1:1", &["--insecure"]), Some(Verdict::Warn));
        assert_eq!(verdict("10.0.0.1:1", &["--insecure=false"]), Some(Verdict::Fail));
        assert_eq!(verdict("10.0.0.1:1", &["--tls-dir=d"]), Some(Verdict::Ok));
        let permissive = ["--tls-dir=d", "--client-tls=permissive"];
        assert_eq!(verdict("10.0.0.1:1", &permissive), Some(Verdict::Fail), "it takes plain text, too");
        let page = Some(Ui::At("10.0.0.1:2".to_owned()));
        let page = check(&Plan { ui: page, ..Plan::default() }).map(|check| check.verdict);
        assert_eq!(page, Some(Verdict::Fail), "the page has a port of its own");
    }
}
