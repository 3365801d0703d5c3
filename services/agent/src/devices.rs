//! The exchange of devices, whose answer is the same for all clients of the host: it comes from the cluster once.
//!
//! Every client's call is passed on, because it brings the client's own devices. But nodes are asked to answer it with the
//! name of the answer, and only the first client of a name has the answer sent; the others get its bytes. A name stands for
//! everything of which an answer is made, so it is not this agent that knows when one has become another: a task that came
//! back, another life of the service, another layout, all are another name. This is the one thing that an agent keeps of what
//! nodes say to clients.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tonic::Status;
use tripod_port::{CallBytes, CallerConnection};
use tripod_proto::metadata::{DEVICES_DIGEST, DEVICES_WHOLE};

use crate::answer_bytes::{AnswerBytes, NoRoom, refusal};
use crate::calls::Call;
use crate::forward::Forwarder;
use crate::message::{Message, Reply};

/// Answers that are kept: of one life of a job, and of the one before for those that are late, in both layouts.
const ANSWERS_MAX: usize = 4;
/// Bytes of an answer that is kept. A longer one each client has sent to it, as it would have without the agent.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// A name that is longer is none that a node gives.
const NAME_BYTES_MAX: usize = 64;

/// The answers that are kept. Whoever needs one that is on its way waits for it.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// The oldest first.
    answers: Mutex<VecDeque<(String, Kept)>>,
}

type Kept = Arc<OnceCell<Bytes>>;

/// How a client's call is passed on.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) forwarder: &'a Forwarder,
    pub(crate) caller: CallerConnection,
    pub(crate) bytes: &'a CallBytes,
}

impl Asking<'_> {
    async fn call(&self, message: &Message, call: Call) -> Result<Reply, Status> {
        self.forwarder.call(message, self.caller, self.answer_bytes(), call).await
    }

    fn answer_bytes(&self) -> AnswerBytes {
        AnswerBytes::of(self.bytes.clone())
    }
}

impl Devices {
    /// Passes a client's call on, which may be made twice: the cluster takes the devices of the first and knows the second
    /// again.
    ///
    /// # Errors
    /// As those of [`Forwarder::call`].
    pub(crate) async fn exchange(
        &self,
        asking: &Asking<'_>,
        message: &Message,
        call: Call,
    ) -> Result<Reply, Status> {
        let told = asking.call(&message.naming_devices(DEVICES_DIGEST), call).await?;
        // An older node has answered as ever, and a refusal names nothing.
        let name = told.devices().filter(|_| told.is_ok()).map(str::to_owned);
        let Some(name) = name else { return Ok(told) };
        let whole = message.naming_devices(DEVICES_WHOLE);
        if name.len() > NAME_BYTES_MAX {
            return asking.call(&whole, call).await;
        }
        let (kept, mut own) = (self.kept(&name), None);
        let sent = async {
            let reply = asking.call(&whole, call).await;
            let body = reply.as_ref().ok().and_then(|reply| worth_keeping(reply, &name));
            own = Some(reply);
            body.ok_or(())
        };
        // Of those who wait one at a time has it sent, until one has got what may be kept.
        let body = kept.get_or_try_init(move || sent).await.cloned();
        // Who has had it sent gets what was sent, whatever that is.
        match (own, body) {
            (Some(reply), _) => reply,
            (None, Ok(body)) => of_kept(&body, asking.answer_bytes()).await,
            (None, Err(())) => asking.call(&whole, call).await,
        }
    }

    /// The place of an answer; the oldest one gives way.
    fn kept(&self, name: &str) -> Kept {
        let mut answers = self.answers.lock();
        if let Some((_, kept)) = answers.iter().find(|(known, _)| known == name) {
            return Arc::clone(kept);
        }
        if answers.len() >= ANSWERS_MAX {
            answers.pop_front();
        }
        let kept = Kept::default();
        answers.push_back((name.to_owned(), Arc::clone(&kept)));
        kept
    }
}

/// The body of an answer that is the one of this name, if it may be kept.
fn worth_keeping(reply: &Reply, name: &str) -> Option<Bytes> {
    let body = reply.plain_body()?;
    (reply.devices() == Some(name) && body.len() <= ANSWER_BYTES_MAX).then_some(body)
}

/// The answer to one client, when there is room for it.
async fn of_kept(body: &Bytes, mut answer_bytes: AnswerBytes) -> Result<Reply, Status> {
    loop {
        match Reply::of_kept(body.clone(), &answer_bytes) {
            Ok(reply) => return Ok(reply),
            Err(NoRoom::Short(short)) => return Err(refusal(short)),
            Err(NoRoom::Unread) => answer_bytes.wait().await.map_err(refusal)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_place_each_and_the_oldest_gives_way() {
        let devices = Devices::default();
        let first = devices.kept("0");
        assert!(Arc::ptr_eq(&first, &devices.kept("0")));
        for name in 1..=ANSWERS_MAX {
            devices.kept(&name.to_string());
        }
        assert_eq!(devices.answers.lock().len(), ANSWERS_MAX);
        assert!(!Arc::ptr_eq(&first, &devices.kept("0")));
    }
}
