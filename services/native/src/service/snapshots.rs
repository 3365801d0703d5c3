//! `tripod.v1.Snapshots`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};
use tripod_audit::{Auditor, Record};
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::tripod::v1::save_part::Part;
use tripod_proto::tripod::v1::snapshots_server::Snapshots;
use tripod_proto::tripod::v1::{SaveBegin, SavePart, SaveRequest};

use crate::audited::{audited, call};
use crate::status;

/// The parts of a snapshot, as they are made.
type Saving = Pin<Box<dyn Stream<Item = Result<SavePart, Status>> + Send>>;

pub(super) struct Service {
    gateway: Gateway,
    auditor: Auditor,
}

impl Service {
    pub(super) fn new(gateway: Gateway, auditor: Auditor) -> Self {
        Self { gateway, auditor }
    }

    async fn begin(&self, local: bool) -> Result<Response<Saving>, Status> {
        let freshness = if local { Consistency::Local } else { Consistency::Linearizable };
        let read = self.gateway.read(freshness, |_| ()).await;
        read.map_err(|outage| status::of_outage(&outage))?;
        let saving = self.gateway.admin().save_snapshot().map_err(|error| status::of_save(&error))?;
        let begin = SaveBegin {
            cluster_id: saving.cluster_id,
            node_id: self.gateway.admin().status().node.0,
            index: saving.index.0,
            term: saving.term.0,
            key_bytes: saving.key_bytes,
        };
        let first = tokio_stream::once(Ok(SavePart { part: Some(Part::Begin(begin)) }));
        let is_whole = Arc::new(AtomicBool::new(true));
        let so_far = Arc::clone(&is_whole);
        let parts = ReceiverStream::new(saving.parts).map(move |part| match part {
            Ok(data) => Ok(SavePart { part: Some(Part::Data(data)) }),
            Err(error) => {
                so_far.store(false, Ordering::Relaxed);
                Err(Status::internal(format!("the snapshot could not be written: {error}")))
            }
        });
        // Asked for when all parts were taken.
        let last = self.gateway.last_backup().clone();
        let end = tokio_stream::iter(std::iter::from_fn(move || {
            if is_whole.load(Ordering::Relaxed) {
                last.note(SystemTime::now());
            }
            None
        }));
        Ok(Response::new(Box::pin(first.chain(parts).chain(end))))
    }
}

#[tonic::async_trait]
impl Snapshots for Service {
    type SaveStream = Saving;

    async fn save(&self, request: Request<SaveRequest>) -> Result<Response<Saving>, Status> {
        // Whoever has a snapshot has every key and value of every job.
        let record = call(request.extensions(), "Snapshots/Save");
        let local = request.into_inner().local;
        let of = if local { "the state as this node has it" } else { "the state" };
        audited(&self.auditor, Record { resource: of.into(), ..record }, self.begin(local)).await
    }
}
