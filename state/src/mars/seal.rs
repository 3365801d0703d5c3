//! A mutable becomes a plain tileable: stores make the objects of its chunks, and when all are there its graph is.

use std::sync::Arc;

use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::{Answered, shared};
use crate::mars::chunk::{ChunkMeta, NONE, Shared, Stage};
use crate::mars::command::{Digest, Options, TileableKind};
use crate::mars::graph::{Graph, GraphState, Head};
use crate::mars::ids::{GraphKind, GraphNo, MutableNo, Name};
use crate::mars::key::Suffix;
use crate::mars::limits::{JOB_CHUNKS_MAX, MUTABLE_CHUNKS_MAX, SESSION_CHUNKS_MAX};
use crate::mars::mutable::{Mutable, MutableState, Seal};
use crate::mars::query_mutables::mutable_chunk_key;
use crate::mars::refusal::Refusal;
use crate::mars::stores::{Living, Verdict};
use crate::mars::tileable::{TileableMeta, index_of};
use crate::planted::{Bug, is_planted};
use crate::ray::ids::ObjectId;

impl Act<'_> {
    /// The same again with the same timestamp is answered as the first time.
    pub(super) fn seal_mutable(&mut self, session: &str, name: &str, timestamp_ns: Option<i64>) -> Answered {
        let session = self.mars.session(session)?;
        let found = self.mars.mutable_names.get(&(session, Name::from(name))).copied();
        let found = found.and_then(|number| Some((number, self.mars.mutables.get(&number)?)));
        let Some((number, mutable)) = found else {
            return Err(Refusal::MutableUnknown { name: name.to_owned() }.into());
        };
        let (epoch, tileable) = (mutable.epoch, mutable.tileable_key(number.0));
        let answer = Answer::Sealing { mutable: number, epoch, tileable };
        let is_same = mutable.seal.as_ref().is_some_and(|seal| seal.timestamp_ns == timestamp_ns);
        match mutable.state {
            MutableState::Open => {}
            MutableState::Sealing | MutableState::Sealed if is_same || is_planted(Bug::SealedTwice) => {
                return Ok(answer);
            }
            state => return Err(Refusal::MutableState { name: mutable.name.clone(), state }.into()),
        }
        let chunks = mutable.chunks();
        let tally = self.mars.sessions.get(&session).map(|session| session.tally).unwrap_or_default();
        within("chunks of a session", tally.chunks + chunks as u64, SESSION_CHUNKS_MAX)?;
        within("chunks of a job", self.mars.tally.chunks + chunks as u64, JOB_CHUNKS_MAX)?;
        self.ray.room_for_graph(chunks as u64).map_err(|refusal| match refusal {
            crate::ray::Refusal::Full { what, limit } => Refusal::SchedulerFull { what, limit },
            _ => Refusal::NoStore,
        })?;
        let objects: Vec<ObjectId> = (0..chunks).map(|_| self.ray.promise_for_graph()).collect();
        self.is_ray_changed = true;
        let begun = self.now;
        if let Some(mut mutable) = self.mars.mutable_mut(number) {
            mutable.state = MutableState::Sealing;
            mutable.seal =
                Some(Seal { timestamp_ns, begun, objects, made: vec![false; chunks], failed: Vec::new() });
        }
        self.finish_seal(number);
        Ok(answer)
    }

    pub(super) fn seal_reported(
        &mut self,
        number: MutableNo,
        epoch: u64,
        store: &str,
        chunks: &[u32],
        has_failed: bool,
    ) -> Answered {
        within("chunks of a mutable tileable", chunks.len() as u64, MUTABLE_CHUNKS_MAX)?;
        let Some(mut mutable) = self.mars.mutable_mut(number) else { return Ok(Answer::Done) };
        if mutable.state != MutableState::Sealing || mutable.epoch != epoch {
            return Ok(Answer::Done);
        }
        let Some(store) = mutable.stores.iter().position(|known| known.as_str() == store) else {
            return Ok(Answer::Done);
        };
        let theirs: Vec<usize> = chunks
            .iter()
            .map(|chunk| *chunk as usize)
            .filter(|chunk| {
                *chunk < mutable.chunks() && mutable.stores_of(*chunk).any(|place| place == store)
            })
            .collect();
        if let Some(seal) = &mut mutable.seal {
            if has_failed {
                let store = u32::try_from(store).unwrap_or(u32::MAX);
                if let Err(place) = seal.failed.binary_search(&store) {
                    seal.failed.insert(place, store);
                }
            } else {
                for chunk in theirs {
                    if let Some(made) = seal.made.get_mut(chunk) {
                        *made = true;
                    }
                }
            }
        }
        drop(mutable);
        self.finish_seal(number);
        self.judge_mutable(number);
        Ok(Answer::Done)
    }

    /// All chunks are made: it is a tileable like others.
    fn finish_seal(&mut self, number: MutableNo) {
        let Some(mutable) = self.mars.mutables.get(&number).map(Arc::clone) else { return };
        let Some(seal) = mutable.seal.as_ref().filter(|_| mutable.state == MutableState::Sealing) else {
            return;
        };
        if seal.made.contains(&false) {
            return;
        }
        let graph = self.sealed_graph(number, &mutable, &seal.objects);
        self.mars.put_graph(GraphNo(self.index), graph);
        if let Some(mut mutable) = self.mars.mutable_mut(number) {
            mutable.state = MutableState::Sealed;
            mutable.absent_since = None;
            if let Some(seal) = &mut mutable.seal {
                // They are the graph's now.
                seal.objects = Vec::new();
                seal.made = Vec::new();
                seal.failed = Vec::new();
            }
        }
    }

    fn sealed_graph(&self, number: MutableNo, mutable: &Mutable, objects: &[ObjectId]) -> Graph {
        let definition = &mutable.definition;
        let key = mutable.tileable_key(number.0);
        let session = self.mars.sessions.get(&mutable.session).map(|session| session.name.as_str());
        let mut graph = Graph::new(Head {
            session: mutable.session,
            kind: GraphKind::Tileable,
            key: mutable.graph_key(number.0),
            digest: Digest([0; 32]),
            options: Options::default(),
            targets: shared(vec![key.clone()]),
            state: GraphState::Succeeded,
            started: self.now,
            ended: Some(self.now),
            error: None,
            next: 0,
        });
        let signed = |extent: &u64| i64::try_from(*extent).unwrap_or(i64::MAX);
        let nsplits: Vec<Vec<i64>> =
            definition.nsplits.iter().map(|axis| axis.iter().map(signed).collect()).collect();
        let (mut tables, mut places) = (Shared::default(), Vec::with_capacity(objects.len()));
        for (chunk, object) in objects.iter().enumerate() {
            let index = index_of(&nsplits, chunk);
            let part =
                |(axis, part): (&Vec<i64>, &u64)| axis.get(usize::try_from(*part).unwrap_or(0)).copied();
            let shape: Vec<i64> = nsplits.iter().zip(&index).filter_map(part).collect();
            let key = mutable_chunk_key(session.unwrap_or_default(), number, chunk as u64);
            let place = graph.next_fetched();
            let meta = ChunkMeta {
                text: tables.text(&mut graph.tables, &key),
                suffix: Suffix::Nothing,
                index: if index.is_empty() { NONE } else { tables.index(&mut graph.tables, &index) },
                shape: tables.shape(&mut graph.tables, &shape),
                element_type: definition.element_type,
                stage: Stage::Fetched,
                readers: 0,
                holders: 1,
                object: Some(*object),
                work: None,
            };
            graph.add_chunk(place, meta);
            places.push(place);
        }
        let tileable = TileableMeta {
            kind: definition.kind,
            name: mutable.name.clone(),
            element_type: if definition.kind == TileableKind::Tensor { definition.element_type } else { 0 },
            columns: definition.columns.clone(),
            nsplits,
            chunks: places,
            count: 1,
        };
        graph.tileables.insert(key, Arc::new(tileable));
        graph
    }

    /// What becomes of it with the stores that live; whether anything changed.
    pub(super) fn judge_mutable(&mut self, number: MutableNo) -> bool {
        let Some(mutable) = self.mars.mutables.get(&number) else { return false };
        let verdict = mutable.judge(&Living::of(self.ray), self.now);
        let objects = mutable.seal.as_ref().map(|seal| seal.objects.clone()).unwrap_or_default();
        let now = self.now;
        let Some(mut mutable) = self.mars.mutable_mut(number) else { return false };
        match verdict {
            Verdict::Stay => return false,
            Verdict::Note { absent } => {
                mutable.absent_since = absent.then_some(now);
                return true;
            }
            Verdict::Reopen => {
                mutable.state = MutableState::Open;
                mutable.epoch += 1;
            }
            Verdict::Lose => mutable.state = MutableState::Lost,
        }
        mutable.seal = None;
        mutable.absent_since = None;
        drop(mutable);
        self.break_promises(&objects);
        true
    }

    pub(super) fn break_promises(&mut self, objects: &[ObjectId]) {
        if !objects.is_empty() {
            self.ray.break_promises_for_graph(self.now, objects);
            self.is_ray_changed = true;
        }
    }
}
