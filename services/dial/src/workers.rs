//! What protects the ports of workers and object stores, at both ends, and who may call what there.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use http::Extensions;
use tonic::transport::server::TcpConnectInfo;
use tripod_gate::{Caller, Gate, GateLayer};
use tripod_identity::JobName;
use tripod_proto::code::Code;
use tripod_tls::{ClientTls, Mode, Port, Presented, ServerTls, Tls};

/// A process is somebody once, whoever connects or listens in it.
static PROTECTION: OnceLock<Protection> = OnceLock::new();

struct Protection {
    tls: Tls,
    /// Of the port of this process, if it is a worker or a store.
    mode: Mode,
    /// By which this process connects to such ports; absent: in plain text.
    client: Option<ClientTls>,
}

/// From now on the port of this worker or store takes what `mode` says, and whoever comes by TLS is judged by the table of who may
/// call what. `dials`: this process connects to such ports by TLS only. The first word counts.
pub fn protect_workers(tls: &Tls, mode: Mode, dials: bool) {
    let client = dials.then(|| ClientTls::new(tls, Port::Worker).of_own_job());
    let _ = PROTECTION.set(Protection { tls: tls.clone(), mode, client });
}

/// How this process connects to workers and stores.
pub(crate) fn client() -> Option<&'static ClientTls> {
    PROTECTION.get()?.client.as_ref()
}

/// What protects this process' port.
pub(crate) fn server(port: Port) -> Option<ServerTls> {
    let Protection { tls, mode, .. } = PROTECTION.get()?;
    ServerTls::new(tls, port, *mode)
}

/// By which connection a call came, among the extensions of its request.
#[derive(Debug, Clone)]
pub struct ArrivedBy {
    pub(crate) tcp: TcpConnectInfo,
    /// Of a connection that may be protected.
    pub(crate) presented: Option<Presented>,
}

/// The connection by which a call came; `None`: it is of this process.
#[must_use]
pub fn connection_of(extensions: &Extensions) -> Option<TcpConnectInfo> {
    let by = extensions.get::<ArrivedBy>().map(|by| by.tcp.clone());
    by.or_else(|| extensions.get::<TcpConnectInfo>().cloned())
}

/// From where a call came; `None`: it is of this process.
#[must_use]
pub fn caller_address(extensions: &Extensions) -> Option<IpAddr> {
    Some(connection_of(extensions)?.remote_addr()?.ip().to_canonical())
}

/// Whether a certificate says who makes a call, so that the gate before the port has judged it and an address proves nothing more.
#[must_use]
pub fn is_proved(extensions: &Extensions) -> bool {
    let presented = extensions.get::<ArrivedBy>().and_then(|by| by.presented.as_ref());
    presented.is_some_and(|presented| presented.proved().is_some())
}

/// Stands before the services of an object store.
#[must_use]
pub fn gate_of_store() -> GateLayer {
    gate(tripod_gate::Port::Store)
}

/// Stands before the services of a worker.
#[must_use]
pub fn gate_of_worker() -> GateLayer {
    gate(tripod_gate::Port::Worker)
}

/// Whoever comes in plain text, as far as the port takes that, is judged as before: by its address, or not at all.
fn gate(at: tripod_gate::Port) -> GateLayer {
    let own = own_job();
    let mode = if own.is_some() { tripod_gate::Mode::Enforce } else { tripod_gate::Mode::Off };
    let gate = Gate::new(at, mode, Arc::default()).telling(|news| {
        let code = Code::NotAuthorised.number();
        let rpc = news.rpc.map_or_else(|| "(none)".to_owned(), tripod_gate::Rpc::path);
        let (caller, port, reason) = (&news.caller, news.at.word(), news.reason.word());
        tracing::warn!(code = %format_args!("T{code}"), caller, rpc, port, reason, "a call was refused");
    });
    GateLayer::new(Arc::new(gate), own, Caller::Legacy).seen_by(seen)
}

/// Of which this worker or store is, if its port is protected.
fn own_job() -> Option<JobName> {
    let Protection { tls, mode, .. } = PROTECTION.get()?;
    if *mode == Mode::Off {
        return None;
    }
    tls.identity().kind.job().cloned()
}

fn seen(extensions: &Extensions) -> Option<Arc<Caller>> {
    let presented = extensions.get::<ArrivedBy>()?.presented.as_ref()?;
    presented.is_encrypted().then(|| Arc::new(judged(presented, own_job().as_ref())))
}

/// Whoever is of another job is nobody here, whichever job the call names: its services look at none. So is whoever has a certificate
/// that has ended, or was revoked since the connection was made: no connection of these ports ends for that.
fn judged(presented: &Presented, own: Option<&JobName>) -> Caller {
    let Some(proved) = presented.believed() else { return Caller::Anonymous };
    let identity = proved.identity().clone();
    let is_stranger = identity.kind.job().is_some_and(|job| Some(job) != own);
    if is_stranger { Caller::Anonymous } else { Caller::by_path(identity) }
}
