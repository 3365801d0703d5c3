//! Whether a job's port is open on each node, as the nodes tell it themselves: something may listen at
//! the address that is not ours.

use std::collections::{BTreeMap, BTreeSet};

use tripod_client::{NodeAnswer, wire};

/// What the nodes that answered tell about the ports of one job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JobPortsView {
    /// Nodes that cannot open the port, with the reason.
    closed: BTreeMap<u64, wire::ClosedJobPort>,
    /// Nodes that have not heard of the job yet.
    behind: BTreeSet<u64>,
    /// Ports that one protocol has for the job, by protocol and node.
    own: BTreeMap<(String, u64), wire::OwnJobPort>,
}

impl JobPortsView {
    /// Of the job with this id.
    pub(crate) fn of(job: u64, answers: &[NodeAnswer]) -> Self {
        let mut view = Self { closed: BTreeMap::new(), behind: BTreeSet::new(), own: BTreeMap::new() };
        for status in answers.iter().filter_map(|answer| answer.status.as_ref().ok()) {
            if let Some(closed) = status.closed_job_ports.iter().find(|port| port.job_id == job) {
                view.closed.insert(status.node_id, closed.clone());
            } else if !status.open_job_ports.contains(&job) {
                view.behind.insert(status.node_id);
            }
            for port in status.own_job_ports.iter().filter(|port| port.job_id == job) {
                view.own.insert((port.protocol.clone(), status.node_id), port.clone());
            }
        }
        view
    }

    /// Whether every node that is up has opened the port.
    pub(crate) fn all_open(&self) -> bool {
        self.closed.is_empty() && self.behind.is_empty()
    }

    /// Where clients of one protocol find the job, in order of node id.
    pub(crate) fn own(&self, protocol: &str) -> Vec<String> {
        let open = self.own.iter().filter(|((name, _), port)| name == protocol && port.reason.is_empty());
        open.map(|(_, port)| port.address.clone()).collect()
    }

    /// Takes the addresses out of `job` at which a client would meet somebody else, or nobody.
    pub(crate) fn leave_out_closed(&self, job: &mut wire::Job) {
        job.addresses.retain(|address| !self.closed.contains_key(&address.node_id));
    }

    /// What a person should know before using the job's addresses, one line for each node.
    pub(crate) fn warnings(&self, job: &str) -> Vec<String> {
        let closed = self.closed.iter().map(|(node, port)| {
            let left_out = if port.address.is_empty() { "" } else { "; the address is left out" };
            format!("{}{left_out}", trouble(*node, port))
        });
        let behind = self.behind.iter().map(|node| {
            format!(
                "node {node} has not opened its port for job `{job}` yet; see whether it is behind with `tripod status`"
            )
        });
        // A range that ends before the job's slot says nothing: most jobs are none of that protocol.
        let unopened =
            self.own.iter().filter(|(_, port)| !port.reason.is_empty() && !port.address.is_empty());
        let own = unopened.map(|((protocol, node), port)| {
            let wire::OwnJobPort { address, reason, .. } = port;
            let number = address.rsplit_once(':').map_or(address.as_str(), |(_, number)| number);
            format!(
                "node {node} cannot open {address} for {protocol}: {reason}; it tries on: free the port \
                 (`ss -ltnp 'sport = :{number}'` on that machine shows who listens)"
            )
        });
        closed.chain(behind).chain(own).collect()
    }
}

/// A port that a node cannot open, why, and what to do about it.
pub(crate) fn trouble(node: u64, port: &wire::ClosedJobPort) -> String {
    let wire::ClosedJobPort { job, address, reason, .. } = port;
    let Some((_, number)) = address.rsplit_once(':') else {
        return format!("node {node} has no port for job `{job}`: {reason}");
    };
    format!(
        "node {node} cannot open {address} for job `{job}`: {reason}; it tries on: free the port \
         (`ss -ltnp 'sport = :{number}'` on that machine shows who listens)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(node: u64, open: &[u64], closed: &[(u64, &str)]) -> NodeAnswer {
        let closed = closed.iter().map(|(job_id, address)| wire::ClosedJobPort {
            job_id: *job_id,
            job: "train".into(),
            address: (*address).into(),
            reason: "taken".into(),
        });
        let status = wire::StatusResponse {
            node_id: node,
            open_job_ports: open.to_vec(),
            closed_job_ports: closed.collect(),
            ..Default::default()
        };
        NodeAnswer { endpoint: String::new(), status: Ok(status) }
    }

    #[test]
    fn open_everywhere_means_that_nobody_is_missing() {
        assert!(JobPortsView::of(4, &[answer(1, &[4], &[]), answer(2, &[3, 4], &[])]).all_open());
        assert!(!JobPortsView::of(4, &[answer(1, &[4], &[]), answer(2, &[3], &[])]).all_open());
        assert!(!JobPortsView::of(4, &[answer(1, &[3], &[(4, "a:8")])]).all_open());
        assert!(JobPortsView::of(4, &[answer(1, &[4], &[(3, "a:8")])]).all_open(), "another job's trouble");
    }

    #[test]
    fn an_address_that_a_node_cannot_open_is_left_out_and_told() {
        let view =
            JobPortsView::of(4, &[answer(1, &[], &[(4, "a:8")]), answer(2, &[4], &[]), answer(3, &[], &[])]);
        let address = |node_id| wire::JobAddress { node_id, address: format!("node-{node_id}:8") };
        let mut job = wire::Job { addresses: [1, 2, 3].map(address).to_vec(), ..Default::default() };
        view.leave_out_closed(&mut job);
        assert_eq!(job.addresses, [address(2), address(3)]);
        let warnings = view.warnings("train");
        let begin = "node 1 cannot open a:8 for job `train`: taken; it tries on: free the port (`ss -ltnp 'sport = :8'`";
        assert!(warnings[0].starts_with(begin), "{warnings:?}");
        assert!(
            warnings[1].starts_with("node 3 has not opened its port for job `train` yet"),
            "{warnings:?}"
        );
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn a_node_whose_range_is_too_short_is_told_without_an_address() {
        let view = JobPortsView::of(4, &[answer(1, &[], &[(4, "")])]);
        assert_eq!(view.warnings("train"), ["node 1 has no port for job `train`: taken"]);
    }

    #[test]
    fn ports_of_one_protocol_are_told_where_they_are_open_and_where_somebody_else_has_them() {
        let own = |node, address: &str, reason: &str| {
            let port = wire::OwnJobPort {
                job_id: 4,
                protocol: "lines".into(),
                address: address.into(),
                reason: reason.into(),
            };
            let mut answer = answer(node, &[4], &[]);
            let status = answer.status.as_mut().expect("told");
            status.own_job_ports = vec![wire::OwnJobPort { job_id: 3, ..port.clone() }, port];
            answer
        };
        let answers = [own(2, "b:9", ""), own(1, "a:9", ""), own(3, "c:9", "taken"), own(4, "", "too short")];
        let view = JobPortsView::of(4, &answers);
        assert!(view.all_open(), "whoever speaks another protocol does not wait for them");
        assert_eq!((view.own("lines"), view.own("words")), (vec!["a:9".into(), "b:9".into()], vec![]));
        let warnings = view.warnings("train");
        let begin =
            "node 3 cannot open c:9 for lines: taken; it tries on: free the port (`ss -ltnp 'sport = :9'`";
        assert!(warnings.len() == 1 && warnings[0].starts_with(begin), "{warnings:?}");
    }
}
