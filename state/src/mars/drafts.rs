//! Graphs come: in one command, or in several that are out of sight until the last one.

use crate::fault::Fault;
use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::{Answered, shared};
use crate::mars::command::{Digest, Graph as Content, Options, Part};
use crate::mars::graph::{Graph, GraphState, Head};
use crate::mars::ids::{GraphName, GraphNo, Name, SessionNo};
use crate::mars::limits::{
    GRAPHS_MAX, JOB_GRAPHS_MAX, RESCHEDULES_MAX, TARGETS_MAX, TIMEOUT_MS_MAX, check_key, invalid,
};
use crate::mars::refusal::Refusal;

impl Act<'_> {
    pub(super) fn submit_graph(
        &mut self,
        name: &GraphName,
        digest: Digest,
        options: Options,
        targets: &[String],
        content: Content,
    ) -> Answered {
        let (session, known) = self.new_or_known(name, digest)?;
        if let Some(answer) = known {
            return Ok(answer);
        }
        let mut graph = self.blank(session, name, digest, options, targets)?;
        graph.take_in(content)?;
        self.commit(GraphNo(self.index), graph)
    }

    pub(super) fn begin_graph(
        &mut self,
        name: &GraphName,
        digest: Digest,
        options: Options,
        targets: &[String],
    ) -> Answered {
        let (session, known) = self.new_or_known(name, digest)?;
        if let Some(answer) = known {
            return Ok(answer);
        }
        let graph = self.blank(session, name, digest, options, targets)?;
        if let Some((before, _)) = self.mars.find_graph(name)? {
            self.forget_graph(before);
        }
        let number = GraphNo(self.index);
        self.mars.put_graph(number, graph);
        Ok(Answer::Graph { graph: number, state: GraphState::Preparing, created: true, chunks: 0 })
    }

    /// Parts come in their order; one that is there already is not added again.
    pub(super) fn add_to_graph(&mut self, name: &GraphName, draft: GraphNo, part: Part) -> Answered {
        let found = self.draft(name, draft)?;
        let (chunks, tileables) = (u64::from(found.nodes()), found.tileables.len() as u64);
        let Part { chunks_before, tileables_before, content } = part;
        let chunks_end = chunks_before.saturating_add(content.chunks.len() as u64);
        let tileables_end = tileables_before.saturating_add(content.tileables.len() as u64);
        let is_empty = content.chunks.is_empty() && content.tileables.is_empty();
        if is_empty || (chunks_end <= chunks && tileables_end <= tileables) {
            return Ok(Answer::Done);
        }
        let next = [(chunks, chunks_before), (tileables, tileables_before)];
        if let Some((expected, got)) = next.into_iter().find(|(expected, got)| expected != got) {
            let (kind, key) = (name.kind, name.key.clone());
            return Err(Refusal::NotNext { kind, key, expected, got }.into());
        }
        let mut graph = found.clone();
        graph.take_in(content)?;
        graph.head.started = self.now;
        self.check_room(&graph, draft)?;
        self.mars.put_graph(draft, graph);
        Ok(Answer::Done)
    }

    pub(super) fn commit_draft(&mut self, name: &GraphName, draft: GraphNo) -> Answered {
        if let Some((number, graph)) = self.mars.find_graph(name)?
            && number == draft
            && graph.head.state != GraphState::Preparing
        {
            return Ok(answer(number, graph, false));
        }
        let graph = self.draft(name, draft)?.clone();
        self.commit(draft, graph)
    }

    fn draft(&self, name: &GraphName, draft: GraphNo) -> Result<&Graph, Refusal> {
        let is_it = |number, graph: &Graph| number == draft && graph.head.state == GraphState::Preparing;
        match self.mars.find_graph(name)? {
            Some((number, graph)) if is_it(number, graph) => Ok(graph),
            Some(_) | None => Err(Refusal::NotOpen { kind: name.kind, key: name.key.clone() }),
        }
    }

    /// The session, and the answer if the graph is there.
    fn new_or_known(&self, name: &GraphName, digest: Digest) -> Result<(SessionNo, Option<Answer>), Fault> {
        let session = self.mars.session(&name.session)?;
        check_key("a graph's key", &name.key)?;
        if name.key.starts_with('@') {
            return Err(invalid(
                "a graph's key",
                "must not begin with `@`: those are of mutables that were sealed",
            ));
        }
        match self.mars.find_graph(name)? {
            Some((number, graph)) if graph.head.state != GraphState::Preparing => {
                if graph.head.digest == digest {
                    Ok((session, Some(answer(number, graph, false))))
                } else {
                    let (kind, key) = (graph.head.kind, graph.head.key.clone());
                    Err(Refusal::GraphExists { kind, key }.into())
                }
            }
            // Nobody has seen it yet.
            Some(_) | None => Ok((session, None)),
        }
    }

    fn blank(
        &self,
        session: SessionNo,
        name: &GraphName,
        digest: Digest,
        options: Options,
        targets: &[String],
    ) -> Result<Graph, Fault> {
        let times = [options.timeout_ms, options.result_ttl_ms].into_iter().flatten();
        for time in times {
            within("milliseconds of a graph's options", time.0, TIMEOUT_MS_MAX)?;
        }
        let reschedules = options.max_reschedules.unwrap_or(0);
        within("reschedules of a subtask", u64::from(reschedules), u64::from(RESCHEDULES_MAX))?;
        within("targets of a graph", targets.len() as u64, TARGETS_MAX)?;
        for target in targets {
            check_key("a target's key", target)?;
        }
        let is_there = self.mars.find_graph(name)?.is_some();
        let tally = self.mars.sessions.get(&session).map(|session| session.tally).unwrap_or_default();
        let more = u64::from(!is_there);
        within("graphs of a session", tally.graphs + more, GRAPHS_MAX)?;
        within("graphs of a job", self.mars.tally.graphs + more, JOB_GRAPHS_MAX)?;
        Ok(Graph::new(Head {
            session,
            kind: name.kind,
            key: name.key.as_str().into(),
            digest,
            options,
            targets: shared(targets.iter().map(|target| Name::from(target.as_str())).collect()),
            state: GraphState::Preparing,
            started: self.now,
            ended: None,
            error: None,
            next: 0,
        }))
    }
}

pub(super) fn answer(number: GraphNo, graph: &Graph, created: bool) -> Answer {
    let chunks = u64::from(graph.nodes());
    Answer::Graph { graph: number, state: graph.head.state, created, chunks }
}
