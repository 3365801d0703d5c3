//! Whether the node's own addresses can be listened on.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::running::Running;
use super::{Check, Plan, Verdict, outgoing};
use crate::args::port_range::PortRange;
use crate::view;

/// One check an address that is known. A port is open for a moment only, and nobody is served. What the node itself
/// has if it is `running` is as good as free.
pub(super) fn check(plan: &Plan, running: Option<&Running>) -> Vec<Check> {
    let own = [
        ("port-client", "--client", &plan.client),
        ("port-peer", "--peer", &plan.peer),
        ("port-http", "--http", &plan.http),
    ];
    let known = own.into_iter().filter_map(|(name, flag, address)| Some((name, flag, address.as_ref()?)));
    let mut checks: Vec<Check> =
        known.map(|(name, flag, address)| one(name, flag, address, running)).collect();
    if let (Some(client), Some(range)) = (&plan.client, plan.job_ports) {
        checks.push(jobs(client, range, running));
    }
    checks
}

fn one(name: &'static str, flag: &str, address: &str, running: Option<&Running>) -> Check {
    match (TcpListener::bind(address), running) {
        (Ok(_), _) => Check::new(name, Verdict::Ok, format!("{address} is free")),
        (Err(error), Some(running)) if error.kind() == ErrorKind::AddrInUse && running.has(address) => {
            let node = running.node;
            Check::new(name, Verdict::Ok, format!("{address} is in use by node {node} itself, which runs"))
        }
        (Err(error), _) => {
            let next = match error.kind() {
                ErrorKind::AddrInUse => format!(
                    "end what listens there (`ss -ltnp` shows it), or choose another port with {flag}"
                ),
                ErrorKind::AddrNotAvailable => format!("this machine has no such address; correct {flag}"),
                ErrorKind::PermissionDenied => format!("choose a port above 1023 with {flag}"),
                _ => format!("correct {flag}: HOST:PORT of this machine"),
            };
            Check::new(name, Verdict::Fail, format!("{address}: {error}")).next(next)
        }
    }
}

/// The range in which every job gets its port. A port that is taken matters when its job comes.
fn jobs(client: &str, range: PortRange, running: Option<&Running>) -> Check {
    let host = client.rsplit_once(':').map_or(client, |(host, _)| host);
    let taken: Vec<u16> = (range.first..=range.last)
        .filter(|port| TcpListener::bind(format!("{host}:{port}")).is_err())
        .collect();
    let count = range.count();
    if taken.is_empty() {
        let check = |verdict, found: String| {
            Check::new("ports-jobs", verdict, found).figure("ports", count).figure("taken", 0)
        };
        let free = format!("{} {range} {} free", view::count(count, "port"), are(count == 1));
        if !outgoing::may_take(range) {
            return check(Verdict::Ok, free);
        }
        return check(Verdict::Warn, format!("{free}, and the kernel gives some of them to connections that go out"))
            .next(format!(
                "keep them free with `sysctl -w net.ipv4.ip_local_reserved_ports={range}`, which replaces what is there, \
                 or choose a range below `sysctl net.ipv4.ip_local_port_range` with --job-ports"
            ));
    }
    let named: Vec<String> = taken.iter().take(5).map(ToString::to_string).collect();
    let more = if taken.len() > named.len() { ", ..." } else { "" };
    let are = are(taken.len() == 1);
    let found = format!("{} of {count} ports {range} {are} taken: {}{more}", taken.len(), named.join(", "));
    let check = |verdict, found: String| {
        Check::new("ports-jobs", verdict, found).figure("ports", count).figure("taken", taken.len())
    };
    if let Some(running) = running {
        return check(
            Verdict::Ok,
            format!("{found}; node {} itself runs, and serves jobs there", running.node),
        );
    }
    check(Verdict::Warn, found)
        .next("jobs on these ports could not be reached on this node; choose another range with --job-ports")
}

fn are(one: bool) -> &'static str {
    if one { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n34_ports_of_the_node_itself_are_fit() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = |listener: &TcpListener| listener.local_addr().expect("bound");
        let port = address(&taken).port();
        let plan = Plan {
            client: Some(address(&taken).to_string()),
            http: Some(address(&other).to_string()),
            job_ports: Some(PortRange { first: port, last: port }),
            ..Plan::default()
        };
        let running = Running::with_port_of(4, &address(&taken).to_string());
        let checks = check(&plan, Some(&running));
        let verdicts: Vec<_> = checks.iter().map(|check| (check.check, check.verdict)).collect();
        assert_eq!(
            verdicts,
            [("port-client", Verdict::Ok), ("port-http", Verdict::Fail), ("ports-jobs", Verdict::Ok)]
        );
        assert!(checks[0].found.ends_with("is in use by node 4 itself, which runs"), "{checks:?}");
    }

    #[test]
    fn a_port_that_is_taken_is_named_with_its_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("bound");
        let plan = Plan {
            client: Some(address.to_string()),
            peer: Some("127.0.0.1:0".to_owned()),
            job_ports: Some(PortRange { first: address.port(), last: address.port() }),
            ..Plan::default()
        };
        let checks = check(&plan, None);
        let verdicts: Vec<_> = checks.iter().map(|check| (check.check, check.verdict)).collect();
        assert_eq!(
            verdicts,
            [("port-client", Verdict::Fail), ("port-peer", Verdict::Ok), ("ports-jobs", Verdict::Warn)]
        );
        assert!(checks[0].next.as_ref().is_some_and(|next| next.contains("--client")), "{checks:?}");
        assert_eq!(checks[2].figures["taken"], 1);
        drop(taken);
        assert_eq!(check(&plan, None)[0].verdict, Verdict::Ok, "the check itself has not kept it");
    }
}
