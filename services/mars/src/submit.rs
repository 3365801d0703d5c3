//! Graphs to commands: whole ones, and those that come in parts. What a graph consists of is put into the log in one command,
//! or in several that are seen when the last one is there.

use bytes::Bytes;
use tonic::Status;
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::{Answer as AnyAnswer, Command, Scope};

use crate::deadline::length;
use crate::domain::{
    self, Answer, Chunk, DurationMs, Graph, GraphName, GraphState, Input, Options, Part, Request, Tileable,
    limits,
};
use crate::encode;
use crate::front::{Front, joined};
use crate::graph::{Plan, Planned, Source, Wanted};
use crate::limits::{COMMAND_BYTES, PART_BYTES_MAX};
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
        let plan = self.shared.turns.work(scope.job, &graph.session, move || N::plan(nodes, wanted)).await?;
        let submitted = self.commit(scope, call.request_id, graph, options, plan).await?;
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
        plan: Plan,
    ) -> Result<Submitted, Status> {
        let Plan { digest, content, targets } = plan;
        let mut parts = parts(content);
        if parts.len() <= 1 {
            let content = parts.pop().map(|part| part.content).unwrap_or_default();
            let request = Request::Submit { graph, digest, options, targets, content };
            return submitted(self.ask(scope, request_id, request).await?).map(|(_, submitted)| submitted);
        }
        // The key says which graph it is: one that is begun again with the same bytes is the same.
        let begin = Request::Begin { graph: graph.clone(), digest, options, targets };
        let (draft, begun) = submitted(self.ask(scope, String::new(), begin).await?)?;
        if begun.state != GraphState::Preparing {
            return Ok(begun);
        }
        for part in parts {
            let add = Request::Add { graph: graph.clone(), draft, part };
            match self.ask(scope, String::new(), add).await? {
                Answer::Done => {}
                other => return Err(status::unexpected(&other)),
            }
        }
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
        let command = Command::Mars(domain::Command::Ask { scope, request_id, request });
        match self.submit(command).await? {
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

/// A graph as parts, each of which fits a command.
fn parts(content: Graph) -> Vec<Part> {
    let mut cut = Cut::default();
    for chunk in content.chunks {
        cut.room(weight_of_chunk(&chunk));
        cut.part.content.chunks.push(chunk);
    }
    for tileable in content.tileables {
        cut.room(weight_of_tileable(&tileable));
        cut.part.content.tileables.push(tileable);
    }
    cut.parts.push(cut.part);
    cut.parts
}

#[derive(Default)]
struct Cut {
    parts: Vec<Part>,
    part: Part,
    bytes: u64,
}

impl Cut {
    /// Begins another part if so much more has no place in this one.
    fn room(&mut self, bytes: u64) {
        let content = &self.part.content;
        let is_full = content.chunks.len() as u64 >= limits::COMMAND_CHUNKS_MAX
            || self.bytes.saturating_add(bytes) > COMMAND_BYTES;
        if is_full && !(content.chunks.is_empty() && content.tileables.is_empty()) {
            let next = Part {
                chunks_before: self.part.chunks_before + content.chunks.len() as u64,
                tileables_before: self.part.tileables_before + content.tileables.len() as u64,
                content: Graph::default(),
            };
            self.parts.push(std::mem::replace(&mut self.part, next));
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What stands around everything, roughly.
const AROUND: u64 = 64;

fn weight_of_chunk(chunk: &Chunk) -> u64 {
    let texts = chunk.key.len() + chunk.argument.len();
    let names: usize = chunk.needs.named_milli.keys().map(|name| name.len() + 16).sum();
    let numbers = 8 * (chunk.index.len() + chunk.shape.len());
    AROUND + (texts + names + numbers) as u64 + weight_of_inputs(&chunk.inputs)
}

fn weight_of_tileable(tileable: &Tileable) -> u64 {
    let columns: usize = tileable.columns.iter().map(|column| column.name.len() + 16).sum();
    let splits: usize = tileable.nsplits.iter().map(|axis| 8 + 8 * axis.len()).sum();
    let texts = tileable.key.len() + tileable.name.len();
    AROUND + (texts + columns + splits) as u64 + weight_of_inputs(&tileable.chunks)
}

fn weight_of_inputs(inputs: &[Input]) -> u64 {
    let weight = |input: &Input| match input {
        Input::Chunk(_) => 8,
        Input::Session(key) => 16 + key.len() as u64,
    };
    inputs.iter().map(weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(key: &str, bytes: usize) -> Chunk {
        Chunk { key: key.to_owned(), argument: vec![0; bytes].into(), ..Chunk::default() }
    }

    #[test]
    fn a_small_graph_is_one_part_and_a_large_one_is_cut_in_its_order() {
        let small = Graph { chunks: vec![chunk("a", 10), chunk("b", 10)], tileables: Vec::new() };
        assert_eq!(parts(small.clone()).len(), 1);
        assert_eq!(parts(small)[0].content.chunks.len(), 2);
        assert_eq!(parts(Graph::default()).len(), 1);

        let each = usize::try_from(COMMAND_BYTES).unwrap() / 2;
        let large = ["a", "b", "c"].map(|key| chunk(key, each)).to_vec();
        let cut = parts(Graph { chunks: large, tileables: Vec::new() });
        let told: Vec<_> = cut.iter().map(|part| (part.chunks_before, part.content.chunks.len())).collect();
        assert_eq!(told, [(0, 1), (1, 1), (2, 1)]);
    }

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
