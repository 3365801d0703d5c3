//! Who counts for a quorum, what a leader may say, and how members come and go.

use super::Mutant;

const MEMBERSHIP: &str = "-p tripod-raft --lib membership::";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "half-is-a-quorum",
        promise: "INV-27: a change after which half of an even number of voters would answer is refused: a quorum is \
                  more than half.",
        file: "raft/src/care/membership/votes.rs",
        original: &["self.voters.len() / 2 + 1"],
        replacement: &["self.voters.len().div_ceil(2)"],
        tests: MEMBERSHIP,
    },
    Mutant {
        name: "read-by-the-new-voters",
        promise: "INV-24: while voters change, a linearizable read is proved by a quorum of both sets, and not by those \
                  alone that there will be.",
        file: "raft/src/lead/held_votes.rs",
        original: &["sets.iter().all(|set| set.intersection(agreeing).count() * 2 > set.len())"],
        replacement: &["sets.last().is_some_and(|set| set.intersection(agreeing).count() * 2 > set.len())"],
        tests: "-p tripod-raft --lib held_votes::",
    },
    Mutant {
        name: "ready-too-early",
        promise: "Who leads is ready when it has applied all of earlier terms: what it decides rests on everything that \
                  was acknowledged.",
        file: "raft/src/lead/leadership.rs",
        original: &[
            "&& applied.is_some_and(|id| id.leader_id.term == term && id.leader_id.node_id == node);",
        ],
        replacement: &["&& applied.is_some();"],
        tests: "-p tripod-raft --lib leadership::",
    },
    Mutant {
        name: "late-reader",
        promise: "INV-24: a read that comes while a round is under way is proved by the next one.",
        file: "raft/src/lead/read_index.rs",
        original: &["let outcome = round().await;"],
        replacement: &[
            "let outcome = round().await;",
            "while let Ok(late) = waiting.try_recv() {",
            "readers.push(late);",
            "}",
        ],
        tests: "-p tripod-raft --lib read_index::",
    },
    Mutant {
        name: "no-answer-is-a-refusal",
        promise: "INV-10: a forwarded proposal that a deposed leader did not answer is unknown, and never told as one \
                  that was not made.",
        file: "raft/src/lead/forward/call.rs",
        original: &["() = given_up => Err(Status::aborted(\"it lost the leadership and did not answer\")),"],
        replacement: &[
            "() = given_up => Err(Status::failed_precondition(\"it lost the leadership and did not answer\")),",
        ],
        tests: "-p tripod-raft --test cluster lost_answers::",
    },
    Mutant {
        name: "batch-out-of-turn",
        promise: "Commands that a follower passes on enter the log in the order in which it took them.",
        file: "raft/src/peers/succession.rs",
        original: &["if timeout(PATIENCE, line.wait_for(|line| line.next >= number)).await.is_err() {"],
        replacement: &["if timeout(PATIENCE, line.wait_for(|line| line.next > 0)).await.is_err() {"],
        tests: "-p tripod-raft --test cluster gathering::",
    },
    Mutant {
        name: "cancelled-between-two-sets",
        promise: "INV-27: a change that is given up between its two entries ends with one set of voters.",
        file: "raft/src/care/membership/step.rs",
        original: &["let voters = configuration.voters();", "if configuration.is_joint() {"],
        replacement: &[
            "if open.cancelled {",
            "return Step::End(Ending::Cancelled);",
            "}",
            "let voters = configuration.voters();",
            "if configuration.is_joint() {",
        ],
        tests: MEMBERSHIP,
    },
    Mutant {
        name: "learner-comes-back-empty",
        promise: "INV-22: a node that took part, as a learner too, does not get its id back without its data.",
        file: "state/src/member/apply.rs",
        original: &["let had_data = known.suffrage == Suffrage::Voter || self.members.contains_key(&node);"],
        replacement: &["let had_data = known.suffrage == Suffrage::Voter;"],
        tests: "-p tripod-state",
    },
    Mutant {
        name: "vote-of-one-without-data",
        promise: "INV-22: a voter that has lost its data counts for nothing before it holds everything again: it proves no \
                  leadership, and is none that answers.",
        file: "raft/src/node/port/server.rs",
        original: &[
            "// Of what was lost nobody knows whether it was a later vote.",
            "self.gate.check_votes()?;",
        ],
        replacement: &[],
        tests: "-p tripod-raft --test cluster rejoin::",
    },
];
