//! A graph that does not fit one command: it is cut, and its parts are proposed one behind the other without waiting for
//! each. Their order is the state's: a part says behind how much of the graph it belongs, and one that came too early is
//! refused and nothing else.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::stream::FuturesOrdered;
use tonic::Status;
use tripod_state::{Answer as AnyAnswer, Fault, Scope};

use crate::domain::{
    self, Answer, Chunk, Graph, GraphName, GraphNo, Part, Refusal, Request, Tileable, limits,
};
use crate::front::Front;
use crate::limits::{COMMAND_BYTES, COMMANDS_UNDER_WAY, WHOLE_BYTES};
use crate::status;

/// A graph as it is submitted.
#[derive(Debug)]
pub(crate) enum Cut {
    /// In one command.
    Whole(Graph),
    /// In several, in this order.
    Parts(Vec<Part>),
}

/// Cuts a graph if it is too large for one command.
pub(crate) fn cut(content: Graph) -> Cut {
    let chunks = content.chunks.iter().map(Chunk::said_bytes);
    let all = chunks.chain(content.tileables.iter().map(Tileable::said_bytes)).fold(0, u64::saturating_add);
    if all <= WHOLE_BYTES && content.chunks.len() as u64 <= limits::COMMAND_CHUNKS_MAX {
        return Cut::Whole(content);
    }
    let mut parts = Parts::default();
    for chunk in content.chunks {
        parts.room(chunk.said_bytes());
        parts.open.content.chunks.push(chunk);
    }
    for tileable in content.tileables {
        parts.room(tileable.said_bytes());
        parts.open.content.tileables.push(tileable);
    }
    parts.closed.push(parts.open);
    Cut::Parts(parts.closed)
}

/// Parts, of which the last one is still being filled.
#[derive(Default)]
struct Parts {
    closed: Vec<Part>,
    open: Part,
    bytes: u64,
}

impl Parts {
    /// Begins another part if so much more has no place in this one.
    fn room(&mut self, bytes: u64) {
        let content = &self.open.content;
        let is_full = content.chunks.len() as u64 >= limits::COMMAND_CHUNKS_MAX
            || self.bytes.saturating_add(bytes) > COMMAND_BYTES;
        if is_full && !(content.chunks.is_empty() && content.tileables.is_empty()) {
            let next = Part {
                chunks_before: self.open.chunks_before + content.chunks.len() as u64,
                tileables_before: self.open.tileables_before + content.tileables.len() as u64,
                content: Graph::default(),
            };
            self.closed.push(std::mem::replace(&mut self.open, next));
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What became of a part.
enum Added {
    /// It is in the state.
    There,
    /// One before it is not: it was held up on its way, or its leader was lost.
    TooEarly(Part),
}

impl Front {
    /// Adds all parts to a draft: some are proposed before the first of them is answered. If one overtakes another one, no
    /// more are proposed until all are answered, and then it goes on with the first that is missing, which cannot come too
    /// early: each time one more is there at least.
    ///
    /// # Errors
    /// The first refusal that is another one; what the parts behind it came to is not told then, and the draft is of no use.
    pub(crate) async fn add_parts(
        &self,
        scope: Scope,
        graph: &GraphName,
        draft: GraphNo,
        parts: Vec<Part>,
    ) -> Result<(), Status> {
        let mut waiting = VecDeque::from(parts);
        let mut early: Vec<Part> = Vec::new();
        let mut under_way = FuturesOrdered::new();
        loop {
            while early.is_empty() && under_way.len() < COMMANDS_UNDER_WAY {
                let Some(part) = waiting.pop_front() else { break };
                under_way.push_back(self.add(scope, graph, draft, part));
            }
            match under_way.next().await {
                Some(added) => match added? {
                    Added::There => {}
                    Added::TooEarly(part) => early.push(part),
                },
                None if early.is_empty() => return Ok(()),
                None => early.drain(..).rev().for_each(|part| waiting.push_front(part)),
            }
        }
    }

    async fn add(
        &self,
        scope: Scope,
        graph: &GraphName,
        draft: GraphNo,
        part: Part,
    ) -> Result<Added, Status> {
        let request = Request::Add { graph: graph.clone(), draft, part: part.clone() };
        let reply = self.gateway().submit(domain::asks(scope, String::new(), request)).await;
        if let Ok(Err(Fault::Mars(Refusal::NotNext { expected, got, .. }))) = &reply
            && got > expected
        {
            return Ok(Added::TooEarly(part));
        }
        match self.told(reply).await? {
            AnyAnswer::Mars(Answer::Done) => Ok(Added::There),
            other => Err(status::unexpected(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(key: &str, bytes: u64) -> Chunk {
        let bytes = usize::try_from(bytes).unwrap();
        Chunk { key: key.to_owned(), argument: vec![0; bytes].into(), ..Chunk::default() }
    }

    fn parts_of(chunks: Vec<Chunk>) -> Vec<Part> {
        match cut(Graph { chunks, tileables: Vec::new() }) {
            Cut::Parts(parts) => parts,
            Cut::Whole(graph) => panic!("{} chunks are whole", graph.chunks.len()),
        }
    }

    #[test]
    fn a_small_graph_is_whole_and_a_large_one_is_cut_in_its_order() {
        let small = Graph { chunks: vec![chunk("a", 10), chunk("b", 10)], tileables: Vec::new() };
        assert!(matches!(cut(small), Cut::Whole(graph) if graph.chunks.len() == 2));
        assert!(matches!(cut(Graph::default()), Cut::Whole(_)));

        let keys: Vec<String> = (0..9).map(|place| format!("c{place}")).collect();
        let large = keys.iter().map(|key| chunk(key, COMMAND_BYTES / 2)).collect();
        let cut = parts_of(large);
        let told: Vec<_> = cut.iter().map(|part| (part.chunks_before, part.content.chunks.len())).collect();
        assert_eq!(told, (0..9).map(|place| (place, 1)).collect::<Vec<_>>());
        let small = (0..30_000).map(|_| chunk("k", 100)).collect();
        let all: u64 = parts_of(small).iter().map(|part| part.content.chunks.len() as u64).sum();
        assert_eq!(all, 30_000);
    }

    /// The state counts what a command says by the same numbers, and refuses more.
    #[test]
    fn no_part_says_more_than_a_command_may() {
        let most = chunk("k", limits::ARGUMENT_BYTES_MAX);
        let parts = parts_of(vec![most.clone(), chunk("small", 10), most.clone(), most.clone(), most]);
        for part in parts {
            let said: u64 = part.content.chunks.iter().map(Chunk::said_bytes).sum();
            assert!(said <= limits::COMMAND_BYTES_MAX && !part.content.chunks.is_empty(), "{said}");
        }
    }
}
