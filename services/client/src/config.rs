//! Where the cluster is and how long a call may take.

use std::time::Duration;

use tonic::transport::Endpoint;
use tripod_dial::Callee;

use crate::error::Error;

/// How to reach a cluster.
#[derive(Debug, Clone)]
pub struct Config {
    /// `HOST:PORT` of every node's client port, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// How long one call may take, all attempts together.
    pub timeout: Duration,
}

impl Config {
    /// A configuration with the default time-out of 10 s.
    #[must_use]
    pub fn new(endpoints: Vec<String>) -> Self {
        Self { endpoints, timeout: Duration::from_secs(10) }
    }
}

/// The transport settings of every address.
///
/// # Errors
/// [`Error::Config`] when there is no address, or one is not `HOST:PORT`.
pub(crate) fn targets(endpoints: &[String]) -> Result<Vec<(String, Endpoint)>, Error> {
    if endpoints.is_empty() {
        return Err(Error::Config(
            "no endpoints given; name the client address of at least one node, as HOST:PORT".into(),
        ));
    }
    endpoints.iter().map(|text| Ok((text.clone(), target(text)?))).collect()
}

/// How long a connection attempt may take: a dead host must not use up the call's time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks one address. tonic itself would accept a text without a port and fail much later.
fn target(text: &str) -> Result<Endpoint, Error> {
    let bad = |why: &str| Error::Config(format!("endpoint `{text}` {why}; write it as HOST:PORT"));
    if text.contains("://") {
        return Err(bad("has a scheme"));
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("has no port"))?;
    if host.is_empty() {
        return Err(bad("has no host"));
    }
    if port.parse::<u16>().map_or(true, |port| port == 0) {
        return Err(bad("has no valid port"));
    }
    let endpoint = tripod_dial::endpoint(text, Callee::Node).map_err(|_| bad("is no address"))?;
    Ok(endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(endpoint: &str) -> String {
        targets(&[endpoint.to_owned()]).expect_err("refused").to_string()
    }

    #[test]
    fn addresses_without_host_or_port_are_refused_by_name() {
        assert_eq!(refusal("localhost"), "endpoint `localhost` has no port; write it as HOST:PORT");
        assert_eq!(refusal(":7700"), "endpoint `:7700` has no host; write it as HOST:PORT");
        assert_eq!(refusal("a:0"), "endpoint `a:0` has no valid port; write it as HOST:PORT");
        assert_eq!(refusal("a:70000"), "endpoint `a:70000` has no valid port; write it as HOST:PORT");
        assert_eq!(refusal("http://a:7700"), "endpoint `http://a:7700` has a scheme; write it as HOST:PORT");
        assert_eq!(refusal("a b:7700"), "endpoint `a b:7700` is no address; write it as HOST:PORT");
    }

    #[test]
    fn ordinary_addresses_are_accepted() {
        let endpoints = ["127.0.0.1:7700", "[::1]:7701", "node-3:7702"].map(str::to_owned);
        assert_eq!(targets(&endpoints).expect("accepted").len(), 3);
    }

    #[test]
    fn an_empty_list_is_refused() {
        assert!(matches!(targets(&[]), Err(Error::Config(_))));
    }
}
