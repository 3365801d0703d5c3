//! What the state takes of a node's memory: counted as it changes, so that asking costs nothing.
//!
//! The count is a model. An element of a table costs twice its size, since the nodes of the trees that hold it are half
//! full at worst, and what it holds outside of itself: texts, values, lists, tables of its own. What several elements
//! share is counted with each of them, as it is not shared any more once a node has read a snapshot.
//!
//! It is no part of the state: it is in no snapshot, no digest and no decision of apply, so builds may count otherwise,
//! and a log means the same to all of them. Who leads asks for it before it takes a command in ([`crate::need`]).

mod count;
mod edit;
mod table;
mod weigh;

pub(crate) use count::spec_bytes;
pub(crate) use edit::Edit;
pub(crate) use table::Weighed;
pub(crate) use weigh::{Weigh, all_inside, of_entry, of_faults, of_list, of_map, of_set, of_shared, of_text};
