//! What must be true of sessions, their graphs, and tensors that are written in place.

use super::Mutant;

const STATE: &str = "-p tripod-state";
const MARS: &str = "-p tripod-mars";
const TILE: &str = "-p tripod-tile";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "chunk-key-twice",
        promise: "A graph in which a key is there twice is refused, and nothing of it is kept.",
        file: "state/src/mars/commit.rs",
        original: &["graph.check_keys()?;"],
        replacement: &[],
        tests: STATE,
    },
    Mutant {
        name: "made-again-though-once",
        promise: "A subtask that may not be tried again fails its graph when its worker dies.",
        file: "state/src/mars/advance.rs",
        original: &["let max_retries = if work.is_retryable { retries } else { Some(0) };"],
        replacement: &["let max_retries = if work.is_retryable { retries } else { Some(1) };"],
        tests: STATE,
    },
    Mutant {
        name: "chunk-of-an-older-graph",
        promise: "Of graphs that have a chunk of one key the newest that still has it is meant.",
        file: "state/src/mars/record.rs",
        original: &["let (_, _, graph, place) = self.chunk_keys.range(first..=last).next_back()?;"],
        replacement: &["let (_, _, graph, place) = self.chunk_keys.range(first..=last).next()?;"],
        tests: STATE,
    },
    Mutant {
        name: "sealed-in-another-epoch",
        promise: "What a store made for another epoch of a mutable does not count for this one.",
        file: "state/src/mars/seal.rs",
        original: &["if mutable.state != MutableState::Sealing || mutable.epoch != epoch {"],
        replacement: &["if mutable.state != MutableState::Sealing && mutable.epoch != epoch {"],
        tests: STATE,
    },
    Mutant {
        name: "sealed-by-another-store",
        promise: "A store seals only chunks that it has; of others its word does not count.",
        file: "state/src/mars/seal.rs",
        original: &["*chunk < mutable.chunks() && mutable.stores_of(*chunk).any(|place| place == store)"],
        replacement: &["*chunk < mutable.chunks() && mutable.stores_of(*chunk).any(|place| place >= store)"],
        tests: STATE,
    },
    Mutant {
        name: "same-key-counts-once",
        promise: "References that are taken away together are never more than there are, also when a key comes twice.",
        file: "state/src/mars/drops.rs",
        original: &["*sum = sum.saturating_add(*count);"],
        replacement: &["*sum = (*sum).max(*count);"],
        tests: STATE,
    },
    Mutant {
        name: "answer-remembered-too-long",
        promise: "The id of a request is free again when its answer was remembered for ten minutes.",
        file: "state/src/mars/remember.rs",
        original: &[
            "self.by_index.get(index).map(Arc::as_ref).filter(|reply| now < reply.at.plus(REMEMBERED_MS))",
        ],
        replacement: &[
            "self.by_index.get(index).map(Arc::as_ref).filter(|reply| now <= reply.at.plus(REMEMBERED_MS))",
        ],
        tests: STATE,
    },
    Mutant {
        name: "same-graph-with-other-options",
        promise: "A graph with other options is another graph, and its key is refused.",
        file: "services/mars/src/graph/identity.rs",
        original: &["hasher.part(&wanted.options.unwrap_or_default().encode_to_vec());"],
        replacement: &[],
        tests: MARS,
    },
    Mutant {
        name: "part-at-a-wrong-place",
        promise: "A graph that is too large for one command is put into the log in parts that follow each other.",
        file: "services/mars/src/submit.rs",
        original: &["chunks_before: self.part.chunks_before + content.chunks.len() as u64,"],
        replacement: &["chunks_before: content.chunks.len() as u64,"],
        tests: MARS,
    },
    Mutant {
        name: "largest-of-nothing",
        promise: "A largest element along axes of which one has no elements is refused before anything is committed.",
        file: "services/tile/src/rules/reduce.rs",
        original: &[
            "if !function.has_identity() && axes.iter().any(is_empty) { Err(Reason::Empty) } else { Ok(()) }",
        ],
        replacement: &[
            "if !function.has_identity() && axes.iter().all(is_empty) { Err(Reason::Empty) } else { Ok(()) }",
        ],
        tests: TILE,
    },
];
