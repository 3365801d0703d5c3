//! Who may tell a store what to do, or take objects from it: nodes of the cluster, and for objects other stores of it.
//!
//! A caller is known by the address that it comes from. The cluster says which nodes and stores there are; it is asked
//! when somebody comes whom this store does not know yet.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tonic::{Extensions, Request, Status};
use tripod_dial::Allow;
use tripod_proto::code::Code;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::ray_client::RayClient;
use tripod_proto::tripod::v1::{ListMembersRequest, RayStatusRequest};

use crate::scheduler::Endpoints;

/// The flag that names others, for texts.
pub(crate) const FLAG: &str = "--order-allow";
/// How often the cluster is asked, at most: strangers may come in any number.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long its answer is waited for, and that of whoever knows names.
const ASK_TIME: Duration = Duration::from_secs(3);
/// Addresses of strangers that the log has a line about, each once.
const TOLD_MAX: usize = 64;
/// Bytes of the list of workers and stores: those of 100,000 of them.
const STATUS_BYTES_MAX: usize = 32 << 20;

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Its orders are to be followed.
    Order,
    /// It takes an object.
    Object,
}

/// Those whom a store listens to.
#[derive(Debug)]
pub(crate) struct Callers {
    allow: Allow,
    endpoints: Arc<Endpoints>,
    known: Mutex<Known>,
    /// When the cluster was asked last. Held by whoever asks it.
    asked: tokio::sync::Mutex<Option<Instant>>,
    told: Mutex<BTreeSet<IpAddr>>,
}

/// Where the cluster's nodes and stores are.
#[derive(Debug, Default)]
struct Known {
    nodes: BTreeSet<IpAddr>,
    stores: BTreeSet<IpAddr>,
}

impl Callers {
    pub(crate) fn new(allow: Allow, endpoints: Arc<Endpoints>) -> Self {
        let (known, asked, told) = (Mutex::default(), tokio::sync::Mutex::default(), Mutex::default());
        Self { allow, endpoints, known, asked, told }
    }

    /// # Errors
    /// T6305: `PERMISSION_DENIED`, but `UNAVAILABLE` for orders, which a scheduler gives again: if it was mistaken for a
    /// stranger, nothing is lost. The latter also if the cluster was asked just now.
    pub(crate) async fn check(&self, extensions: &Extensions, wish: Wish) -> Result<(), Status> {
        // What a certificate says was judged before, and where it comes from proves nothing more.
        if tripod_dial::is_proved(extensions) {
            return Ok(());
        }
        // Without a connection it is this process.
        let Some(connection) = tripod_dial::connection_of(extensions) else { return Ok(()) };
        let gone = || Status::unavailable("the connection is gone");
        let address = |address: Option<std::net::SocketAddr>| Some(address?.ip().to_canonical());
        let from = address(connection.remote_addr()).ok_or_else(gone)?;
        let own = address(connection.local_addr()) == Some(from);
        if self.is_listed(from, own) || self.knows(from, wish) {
            return Ok(());
        }
        let mut asked = self.asked.lock().await;
        if self.knows(from, wish) {
            return Ok(());
        }
        if asked.is_some_and(|at| at.elapsed() < ASK_EVERY) {
            return Err(Status::unavailable(format!("{from} is not known here yet; try again")));
        }
        self.ask().await;
        *asked = Some(Instant::now());
        if self.knows(from, wish) { Ok(()) } else { Err(self.refuse(from, wish)) }
    }

    fn refuse(&self, from: IpAddr, wish: Wish) -> Status {
        let refused = refused(from, wish);
        let mut told = self.told.lock();
        if told.len() < TOLD_MAX && told.insert(from) {
            tracing::warn!(code = Code::DialRefused.number(), "{}", refused.message());
        }
        refused
    }

    /// Whether it may without the cluster's word: a process of this machine, unless a list says what is meant.
    fn is_listed(&self, from: IpAddr, own: bool) -> bool {
        match &self.allow {
            Allow::Own => own || from.is_loopback(),
            Allow::Any => true,
            Allow::Networks(networks) => networks.iter().any(|network| network.contains(from)),
        }
    }

    fn knows(&self, from: IpAddr, wish: Wish) -> bool {
        let known = self.known.lock();
        known.nodes.contains(&from) || wish == Wish::Object && known.stores.contains(&from)
    }

    /// Asks where nodes and stores are. What cannot be found out stays as it was.
    async fn ask(&self) {
        let (members, stores) =
            tokio::join!(timeout(ASK_TIME, self.members()), timeout(ASK_TIME, self.stores()));
        let (members, stores) = (members.ok().flatten(), stores.ok().flatten());
        let told: Vec<String> = self.endpoints.addresses().map(str::to_owned).collect();
        let nodes = Found::of([told, members.clone().unwrap_or_default()].concat(), members.is_some()).await;
        let stores = Found::of(stores.clone().unwrap_or_default(), stores.is_some()).await;
        let mut known = self.known.lock();
        nodes.replace(&mut known.nodes);
        stores.replace(&mut known.stores);
    }

    async fn members(&self) -> Option<Vec<String>> {
        let send = |channel, request| async move { ClusterClient::new(channel).list_members(request).await };
        let told =
            self.endpoints.call("ListMembers", || Request::new(ListMembersRequest {}), send).await.ok()?;
        Some(
            told.members
                .into_iter()
                .flat_map(|member| [member.client_address, member.peer_address])
                .collect(),
        )
    }

    async fn stores(&self) -> Option<Vec<String>> {
        let send = |channel, request| async move {
            RayClient::new(channel).max_decoding_message_size(STATUS_BYTES_MAX).status(request).await
        };
        let told = self.endpoints.call("Status", || Request::new(RayStatusRequest {}), send).await.ok()?;
        Some(
            told.stores
                .into_iter()
                .filter(|store| store.state == "alive")
                .map(|store| store.address)
                .collect(),
        )
    }
}

/// The addresses of places.
struct Found {
    addresses: BTreeSet<IpAddr>,
    /// Of all of them.
    whole: bool,
}

impl Found {
    async fn of(places: Vec<String>, whole: bool) -> Self {
        let mut found = Self { addresses: BTreeSet::new(), whole };
        for place in places.iter().filter(|place| !place.is_empty()) {
            match timeout(ASK_TIME, tokio::net::lookup_host(place)).await {
                Ok(Ok(addresses)) => {
                    found.addresses.extend(addresses.map(|address| address.ip().to_canonical()));
                }
                _ => found.whole = false,
            }
        }
        found
    }

    /// What was known before counts on where something could not be found out.
    fn replace(self, known: &mut BTreeSet<IpAddr>) {
        if self.whole {
            *known = self.addresses;
        } else {
            known.extend(self.addresses);
        }
    }
}

fn refused(from: IpAddr, wish: Wish) -> Status {
    let code = Code::DialRefused;
    match wish {
        Wish::Order => Status::unavailable(format!(
            "{code}: this object store takes no orders from {from}, where no node of its cluster is; next: if a node comes \
             from there, start the store with {FLAG} {from}"
        )),
        Wish::Object => Status::permission_denied(format!(
            "{code}: this object store gives nothing to {from}, where no node and no object store of its cluster is; next: if \
             one comes from there, start the store with {FLAG} {from}"
        )),
    }
}
