//! Whether the node's own addresses can be listened on.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::{Check, Plan, Verdict};
use crate::args::port_range::PortRange;

/// One check an address that is known. A port is open for a moment only, and nobody is served.
pub(super) fn check(plan: &Plan) -> Vec<Check> {
    let own = [
        ("port-client", "--client", &plan.client),
        ("port-peer", "--peer", &plan.peer),
        ("port-http", "--http", &plan.http),
    ];
    let known = own.into_iter().filter_map(|(name, flag, address)| Some((name, flag, address.as_ref()?)));
    let mut checks: Vec<Check> = known.map(|(name, flag, address)| one(name, flag, address)).collect();
    if let (Some(client), Some(range)) = (&plan.client, plan.job_ports) {
        checks.push(jobs(client, range));
    }
    checks
}

fn one(name: &'static str, flag: &str, address: &str) -> Check {
    match TcpListener::bind(address) {
        Ok(_) => Check::new(name, Verdict::Ok, format!("{address} is free")),
        Err(error) => {
            let next = match error.kind() {
                ErrorKind::AddrInUse => format!(
                    "end what listens there (`ss -ltnp` shows it), or choose another port with {flag}; if the node \
                     itself runs, all is well"
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
fn jobs(client: &str, range: PortRange) -> Check {
    let host = client.rsplit_once(':').map_or(client, |(host, _)| host);
    let taken: Vec<u16> = (range.first..=range.last)
        .filter(|port| TcpListener::bind(format!("{host}:{port}")).is_err())
        .collect();
    let count = range.count();
    if taken.is_empty() {
        return Check::new("ports-jobs", Verdict::Ok, format!("{count} ports {range} are free"))
            .figure("ports", count)
            .figure("taken", 0);
    }
    let named: Vec<String> = taken.iter().take(5).map(ToString::to_string).collect();
    let more = if taken.len() > named.len() { ", ..." } else { "" };
    let found = format!("{} of {count} ports {range} are taken: {}{more}", taken.len(), named.join(", "));
    Check::new("ports-jobs", Verdict::Warn, found)
        .figure("ports", count)
        .figure("taken", taken.len())
        .next("jobs on these ports could not be reached on this node; choose another range with --job-ports")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let checks = check(&plan);
        let verdicts: Vec<_> = checks.iter().map(|check| (check.check, check.verdict)).collect();
        assert_eq!(
            verdicts,
            [("port-client", Verdict::Fail), ("port-peer", Verdict::Ok), ("ports-jobs", Verdict::Warn)]
        );
        assert!(checks[0].next.as_ref().is_some_and(|next| next.contains("--client")), "{checks:?}");
        assert_eq!(checks[2].figures["taken"], 1);
        drop(taken);
        assert_eq!(check(&plan)[0].verdict, Verdict::Ok, "the check itself has not kept it");
    }
}
