//! One mutable tensor after the other: several clients use it, one of them has it sealed under their writes, everything of it
//! is read once more, and some are deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::{join, join_all};
use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tripod_checkers::history::{Call, ClientId, Outcome, Refusal, Reply, TensorAct, TensorName, Timestamp};
use tripod_proto::mars::v1 as pb;

use super::super::setting::Setting;
use super::caller::{Caller, missing, missing_or_busy, tensor_seen};
use super::cells::{CELLS, CHUNK_CELLS};
use super::writer::{Shared, Writer};
use super::{AGAIN_PAUSE, LAST_PATIENCE, Mars, fetch};

const TENSORS: usize = 2;
/// Clients of a tensor.
const WRITERS: usize = 3;
/// How long it is written to, at least and at most.
const OPEN_MS: std::ops::Range<u64> = 1_500..6_000;
const LIMIT: Duration = Duration::from_secs(5);
/// How long a node is waited for that has a tensor sealed.
const SEAL_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    for _ in 0..TENSORS {
        clients.spawn(run(setting.clone(), setting.client_id()));
    }
}

async fn run(setting: Setting, id: ClientId) {
    let Some(mut caller) = Caller::begin(setting, id).await else { return };
    while caller.setting.goes_on() {
        match create(&mut caller).await {
            Some(shared) => caller = use_up(caller, Arc::new(shared)).await,
            None => tokio::time::sleep(AGAIN_PAUSE).await,
        }
    }
}

/// Creates one, every other one with two copies.
async fn create(caller: &mut Caller) -> Option<Shared> {
    let name = format!("t{}", caller.setting.fresh());
    let tensor = TensorName::from(format!("{}/{name}", caller.session));
    let replicas = if caller.random.random_bool(0.6) { 2 } else { 1 };
    while caller.setting.goes_on() {
        let request = pb::CreateMutableTensorRequest {
            session_id: caller.session.clone(),
            name: name.clone(),
            shape: vec![CELLS],
            dtype: pb::ElementType::I64.into(),
            chunk_size: vec![CHUNK_CELLS],
            replicas,
            if_not_exist: true,
            ..Default::default()
        };
        let call = Call::Tensor { tensor: tensor.clone(), act: TensorAct::Create };
        let send = |mut mars: Mars| async move { mars.create_mutable_tensor(request).await };
        let (_, told) = caller.record(call, LIMIT, send, seen, |_| None).await;
        if let Some(info) = told.and_then(|told| told.info) {
            return Some(Shared { name, tensor, info: Mutex::new(info), over: AtomicBool::new(false) });
        }
        tokio::time::sleep(AGAIN_PAUSE).await;
    }
    None
}

fn seen(answer: &pb::MutableResponse) -> Result<Reply, String> {
    let info = answer.info.as_ref().ok_or("an answer that says nothing of the tensor")?;
    tensor_seen(info).map(Reply::Tensor)
}

async fn use_up(caller: Caller, shared: Arc<Shared>) -> Caller {
    let writers = (0..WRITERS).map(|_| Writer::new(caller.beside(), Arc::clone(&shared)).run());
    let writers = join_all(writers.collect::<Vec<_>>());
    let sealing = async {
        let mut sealer = Sealer { writer: Writer::new(caller, Arc::clone(&shared)) };
        sealer.hold_open().await;
        let sealed = sealer.seal().await;
        shared.over.store(true, Ordering::Relaxed);
        sealer.look_back(sealed).await;
        sealer.writer.caller
    };
    join(writers, sealing).await.1
}

/// Who has the tensor sealed.
struct Sealer {
    writer: Writer,
}

/// What it was sealed as.
struct Sealed {
    at: Option<Timestamp>,
    /// Of each chunk, the key by which it is read now.
    chunks: Vec<String>,
}

impl Sealer {
    async fn hold_open(&mut self) {
        let open_ms = self.writer.caller.random.random_range(OPEN_MS);
        let open = tokio::time::sleep(Duration::from_millis(open_ms));
        let mut stop = self.writer.caller.setting.stop.clone();
        tokio::select! {
            () = open => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Until it is, or is lost.
    async fn seal(&mut self) -> Option<Sealed> {
        let at = self.writer.caller.random.random_bool(0.5).then(|| self.writer.time());
        let deadline = Instant::now() + LAST_PATIENCE;
        loop {
            match self.ask(at).await {
                (Outcome::Ok(Reply::Done), Some(told)) => {
                    let chunks = told.meta.map(|meta| meta.chunk_keys).unwrap_or_default();
                    return Some(Sealed { at, chunks });
                }
                // It is not there, or is lost, which somebody must be told.
                (Outcome::Ok(_), _) => {
                    self.writer.look().await;
                    return None;
                }
                _ if Instant::now() >= deadline => return None,
                // The epoch may be another one by now.
                _ => drop(self.writer.look().await),
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }

    async fn ask(&mut self, at: Option<Timestamp>) -> (Outcome, Option<pb::SealMutableTileableResponse>) {
        let request = pb::SealMutableTileableRequest {
            session_id: self.writer.caller.session.clone(),
            name: self.writer.shared.name.clone(),
            timestamp_ns: at.map(|at| at.0),
            ..Default::default()
        };
        let tensor = self.writer.shared.tensor.clone();
        let call = Call::Tensor { tensor, act: TensorAct::Seal { at } };
        let send = |mut mars: Mars| async move { mars.seal_mutable_tileable(request).await };
        let done = |_: &pb::SealMutableTileableResponse| Ok(Reply::Done);
        self.writer.caller.record(call, SEAL_LIMIT, send, done, missing_or_busy).await
    }

    /// What is sealed stays as it is: another seal is refused, and so are writes; and it is read in both ways.
    async fn look_back(&mut self, sealed: Option<Sealed>) {
        if let Some(Sealed { at, chunks }) = sealed {
            let other = Some(Timestamp(at.map_or(1, |at| at.0 + 1)));
            drop(self.ask(other).await);
            self.writer.look().await;
            let epoch = self.writer.epoch();
            self.writer.write(epoch).await;
            for (place, key) in (0..CELLS / CHUNK_CELLS).zip(&chunks) {
                let cells = fetch::sealed(&mut self.writer.caller, key).await;
                self.writer.note_sealed(place, &cells.map_err(Status::unavailable));
                self.writer.read(place, at).await;
                self.writer.read(place, None).await;
            }
        }
        if self.writer.caller.random.random_bool(0.5) {
            self.delete().await;
        }
    }

    async fn delete(&mut self) {
        let request = pb::DeleteMutableTileableRequest {
            session_id: self.writer.caller.session.clone(),
            name: self.writer.shared.name.clone(),
            ..Default::default()
        };
        let tensor = self.writer.shared.tensor.clone();
        let call = Call::Tensor { tensor, act: TensorAct::Delete };
        let send = |mut mars: Mars| async move { mars.delete_mutable_tileable(request).await };
        let done = |answer: &pb::DeleteMutableTileableResponse| {
            Ok(if answer.deleted { Reply::Done } else { Reply::Refused(Refusal::Missing) })
        };
        let (outcome, _) = self.writer.caller.record(call, LIMIT, send, done, missing).await;
        if outcome.acknowledged() {
            self.writer.look().await;
        }
    }
}
