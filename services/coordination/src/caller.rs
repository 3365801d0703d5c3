//! What a request says besides its message.

use tonic::metadata::MetadataMap;
use tripod_gateway::{Gateway, Outage};
use tripod_proto::metadata;
use tripod_state::ids::{JobId, Sequence, SessionId};
use tripod_state::job::Poll;
use tripod_state::{Command, Envelope, Reply, Stamp};

use crate::attempt::Attempt;

/// Who calls, for which job, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) job: JobId,
    pub(crate) attempt: Attempt,
    /// The call's place in a session of the caller's own.
    stamp: Option<Stamp>,
    /// Between the client and us is something that outlives this connection and sends calls again.
    pub(crate) lasting: bool,
}

impl Caller {
    pub(crate) fn of(metadata: &MetadataMap, job: JobId) -> Self {
        Self {
            job,
            attempt: Attempt::of(metadata),
            stamp: text(metadata, metadata::STAMP).and_then(stamp),
            lasting: text(metadata, metadata::LASTING) == Some("1"),
        }
    }

    /// Replicates a command, marked if it was sent before, and waits for its outcome. The caller's own
    /// stamp makes it take effect once; without one, this node's.
    pub(crate) fn call(
        self,
        gateway: &Gateway,
        command: Command,
    ) -> impl Future<Output = Result<Reply, Outage>> + Send {
        gateway.call_as(self.stamp, self.marked(command))
    }

    /// [`Self::call`] without the waiting: what waits is answered with its ticket.
    pub(crate) async fn submit(self, gateway: &Gateway, command: Command) -> Result<Reply, Outage> {
        let command = self.marked(command);
        match self.stamp {
            None => gateway.submit(command).await,
            stamp => gateway.submit_stamped(Envelope { stamp, command }).await,
        }
    }

    fn marked(self, command: Command) -> Command {
        if self.attempt.is_retry() { Command::Retried(Box::new(command)) } else { command }
    }

    /// The caller as if gRPC would not repeat its call: what is right when this connection is about to end
    /// on purpose.
    pub(crate) fn for_the_last_time(self) -> Self {
        Self { attempt: Attempt::LAST, ..self }
    }

    /// Whether a poll of this caller is to be held. The end of a connection reaches a client whose gRPC
    /// repeats the call no more, so it is not waited for, and neither is the attempt before that one: a node's
    /// death may come right after it, before the cluster has answered the next.
    pub(crate) fn poll_wish(self) -> Option<Poll> {
        if self.lasting { Some(Poll::Hold) } else { self.attempt.is_nearly_last().then_some(Poll::Release) }
    }
}

/// The name of the job that the caller wants, whatever port it came in by.
pub(crate) fn job_name(metadata: &MetadataMap) -> Option<&str> {
    text(metadata, metadata::JOB)
}

fn text<'a>(metadata: &'a MetadataMap, key: &str) -> Option<&'a str> {
    metadata.get(key)?.to_str().ok()
}

/// Three numbers with dots between them. What is none is no stamp: the call is then executed like any
/// other client's.
fn stamp(text: &str) -> Option<Stamp> {
    let mut numbers = text.split('.');
    let session = numbers.next()?.parse().ok().map(SessionId::of_client)?;
    let mut next = || numbers.next()?.parse().ok().map(Sequence);
    let stamp = Stamp { session, sequence: next()?, acknowledged_below: next()? };
    numbers.next().is_none().then_some(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(pairs: &[(&'static str, &str)]) -> Caller {
        let mut metadata = MetadataMap::new();
        for (key, value) in pairs {
            metadata.insert(*key, value.parse().unwrap());
        }
        Caller::of(&metadata, JobId(1))
    }

    #[test]
    fn a_stamp_is_three_numbers() {
        let stamped = caller(&[(metadata::STAMP, "7.12.9")]).stamp.unwrap();
        assert_eq!((stamped.session, stamped.sequence), (SessionId(7), Sequence(12)));
        assert_eq!(stamped.acknowledged_below, Sequence(9));
        let wide = caller(&[(metadata::STAMP, "36893488147419103241.1.1")]).stamp.unwrap();
        assert_eq!(wide.session, SessionId((2 << 64) | 9));
        for garbage in ["", "7", "7.12", "7.12.9.1", "7.x.9", "7.-1.9", "7..9", "7.12.9."] {
            assert_eq!(caller(&[(metadata::STAMP, garbage)]).stamp, None, "{garbage:?}");
        }
    }

    #[test]
    fn polls_are_held_where_the_path_lasts_and_released_where_they_could_not_be_repeated() {
        let retry = "grpc-previous-rpc-attempts";
        assert_eq!(caller(&[]).poll_wish(), None);
        assert_eq!(caller(&[(retry, "2")]).poll_wish(), None);
        assert_eq!(caller(&[(retry, "3")]).poll_wish(), Some(Poll::Release));
        assert_eq!(caller(&[(retry, "4")]).poll_wish(), Some(Poll::Release));
        assert_eq!(caller(&[(metadata::LASTING, "1"), (retry, "4")]).poll_wish(), Some(Poll::Hold));
        assert_eq!(caller(&[(metadata::LASTING, "yes")]).poll_wish(), None);
    }

    #[test]
    fn a_retry_is_marked_for_the_state_machine() {
        let command = || Command::Session(tripod_state::session::Command::Open);
        assert_eq!(caller(&[]).marked(command()), command());
        let retry = caller(&[("grpc-previous-rpc-attempts", "1")]);
        assert_eq!(retry.marked(command()), Command::Retried(Box::new(command())));
    }
}
