//! What other nodes bring to the leader: commands, and questions of their gateways.

use bytes::Bytes;
use prost::encoding::encode_varint;
use serde::Deserialize as _;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::Replica as _;
use tripod_raft::fuzzing;
use tripod_state::ids::{LogIndex, Term, TimeMs};
use tripod_state::{ApplyContext, Envelope, State, level};

use crate::node::{self, BEGINS, Node};
use crate::pieces;
use crate::source::Source;
use crate::target::Target;
use crate::value::Drawn;
use crate::{message, mutate, runtime};

/// Commands that a peer proposes: what the leader appends is applied by all, and read back by all.
pub(crate) const PROPOSALS: Target = Target {
    name: "proposals",
    what: "commands that other nodes propose",
    generate: generate_proposals,
    run: run_proposals,
};

/// Heartbeats and signs of life that a peer's gateway passes on.
pub(crate) const QUESTIONS: Target = Target {
    name: "questions",
    what: "questions of other nodes' gateways",
    generate: generate_questions,
    run: run_questions,
};

/// In the first byte, beside the level: the log's time leaps to its end.
const LEAPS: u8 = 128;

fn generate_proposals(source: &mut Source) -> Vec<u8> {
    let many = 1 + source.below(40);
    let mut proposals = Vec::new();
    while proposals.len() < many {
        if let Ok(mut envelope) = Envelope::deserialize(Drawn::new(source)) {
            if source.one_in(2) {
                envelope.stamp = None;
            }
            let mut payload = fuzzing::encode(&envelope);
            if source.one_in(8) {
                mutate::mutate(source, &mut payload);
            }
            proposals.push(payload);
        }
    }
    let leaps = if source.one_in(4) { LEAPS } else { 0 };
    pieces::join(leaps | u8::try_from(source.below(8)).expect("below 8"), &proposals)
}

/// A leader in a state of that level; what comes through is applied at ever later times, and now and then at the end of time.
fn run_proposals(input: &[u8]) {
    let (first, proposals) = pieces::split(input);
    let level = tripod_state::ids::FeatureLevel(u32::from(first & !LEAPS).clamp(1, level::NEWEST.0));
    let step_ms = if first & LEAPS == 0 { 100 } else { 1 << 60 };
    let mut state = State::default();
    let mut index: u64 = 0;
    let mut apply = |state: &mut State, envelope: Envelope| {
        index += 1;
        let now_ms = TimeMs(BEGINS.0.saturating_add(index.saturating_mul(step_ms)));
        let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms };
        drop(state.apply(&context, envelope));
    };
    for command in node::beginning(level) {
        apply(&mut state, Envelope { stamp: None, command });
    }
    for payload in proposals {
        if let Some(envelope) = fuzzing::check_proposed(payload, &state) {
            // A level above what this build supports stops a node before it applies it.
            if envelope.command.needs_at(state.level()) <= level::NEWEST {
                apply(&mut state, envelope);
            }
        }
    }
    node::check(&state);
}

fn generate_questions(source: &mut Source) -> Vec<u8> {
    let many = 1 + source.below(8);
    let questions: Vec<Vec<u8>> = (0..many)
        .map(|_| {
            let mut question = message::message(source, "tripod.peer.v1.HeartbeatBatch");
            if source.one_in(2) {
                question = signs_of_life(source);
            }
            if source.one_in(4) {
                mutate::mutate(source, &mut question);
            }
            question
        })
        .collect();
    pieces::join(0, &questions)
}

/// What a node's scheduler tells the leader's, behind a byte that begins no message. Its messages are written by hand there,
/// and described nowhere.
fn signs_of_life(source: &mut Source) -> Vec<u8> {
    let mut report = vec![0];
    for _ in 0..source.below(6) {
        let tag = *source.pick(&[1, 1, 1, 2, 3]);
        let mut inner = Vec::new();
        for field in 1..=3_u64 {
            encode_varint(field << 3, &mut inner);
            encode_varint(source.number(), &mut inner);
        }
        if tag == 1 && source.one_in(2) {
            inner.extend([0x22, 6, 8, 1, 16, 2, 24, 3]);
        }
        if tag == 2 {
            encode_varint(16, &mut report);
            encode_varint(source.number(), &mut report);
        } else {
            encode_varint(tag << 3 | 2, &mut report);
            encode_varint(inner.len() as u64, &mut report);
            report.extend(inner);
        }
    }
    report
}

fn run_questions(input: &[u8]) {
    let (_, questions) = pieces::split(input);
    runtime::run(async {
        let node = Node::start(level::NEWEST).await;
        let scheduler = tripod_ray::Scheduler::new(&node.gateway, Dialler::new(Rule::any()));
        for question in questions {
            drop(node.backend.ask_leader(Bytes::copy_from_slice(question)).await);
        }
        tokio::time::sleep(std::time::Duration::from_secs(12)).await;
        node.check();
        drop(scheduler);
    });
}
