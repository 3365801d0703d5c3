//! What all tests need.

use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::Channel;
use tripod_objstore::local::Connection;
use tripod_objstore::{Config, ObjectId, Store, StoreId};
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_proto::ray::{ObjStoreInfoReply, ObjStoreInfoRequest, StartDeliveryRequest};

use crate::scheduler::{Listening, Node};

/// How long anything may take on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Looks again and again until there is something.
pub(crate) async fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A scheduler of one node, and directories for stores.
pub(crate) struct Scene {
    pub(crate) node: Node,
    pub(crate) listening: Listening,
    directory: tempfile::TempDir,
}

/// A store with a connection of each kind.
pub(crate) struct Started {
    pub(crate) id: StoreId,
    pub(crate) store: Store,
    pub(crate) client: ObjStoreClient<Channel>,
    pub(crate) local: Connection,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let node = Node::default();
        let listening = node.listen().await;
        Self { node, listening, directory: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn config(&self) -> Config {
        let mut config =
            Config::new(vec![self.listening.address.to_string()], self.directory.path().join("sockets"));
        config.capacity_bytes = 64 << 20;
        config.anew = Duration::from_millis(300);
        config
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) async fn store(&self) -> Started {
        self.store_with(self.config()).await
    }

    pub(crate) async fn store_with(&self, config: Config) -> Started {
        let store = Store::start(config).await.expect("started");
        let id = registered(&store).await;
        let client = client(store.address()).await;
        let local = Connection::open(store.socket(), None).await.expect("connected");
        Started { id, store, client, local }
    }
}

pub(crate) async fn registered(store: &Store) -> StoreId {
    let mut registered = store.registered();
    let waited = tokio::time::timeout(PATIENCE, registered.wait_for(Option::is_some)).await;
    waited.expect("in time").expect("the store runs").expect("an id")
}

pub(crate) async fn client(address: &str) -> ObjStoreClient<Channel> {
    let client = ObjStoreClient::connect(format!("http://{address}")).await.expect("connected");
    client.max_decoding_message_size(8 << 20)
}

impl Started {
    /// Stores bytes of that length that belong to that id only.
    pub(crate) async fn put(&self, object: u64, len: usize) {
        self.local.put(ObjectId(object), pattern(object, len).into(), 0, None).await.expect("stored");
    }

    pub(crate) async fn fetch(&mut self, object: u64, from: &str) {
        let request = StartDeliveryRequest {
            objstore_address: from.to_owned(),
            objectid: object,
            objstoreid: Some(self.id.0),
        };
        self.client.start_delivery(request).await.expect("acknowledged");
    }

    /// The object, which must come.
    pub(crate) async fn expect(&self, object: u64, len: usize) {
        let got = self.local.get(ObjectId(object), Some(PATIENCE)).await.expect("it comes");
        assert!(got.bytes().expect("mapped") == pattern(object, len), "object {object} has other bytes");
    }

    pub(crate) async fn info(&mut self) -> ObjStoreInfoReply {
        self.client.obj_store_info(ObjStoreInfoRequest::default()).await.expect("told").into_inner()
    }
}

pub(crate) fn pattern(object: u64, len: usize) -> Vec<u8> {
    let mut word = object.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
