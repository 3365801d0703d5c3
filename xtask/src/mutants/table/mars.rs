//! What must be true of sessions, their graphs, and tensors that are written in place.

use super::Mutant;

const STATE: &str = "-p tripod-state";
const MARS: &str = "-p tripod-mars";
const TILE: &str = "-p tripod-tile";
const STORES: &str = "-p tripod-chunk-data";

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
        file: "services/mars/src/parts.rs",
        original: &["chunks_before: self.open.chunks_before + content.chunks.len() as u64,"],
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
    Mutant {
        name: "reopened-in-the-same-epoch",
        promise: "A mutable whose seal has failed is open in the next epoch: who wrote in the one before is told so.",
        file: "state/src/mars/seal.rs",
        original: &["mutable.epoch += 1;"],
        replacement: &[],
        tests: STATE,
    },
    Mutant {
        name: "parts-without-a-bound",
        promise: "Of one graph a few commands are proposed and not answered, however large it is.",
        file: "services/mars/src/parts.rs",
        original: &["while early.is_empty() && under_way.len() < COMMANDS_UNDER_WAY {"],
        replacement: &["while early.is_empty() {"],
        tests: MARS,
    },
    Mutant {
        name: "sealed-for-one-chunk-only",
        promise: "A store that has heard that an epoch is over takes nothing more in it, to any chunk of the tileable.",
        file: "services/chunk-data/src/look_up.rs",
        original: &["Self { epoch: info.epoch, is_over: info.state() != MutableState::Open }"],
        replacement: &["Self { epoch: info.epoch, is_over: false }"],
        tests: STORES,
    },
    Mutant {
        name: "heads-of-puts-are-free",
        promise: "Whatever a chunk that is put takes of the disk is within the bound of the store.",
        file: "services/chunk-data/src/mutable/puts.rs",
        original: &["self.engine.reserve(frame.len() as u64)?;"],
        replacement: &["self.engine.reserve(content.len() as u64)?;"],
        tests: STORES,
    },
    Mutant {
        name: "damaged-put-stays",
        promise: "The damaged file of a chunk that was put goes when its tileable is sealed or deleted.",
        file: "services/chunk-data/src/mutable/sweep.rs",
        original: &["held.extend(self.held_spoilt());"],
        replacement: &[],
        tests: STORES,
    },
    Mutant {
        name: "records-go-at-once",
        promise: "Records go only when nobody can be told any more that their tensor is open.",
        file: "services/chunk-data/src/sweeping.rs",
        original: &["if chunk.is_put || now.saturating_duration_since(since) >= SWEEP_SETTLED {"],
        replacement: &["if chunk.is_put || now >= since {"],
        tests: STORES,
    },
    Mutant {
        name: "swept-for-another-cluster",
        promise: "A store removes nothing on the word of another cluster or job than the first that it asked.",
        file: "services/chunk-data/src/sweeping.rs",
        original: &["if !self.is_ours(told.cluster).await? {"],
        replacement: &["if !self.is_ours(told.cluster).await? && some.is_empty() {"],
        tests: STORES,
    },
];
