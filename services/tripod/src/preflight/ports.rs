//! Whether the node's own addresses can be listened on.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::running::Running;
use super::{Check, Plan, Verdict, holder, outgoing};
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
    let ranges = [
        (Jobs { check: "ports-jobs", flag: "--job-ports", of: "jobs" }, plan.job_ports),
        (
            Jobs { check: "ports-mindspore", flag: "--mindspore-ports", of: "jobs of MindSpore" },
            plan.mindspore_ports,
        ),
    ];
    for (jobs, range) in ranges {
        if let (Some(client), Some(range)) = (&plan.client, range) {
            checks.push(jobs.check(client, range, running));
        }
    }
    checks
}

/// A range in which every job gets a port.
struct Jobs {
    check: &'static str,
    flag: &'static str,
    of: &'static str,
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
            let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            let by = match error.kind() {
                ErrorKind::AddrInUse => port.map_or_else(String::new, by),
                _ => String::new(),
            };
            Check::new(name, Verdict::Fail, format!("{address}: {error}{by}")).next(next)
        }
    }
}

/// Who has a port, behind a text that says that it is taken.
fn by(port: u16) -> String {
    holder::of(port).map_or_else(String::new, |holder| format!(", by {holder}"))
}

impl Jobs {
    /// A port that is taken matters when its job comes.
    fn check(&self, client: &str, range: PortRange, running: Option<&Running>) -> Check {
        let host = client.rsplit_once(':').map_or(client, |(host, _)| host);
        let taken: Vec<u16> = (range.first..=range.last)
            .filter(|port| TcpListener::bind(format!("{host}:{port}")).is_err())
            .collect();
        let (count, flag) = (range.count(), self.flag);
        let check = |verdict, found: String| {
            Check::new(self.check, verdict, found).figure("ports", count).figure("taken", taken.len())
        };
        let Some(first) = taken.first() else {
            let free = format!("{} {range} {} free", view::count(count, "port"), are(count == 1));
            if !outgoing::may_take(range) {
                return check(Verdict::Ok, free);
            }
            return check(Verdict::Warn, format!("{free}, and the kernel gives some of them to connections that go out"))
                .next(format!(
                    "keep them free with `sysctl -w net.ipv4.ip_local_reserved_ports={range}`, which replaces what is there, \
                     or choose a range below `sysctl net.ipv4.ip_local_port_range` with {flag}"
                ));
        };
        let named: Vec<String> = taken.iter().take(5).map(ToString::to_string).collect();
        let more = if taken.len() > named.len() { ", ..." } else { "" };
        let are = are(taken.len() == 1);
        let found =
            format!("{} of {count} ports {range} {are} taken: {}{more}", taken.len(), named.join(", "));
        if let Some(running) = running {
            return check(
                Verdict::Ok,
                format!("{found}; node {} itself runs, and serves jobs there", running.node),
            );
        }
        let which = if taken.len() == 1 { "" } else { ", the first" };
        let by = holder::of(*first).map_or_else(String::new, |holder| format!("{which} by {holder}"));
        check(Verdict::Warn, format!("{found}{by}")).next(format!(
            "{} on these ports could not be reached on this node; end what listens there \
             (`ss -ltnp 'sport = :{first}'` shows it), or choose another range with {flag}",
            self.of
        ))
    }
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
    fn a_port_of_mindspores_that_is_taken_is_named_with_who_has_it_and_what_to_do() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = taken.local_addr().expect("bound").port();
        let plan = Plan {
            client: Some("127.0.0.1:0".to_owned()),
            mindspore_ports: Some(PortRange { first: port, last: port }),
            ..Plan::default()
        };
        let checks = check(&plan, None);
        let [_, ports] = &checks[..] else { panic!("{checks:?}") };
        assert_eq!((ports.check, ports.verdict), ("ports-mindspore", Verdict::Warn));
        assert!(
            ports.found.starts_with(&format!("1 of 1 ports {port}-{port} is taken: {port}")),
            "{ports:?}"
        );
        // Whoever may not look at the files of processes does not learn it.
        let knows = holder::of(port).is_none_or(|holder| ports.found.ends_with(&format!(" by {holder}")));
        assert!(knows, "{ports:?}");
        let next = ports.next.as_ref().expect("something to do");
        assert!(next.starts_with("jobs of MindSpore") && next.contains("--mindspore-ports"), "{next}");
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
        let next = checks[2].next.as_ref().expect("something to do");
        assert!(next.contains(&format!("`ss -ltnp 'sport = :{}'`", address.port())), "{next}");
        drop(taken);
        assert_eq!(check(&plan, None)[0].verdict, Verdict::Ok, "the check itself has not kept it");
    }
}
