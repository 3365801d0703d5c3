//! What must be true of MindSpore's clusters: ranks, who speaks, and what counts for scaling.

use super::Mutant;

const STATE: &str = "-p tripod-state";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "offered-rank-of-another",
        promise: "INV-45: a node is given the rank that it offers only if nobody has it.",
        file: "state/src/mindspore/cluster/register.rs",
        original: &[
            "let offered = offered.filter(|rank| *rank < places && self.with_rank(role, *rank).is_none());",
        ],
        replacement: &["let offered = offered.filter(|rank| *rank < places);"],
        tests: STATE,
    },
    Mutant {
        name: "answer-of-an-earlier-process",
        promise: "INV-45: what an earlier process of a node answered is not taken for an answer of the present one.",
        file: "state/src/mindspore/cluster/echo.rs",
        original: &[
            "let found = cluster.nodes().get(&echo.member).filter(|node| node.incarnation == echo.incarnation);",
        ],
        replacement: &["let found = cluster.nodes().get(&echo.member);"],
        tests: STATE,
    },
    Mutant {
        name: "reported-before-all-know",
        promise: "A report that scaling is done counts only once all nodes were told of each other: one from before is \
                  about an earlier scaling.",
        file: "state/src/mindspore/cluster/done.rs",
        original: &["if published == 0 || !is_asked {"],
        replacement: &["if !is_asked {"],
        tests: STATE,
    },
];
