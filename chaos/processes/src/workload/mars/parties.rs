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
use super::member::{Member, Shared};
use super::{AGAIN_PAUSE, LAST_PATIENCE, Mars, fetch};

const PARTIES: usize = 2;
/// Clients of a tensor.
const MEMBERS: usize = 3;
/// How long it is written to, at least and at most.
const OPEN_MS: std::ops::Range<u64> = 1_500..6_000;
const LIMIT: Duration = Duration::from_secs(5);
/// How long a node is waited for that has a tensor sealed.
const SEAL_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    for _ in 0..PARTIES {
        clients.spawn(run(setting.clone(), setting.client_id()));
    }
}

async fn run(setting: Setting, id: ClientId) {
    let Some(mut host) = Caller::begin(setting, id).await else { return };
    while host.setting.goes_on() {
        match create(&mut host).await {
            Some(shared) => host = party(host, Arc::new(shared)).await,
            None => tokio::time::sleep(AGAIN_PAUSE).await,
        }
    }
}

/// Creates one, every other one with two copies.
async fn create(host: &mut Caller) -> Option<Shared> {
    let name = format!("t{}", host.setting.fresh());
    let tensor = TensorName::from(format!("{}/{name}", host.session));
    let replicas = if host.random.random_bool(0.6) { 2 } else { 1 };
    while host.setting.goes_on() {
        let request = pb::CreateMutableTensorRequest {
            session_id: host.session.clone(),
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
        let (_, told) = host.record(call, LIMIT, send, seen, |_| None).await;
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

async fn party(host: Caller, shared: Arc<Shared>) -> Caller {
    let members = (0..MEMBERS).map(|_| Member::new(host.beside(), Arc::clone(&shared)).run());
    let members = join_all(members.collect::<Vec<_>>());
    let sealing = async {
        let mut sealer = Sealer { member: Member::new(host, Arc::clone(&shared)) };
        sealer.hold_open().await;
        let sealed = sealer.seal().await;
        shared.over.store(true, Ordering::Relaxed);
        sealer.look_back(sealed).await;
        sealer.member.caller
    };
    join(members, sealing).await.1
}

/// Who has the tensor sealed.
struct Sealer {
    member: Member,
}

/// What it was sealed as.
struct Sealed {
    at: Option<Timestamp>,
    /// Of each chunk, the key by which it is read now.
    chunks: Vec<String>,
}

impl Sealer {
    async fn hold_open(&mut self) {
        let open_ms = self.member.caller.random.random_range(OPEN_MS);
        let open = tokio::time::sleep(Duration::from_millis(open_ms));
        let mut stop = self.member.caller.setting.stop.clone();
        tokio::select! {
            () = open => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Until it is, or is lost.
    async fn seal(&mut self) -> Option<Sealed> {
        let at = self.member.caller.random.random_bool(0.5).then(|| self.member.time());
        let deadline = Instant::now() + LAST_PATIENCE;
        loop {
            match self.ask(at).await {
                (Outcome::Ok(Reply::Done), Some(told)) => {
                    let chunks = told.meta.map(|meta| meta.chunk_keys).unwrap_or_default();
                    return Some(Sealed { at, chunks });
                }
                // It is not there, or is lost, which somebody must be told.
                (Outcome::Ok(_), _) => {
                    self.member.look().await;
                    return None;
                }
                _ if Instant::now() >= deadline => return None,
                // The epoch may be another one by now.
                _ => drop(self.member.look().await),
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }

    async fn ask(&mut self, at: Option<Timestamp>) -> (Outcome, Option<pb::SealMutableTileableResponse>) {
        let request = pb::SealMutableTileableRequest {
            session_id: self.member.caller.session.clone(),
            name: self.member.shared.name.clone(),
            timestamp_ns: at.map(|at| at.0),
            ..Default::default()
        };
        let tensor = self.member.shared.tensor.clone();
        let call = Call::Tensor { tensor, act: TensorAct::Seal { at } };
        let send = |mut mars: Mars| async move { mars.seal_mutable_tileable(request).await };
        let done = |_: &pb::SealMutableTileableResponse| Ok(Reply::Done);
        self.member.caller.record(call, SEAL_LIMIT, send, done, missing_or_busy).await
    }

    /// What is sealed stays as it is: another seal is refused, and so are writes; and it is read in both ways.
    async fn look_back(&mut self, sealed: Option<Sealed>) {
        if let Some(Sealed { at, chunks }) = sealed {
            let other = Some(Timestamp(at.map_or(1, |at| at.0 + 1)));
            drop(self.ask(other).await);
            self.member.look().await;
            let epoch = self.member.epoch();
            self.member.write(epoch).await;
            for (place, key) in (0..CELLS / CHUNK_CELLS).zip(&chunks) {
                let cells = fetch::sealed(&mut self.member.caller, key).await;
                self.member.note_sealed(place, &cells.map_err(Status::unavailable));
                self.member.read(place, at).await;
                self.member.read(place, None).await;
            }
        }
        if self.member.caller.random.random_bool(0.5) {
            self.delete().await;
        }
    }

    async fn delete(&mut self) {
        let request = pb::DeleteMutableTileableRequest {
            session_id: self.member.caller.session.clone(),
            name: self.member.shared.name.clone(),
            ..Default::default()
        };
        let tensor = self.member.shared.tensor.clone();
        let call = Call::Tensor { tensor, act: TensorAct::Delete };
        let send = |mut mars: Mars| async move { mars.delete_mutable_tileable(request).await };
        let done = |answer: &pb::DeleteMutableTileableResponse| {
            Ok(if answer.deleted { Reply::Done } else { Reply::Refused(Refusal::Missing) })
        };
        let (outcome, _) = self.member.caller.record(call, LIMIT, send, done, missing).await;
        if outcome.acknowledged() {
            self.member.look().await;
        }
    }
}
