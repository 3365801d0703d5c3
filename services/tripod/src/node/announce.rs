//! Telling the cluster where this node listens.

use tripod_gateway::{Consistency, Gateway};
use tripod_proto::code::Code;
use tripod_state::ids::NodeId;
use tripod_state::{Command, Fault, State, member};

use crate::failure::Failure;
use crate::node::retry::PAUSE;
use crate::node::{Config, Listeners};

/// The addresses that clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addresses(member::Addresses);

impl Addresses {
    pub(crate) fn of(config: &Config, listeners: &Listeners) -> Result<Self, Failure> {
        let port = |listener: &tokio::net::TcpListener| {
            let address = listener.local_addr();
            address
                .map(|address| address.port())
                .map_err(|error| Failure::new(Code::ListenFailed, error.to_string()))
        };
        let host = advertised_host(config)?;
        Ok(Self(member::Addresses {
            client: format!("{host}:{}", port(&listeners.client)?),
            http: format!("{host}:{}", port(&listeners.http)?),
            job_host: host,
            job_port_first: config.job_ports.first,
            job_port_count: config.job_ports.count(),
        }))
    }

    pub(crate) fn client(&self) -> &str {
        &self.0.client
    }

    pub(crate) fn job_host(&self) -> &str {
        &self.0.job_host
    }

    pub(crate) fn http(&self) -> &str {
        &self.0.http
    }
}

/// The host part of an address, as it was written (`[::1]` keeps its brackets).
pub(crate) fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// The host that clients can use: nobody can connect to the address that means "all of mine".
fn advertised_host(config: &Config) -> Result<String, Failure> {
    if let Some(host) = &config.advertise {
        return Ok(host.clone());
    }
    let own = host_of(&config.client);
    if !is_unspecified(own) {
        return Ok(own.to_owned());
    }
    let peer = config.initial.peer(config.node).unwrap_or(&config.peer);
    let peer = Some(host_of(peer)).filter(|host| !is_unspecified(host));
    peer.map(ToOwned::to_owned).ok_or_else(|| {
        Failure::new(
            Code::ConfigMissing,
            format!(
                "--client {} names no host that clients could connect to; add --advertise HOST",
                config.client
            ),
        )
    })
}

pub(crate) fn is_unspecified(host: &str) -> bool {
    matches!(host, "" | "0.0.0.0" | "[::]")
}

/// Announces this node unless the cluster knows its addresses already. Tries until it is done.
pub(crate) async fn run(gateway: Gateway, node: NodeId, addresses: Addresses) {
    loop {
        match announce(&gateway, node, &addresses.0).await {
            Ok(()) => return,
            Err(failure) => tracing::warn!(%failure, "addresses could not be announced"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn announce(gateway: &Gateway, node: NodeId, addresses: &member::Addresses) -> Result<(), Failure> {
    let known = |state: &State| state.members().contains(&(node, addresses.clone()));
    let known = gateway.read(Consistency::Linearizable, known).await?;
    if known {
        return Ok(());
    }
    let command = member::Command::Announce { node, addresses: addresses.clone() };
    match gateway.submit(Command::Member(command)).await {
        Ok(Ok(_)) => Ok(()),
        // It is told so, and ends.
        Ok(Err(Fault::Member(member::Refusal::NodeRemoved { .. }))) => Ok(()),
        Ok(Err(fault)) => Err(Failure::new(Code::Refused, format!("refused: {fault:?}"))),
        Err(outage) => Err(outage.into()),
    }
}
