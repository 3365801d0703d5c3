//! Where a process finds the cluster, and where it is found.

/// How a worker or driver begins.
#[derive(Debug, Clone)]
pub struct Config {
    /// `HOST:PORT` of every node's client port.
    pub endpoints: Vec<String>,
    /// The job whose scheduler it is; empty: `default`.
    pub job: String,
    /// The IP address of this machine, as other machines know it.
    pub host: String,
    /// The address of the object store to use; empty: the one of this machine with the fewest workers.
    pub store: String,
}

impl Config {
    /// A process of the job `default`, on a machine that only this one reaches.
    #[must_use]
    pub fn local(endpoints: Vec<String>) -> Self {
        Self { endpoints, job: String::new(), host: "127.0.0.1".into(), store: String::new() }
    }
}
