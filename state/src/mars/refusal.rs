//! Why a command about sessions was refused.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::mars::{GraphKind, GraphState, MutableState, Name};

/// A refusal, as [`crate::Fault::Mars`]. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    SessionUnknown {
        session: String,
    },
    SessionExists {
        session: Name,
    },
    GraphUnknown {
        kind: GraphKind,
        key: String,
    },
    /// A graph of that key is there, and it was made of other bytes.
    GraphExists {
        kind: GraphKind,
        key: Name,
    },
    /// The graph runs.
    GraphRuns {
        kind: GraphKind,
        key: Name,
        state: GraphState,
    },
    /// A part of an upload, or of a graph, that does not follow the last one.
    NotNext {
        kind: GraphKind,
        key: String,
        expected: u64,
        got: u64,
    },
    /// A part of a graph, or the end of its parts, and the graph was begun anew meanwhile, or never.
    NotOpen {
        kind: GraphKind,
        key: String,
    },
    /// Something about a node of a graph.
    Node {
        key: String,
        reason: String,
    },
    /// A chunk of the session that was to be an input is not there any more, or was not begun yet.
    ChunkGone {
        key: String,
    },
    /// No worker that lives could ever execute it.
    FitsNowhere {
        key: String,
        needs: String,
    },
    /// Nothing refers to a tileable of that key.
    TileableUnknown {
        key: String,
    },
    /// More references were to be taken away than there are.
    TooFewReferences {
        key: String,
        held: u64,
        dropped: u64,
    },
    MutableUnknown {
        name: String,
    },
    MutableExists {
        name: Name,
    },
    /// One of that name is there, and it is defined otherwise.
    MutableDiffers {
        name: Name,
    },
    /// It is in another state than this needs.
    MutableState {
        name: Name,
        state: MutableState,
    },
    /// There is no object store that lives.
    NoStore,
    /// The id of the request was used for another one.
    RequestReused {
        request: String,
    },
    /// A field is not as it must be.
    Invalid {
        field: String,
        reason: String,
    },
    /// The scheduler has no room for more.
    SchedulerFull {
        what: String,
        limit: u64,
    },
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Mars(refusal)
    }
}

impl Refusal {
    /// In plain words: see [`Fault::text`].
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::SessionUnknown { session } => format!("there is no session `{session}`; create it first"),
            Self::SessionExists { session } => {
                format!("session `{session}` exists; use it with `if_not_exist`, or choose another id")
            }
            Self::GraphUnknown { kind, key } => {
                format!("the session has no {} graph `{key}`; submit it first", kind.word())
            }
            Self::GraphExists { kind, key } => format!(
                "{} graph `{key}` exists, and is another one; choose another key, or delete that one",
                kind.word()
            ),
            Self::GraphRuns { kind, key, state } => format!(
                "{} graph `{key}` is {}; stop it, and wait until it has ended",
                kind.word(),
                state.word()
            ),
            Self::NotNext { kind, key, expected, got } => format!(
                "the next part of {} graph `{key}` begins at {expected}, not at {got}; send that one",
                kind.word()
            ),
            Self::NotOpen { kind, key } => format!(
                "{} graph `{key}` is not being submitted in parts; begin with its first part",
                kind.word()
            ),
            Self::Node { key, reason } => format!("node `{key}` {reason}"),
            Self::ChunkGone { key } => format!(
                "chunk `{key}` of the session was not begun yet, failed, or was dropped; execute what makes it, and keep it"
            ),
            Self::FitsNowhere { key, needs } => format!(
                "no worker that lives has what node `{key}` needs ({needs}); ask for less, or start such a worker"
            ),
            Self::TileableUnknown { key } => format!("nothing refers to a tileable `{key}` of the session"),
            Self::TooFewReferences { key, held, dropped } => format!(
                "tileable `{key}` has {held} references, and {dropped} were to be taken away; take away fewer"
            ),
            Self::MutableUnknown { name } => {
                format!("the session has no mutable tileable `{name}`; create it first")
            }
            Self::MutableExists { name } => format!(
                "mutable tileable `{name}` exists; use it with `if_not_exist`, delete it, or choose another name"
            ),
            Self::MutableDiffers { name } => format!(
                "mutable tileable `{name}` exists, and is defined otherwise; delete it, or choose another name"
            ),
            Self::MutableState { name, state } => {
                format!("mutable tileable `{name}` is {}; {}", state.word(), state.next_step())
            }
            Self::NoStore => "no object store lives; start one, and try again".to_owned(),
            Self::RequestReused { request } => {
                format!("the request id `{request}` was used for another request; choose another one")
            }
            Self::Invalid { field, reason } => format!("{field} {reason}"),
            Self::SchedulerFull { what, limit } => {
                format!(
                    "the job's scheduler has {limit} {what}, as many as it may; wait until some have ended"
                )
            }
        }
    }
}
