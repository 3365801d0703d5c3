//! What all tests need.

use std::time::Duration;

use tonic::transport::Channel;
use tripod_objstore::local::{Connection, LocalError, Object};
use tripod_objstore::{Config, ObjectId, Store, StoreId};
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_proto::ray::{ObjStoreInfoReply, ObjStoreInfoRequest, StartDeliveryRequest};

use crate::scheduler::{Listening, Node};

/// Longer than any test waits, which notices by itself what does not come.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// For how long whoever orders an object waits before it orders it again.
const ROUND: Duration = Duration::from_secs(1);

/// Looks again and again until there is something.
pub(crate) async fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    tripod_wait::until(what, look).await
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
    let waited = tripod_wait::within("the registration", registered.wait_for(Option::is_some)).await;
    waited.expect("the store runs").expect("an id")
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
        let request = self.order(object, from);
        self.client.start_delivery(request).await.expect("acknowledged");
    }

    /// The object, which must come.
    pub(crate) async fn expect(&self, object: u64, len: usize) {
        let got = get(&self.local, object).await.expect("it comes");
        assert!(got.bytes().expect("mapped") == pattern(object, len), "object {object} has other bytes");
    }

    /// Orders an object from there until it is here, as the scheduler does: on a busy machine a round may be in vain.
    pub(crate) async fn fetch_until_here(&mut self, object: u64, len: usize, from: &str) {
        let tried = tripod_wait::until_async(format!("object {object}"), || {
            let (mut client, local) = (self.client.clone(), self.local.clone());
            let order = self.order(object, from);
            async move {
                client.start_delivery(order).await.expect("acknowledged");
                local.get(ObjectId(object), Some(ROUND)).await.ok()
            }
        });
        drop(tried.await);
        self.expect(object, len).await;
    }

    fn order(&self, object: u64, from: &str) -> StartDeliveryRequest {
        StartDeliveryRequest {
            objstore_address: from.to_owned(),
            objectid: object,
            objstoreid: Some(self.id.0),
        }
    }

    pub(crate) async fn until_used(&self, bytes: u64) {
        let used = || {
            let mut client = self.client.clone();
            async move {
                let told = client.obj_store_info(ObjStoreInfoRequest::default()).await.expect("told");
                (told.into_inner().used_bytes == bytes).then_some(())
            }
        };
        tripod_wait::until_async(format!("{bytes} bytes to be in use"), used).await;
    }

    pub(crate) async fn info(&mut self) -> ObjStoreInfoReply {
        self.client.obj_store_info(ObjStoreInfoRequest::default()).await.expect("told").into_inner()
    }
}

/// An object, which must come, or be told not to.
pub(crate) async fn get(local: &Connection, object: u64) -> Result<Object, LocalError> {
    tripod_wait::within(format!("object {object}"), local.get(ObjectId(object), Some(LONG))).await
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
