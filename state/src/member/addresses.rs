//! Where a node listens for everybody but its peers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::JobSlot;

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Addresses {
    /// `HOST:PORT` for clients.
    pub client: String,
    /// `HOST:PORT` for health and status over HTTP.
    pub http: String,
    /// The host part of job addresses.
    pub job_host: String,
    /// The first port of the node's range of job ports; slot k listens on this plus k.
    pub job_port_first: u16,
    /// How many job ports the node has.
    pub job_port_count: u16,
}

/// A host, as the node wrote it, and a port; shown as `HOST:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPort<'a> {
    pub host: &'a str,
    pub port: u16,
}

impl Addresses {
    /// Where this node listens for the job in that slot: slot k at port k of the node's job ports, the job
    /// without a slot at the client port. `None` if the node has not so many job ports, or announced a
    /// client address without a port.
    #[must_use]
    pub fn job(&self, slot: Option<JobSlot>) -> Option<HostPort<'_>> {
        let Some(slot) = slot else {
            let (host, port) = self.client.rsplit_once(':')?;
            return Some(HostPort { host, port: port.parse().ok()? });
        };
        let port = (slot.0 < self.job_port_count).then(|| self.job_port_first.checked_add(slot.0))??;
        Some(HostPort { host: &self.job_host, port })
    }
}

impl fmt::Display for HostPort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(client: &str, first: u16, slot: Option<u16>) -> Option<String> {
        let addresses = Addresses {
            client: client.to_owned(),
            http: String::new(),
            job_host: "10.0.0.7".to_owned(),
            job_port_first: first,
            job_port_count: 2,
        };
        addresses.job(slot.map(JobSlot)).map(|place| place.to_string())
    }

    #[test]
    fn a_job_is_at_its_slot_of_a_range_that_reaches_so_far() {
        assert_eq!(place("10.0.0.7:7700", 8000, Some(1)).as_deref(), Some("10.0.0.7:8001"));
        assert_eq!(place("10.0.0.7:7700", 8000, Some(2)), None);
        assert_eq!(place("10.0.0.7:7700", u16::MAX, Some(0)).as_deref(), Some("10.0.0.7:65535"));
        assert_eq!(place("10.0.0.7:7700", u16::MAX, Some(1)), None, "there is no such port");
    }

    #[test]
    fn the_job_without_a_slot_is_at_the_client_port() {
        assert_eq!(place("10.0.0.7:7700", 8000, None).as_deref(), Some("10.0.0.7:7700"));
        assert_eq!(place("[::1]:7700", 8000, None).as_deref(), Some("[::1]:7700"));
        assert_eq!(place("nowhere", 8000, None), None);
        assert_eq!(place("nowhere:http", 8000, None), None);
    }
}
