//! `tripod.v1.RayLine`: the batches of one process, one after the other over one stream.

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tripod_gate::Admitted;
use tripod_proto::tripod::v1 as pb;
use tripod_proto::tripod::v1::ray_line_server::RayLine;
use tripod_state::ids::JobId;

use crate::caller::Caller;
use crate::front::Front;
use crate::leader::Known;
use crate::{batch, front, oversize};

/// Streams of batches at one port.
pub(crate) struct Service {
    front: Front,
}

/// One process's stream.
struct BatchStream {
    front: Front,
    job: JobId,
    caller: Caller,
    /// What is checked of the parts of its batches, if something is.
    admitted: Option<Admitted>,
    /// What the process was told last.
    leader: Mutex<Known>,
}

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }
}

#[tonic::async_trait]
impl RayLine for Service {
    type BatchesStream = Pin<Box<dyn Stream<Item = Result<pb::RayLineResponse, Status>> + Send>>;

    async fn batches(
        &self,
        request: Request<Streaming<pb::RayLineRequest>>,
    ) -> Result<Response<Self::BatchesStream>, Status> {
        let (metadata, extensions, messages) = request.into_parts();
        let caller = Caller::of(&metadata)?;
        let job = self.front.job(&metadata).await?;
        let mut leader = self.front.leader.clone();
        leader.mark_changed();
        let (front, admitted) = (self.front.clone(), Admitted::of(&extensions).cloned());
        let stream = Arc::new(BatchStream { front, job, caller, admitted, leader: Mutex::new(leader) });
        // The next message is looked at when this one is answered; a status ends the stream.
        let answers = messages.then(move |message| {
            let stream = Arc::clone(&stream);
            async move { stream.answer(message).await }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

impl BatchStream {
    async fn answer(
        &self,
        message: Result<pb::RayLineRequest, Status>,
    ) -> Result<pb::RayLineResponse, Status> {
        let message = message.map_err(|status| oversize::mended(&status).unwrap_or(status))?;
        let caller = self.caller.at(message.seq, message.acked)?;
        let (admitted, batch) = (self.admitted.as_ref(), message.batch.unwrap_or_default());
        let answered = self.front.batch(self.job, caller, admitted, batch).await?;
        let replayed = answered.replayed;
        let batch = front::encoded(answered.answer, replayed, |answer| batch::encode(answer, replayed))?;
        Ok(pb::RayLineResponse { batch: Some(batch), leader: self.news().unwrap_or_default() })
    }

    /// The leader's address, if it is another one than the process was told.
    fn news(&self) -> Option<String> {
        let mut leader = self.leader.lock();
        if leader.has_changed().unwrap_or(false) { leader.borrow_and_update().address.clone() } else { None }
    }
}
