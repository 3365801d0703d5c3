//! What commands about sessions are answered.

use serde::{Deserialize, Serialize};

use crate::mars::graph::GraphState;
use crate::mars::ids::{GraphNo, MutableNo, Name};

/// What a command is answered that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Session {
        session: Name,
        created: bool,
    },
    Deleted {
        deleted: bool,
    },
    /// So many bytes are there; `complete`: the last part is.
    Uploaded {
        bytes: u64,
        complete: bool,
    },
    Graph {
        graph: GraphNo,
        state: GraphState,
        created: bool,
        chunks: u64,
    },
    Stopped {
        state: GraphState,
    },
    /// So many chunks are dropped.
    Freed {
        chunks: u64,
    },
    Mutable {
        mutable: MutableNo,
        name: Name,
        created: bool,
    },
    /// It is being sealed, or was with that timestamp. `tileable`: the key that it has then.
    Sealing {
        mutable: MutableNo,
        epoch: u64,
        tileable: Name,
    },
}
