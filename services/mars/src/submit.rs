//! Graphs to commands: whole ones, and those that come in parts. What a graph consists of is put into the log in one command,
//! or in several that are seen when the last one is there.

use bytes::Bytes;
use tonic::Status;
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::{Answer as AnyAnswer, Scope};

use crate::deadline::length;
use crate::domain::{self, Answer, Digest, DurationMs, GraphName, GraphState, Options, Request, limits};
use crate::encode;
use crate::front::{Front, joined};
use crate::graph::{Plan, Planned, Source, Wanted};
use crate::limits::PART_BYTES_MAX;
use crate::parts::{Cut, cut};
use crate::status;

/// A call that submits a graph, whichever kind it is.
pub(crate) struct Submission<N> {
    pub(crate) request_id: String,
    pub(crate) session_id: String,
    pub(crate) graph_key: String,
    pub(crate) nodes: Option<Vec<N>>,
    pub(crate) part: Option<pb::GraphPart>,
    pub(crate) target_keys: Vec<String>,
    pub(crate) options: Option<pb::GraphOptions>,
}

/// A graph as it is put into the log.
struct Ready {
    digest: Digest,
    targets: Vec<String>,
    content: Cut,
}

/// What became of a graph.
struct Submitted {
    state: GraphState,
    created: bool,
    chunks: u64,
}

impl Front {
    pub(crate) async fn submit_graph<N: Planned>(
        &self,
        scope: Scope,
        call: Submission<N>,
    ) -> Result<pb::SubmitGraphResponse, Status> {
        let options = options(call.options.as_ref())?;
        if call.target_keys.len() as u64 > limits::TARGETS_MAX {
            let most = usize::try_from(limits::TARGETS_MAX).unwrap_or(usize::MAX);
            return Err(status::too_many("target_keys", call.target_keys.len(), most));
        }
        let graph = GraphName { session: call.session_id, kind: N::KIND, key: call.graph_key };
        let nodes = match (call.nodes, call.part) {
            (Some(_), Some(_)) => {
                return Err(status::invalid("part: the graph is in the request already"));
            }
            (whole, None) => Source::Whole(whole.unwrap_or_default()),
            (None, Some(part)) => match self.upload(scope, &graph, part).await? {
                Some(bytes) => Source::Parts(bytes),
                None => {
                    let coming = Submitted { state: GraphState::Preparing, created: false, chunks: 0 };
                    return Ok(self.submitted(&coming));
                }
            },
        };
        let wanted =
            Wanted { target_keys: call.target_keys, options: call.options, helpers: self.shared.helpers };
        let work = move || {
            let Plan { digest, content, targets } = N::plan(nodes, wanted)?;
            Ok(Ready { digest, targets, content: cut(content) })
        };
        let ready = self.shared.turns.work(scope.job, &graph.session, work).await?;
        let submitted = self.commit(scope, call.request_id, graph, options, ready).await?;
        Ok(self.submitted(&submitted))
    }

    fn submitted(&self, submitted: &Submitted) -> pb::SubmitGraphResponse {
        pb::SubmitGraphResponse {
            header: Some(self.header()),
            state: encode::graph_state(submitted.state).into(),
            created: submitted.created,
            chunk_count: submitted.chunks,
        }
    }

    /// Keeps a part. Gives all of them when the last one is there.
    async fn upload(
        &self,
        scope: Scope,
        graph: &GraphName,
        part: pb::GraphPart,
    ) -> Result<Option<Bytes>, Status> {
        if part.bytes.len() > PART_BYTES_MAX {
            return Err(status::too_many("bytes of a part", part.bytes.len(), PART_BYTES_MAX));
        }
        let (offset, is_last) = (part.offset, part.last);
        let request = Request::Upload { graph: graph.clone(), offset, bytes: part.bytes, is_last };
        // By its offset the state knows a part that comes again.
        match self.ask(scope, String::new(), request).await? {
            Answer::Uploaded { complete: false, .. } => Ok(None),
            Answer::Uploaded { complete: true, .. } => {
                let named = graph.clone();
                let look = move |state: &tripod_state::State| domain::upload(state, scope, &named);
                let parts = self.read(Consistency::Linearizable, look).await?;
                Ok(Some(joined(parts.map_err(|fault| status::of_fault(&fault))?)))
            }
            other => Err(status::unexpected(&other)),
        }
    }

    /// Puts a graph into the log: at once, or as a draft in parts.
    async fn commit(
        &self,
        scope: Scope,
        request_id: String,
        graph: GraphName,
        options: Options,
        ready: Ready,
    ) -> Result<Submitted, Status> {
        let Ready { digest, targets, content } = ready;
        let parts = match content {
            Cut::Whole(content) => {
                let request = Request::Submit { graph, digest, options, targets, content };
                let answer = self.ask(scope, request_id, request).await?;
                return submitted(answer).map(|(_, submitted)| submitted);
            }
            Cut::Parts(parts) => parts,
        };
        // The key says which graph it is: one that is begun again with the same bytes is the same.
        let begin = Request::Begin { graph: graph.clone(), digest, options, targets };
        let (draft, begun) = submitted(self.ask(scope, String::new(), begin).await?)?;
        if begun.state != GraphState::Preparing {
            return Ok(begun);
        }
        self.add_parts(scope, &graph, draft, parts).await?;
        let commit = Request::Commit { graph, draft };
        submitted(self.ask(scope, String::new(), commit).await?).map(|(_, submitted)| submitted)
    }

    /// Replicates what a client asks.
    pub(crate) async fn ask(
        &self,
        scope: Scope,
        request_id: String,
        request: Request,
    ) -> Result<Answer, Status> {
        match self.submit(domain::asks(scope, request_id, request)).await? {
            AnyAnswer::Mars(answer) => Ok(answer),
            other => Err(status::unexpected(&other)),
        }
    }
}

fn submitted(answer: Answer) -> Result<(domain::GraphNo, Submitted), Status> {
    match answer {
        Answer::Graph { graph, state, created, chunks } => Ok((graph, Submitted { state, created, chunks })),
        other => Err(status::unexpected(&other)),
    }
}

fn options(message: Option<&pb::GraphOptions>) -> Result<Options, Status> {
    let message = message.copied().unwrap_or_default();
    let time = |field, length_of: Option<&prost_types::Duration>| {
        let told = length_of.map(|told| length(field, told)).transpose()?;
        let in_ms = told.map(|told| DurationMs(u64::try_from(told.as_millis()).unwrap_or(u64::MAX)));
        // None of it, as other programs write what they do not say.
        Ok::<_, Status>(in_ms.filter(|length| length.0 > 0))
    };
    Ok(Options {
        priority: message.priority,
        max_reschedules: message.max_reschedules,
        timeout_ms: time("timeout", message.timeout.as_ref())?,
        result_ttl_ms: time("result_ttl", message.result_ttl.as_ref())?,
        fuse: message.fuse,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_none_are_not_said_and_wrong_ones_are_refused() {
        let message = |seconds| pb::GraphOptions {
            timeout: Some(prost_types::Duration { seconds, nanos: 0 }),
            ..Default::default()
        };
        assert_eq!(options(Some(&message(3))).unwrap().timeout_ms, Some(DurationMs(3_000)));
        assert_eq!(options(Some(&message(0))).unwrap().timeout_ms, None);
        assert_eq!(options(None).unwrap(), Options::default());
        assert!(options(Some(&message(-1))).unwrap_err().message().starts_with("timeout"));
    }
}
