//! Which parts of an answer a client wants: names of fields, as the specification of the calls has them.

use std::collections::BTreeSet;

use tonic::Status;

use crate::limits::FIELDS_MAX;
use crate::status;

/// Those of schedulers.
pub(crate) const SCHEDULER: &[&str] = &["address", "role", "version", "applied_index", "update_time"];
/// Those of workers.
pub(crate) const WORKER: &[&str] = &[
    "status",
    "address",
    "bands",
    "slots",
    "resource",
    "quota",
    "storage",
    "sessions",
    "update_time",
    "env",
];
/// Those of graphs.
pub(crate) const GRAPH: &[&str] = &[
    "state",
    "progress",
    "start_time",
    "end_time",
    "error",
    "targets",
    "node_states",
    "stages",
    "subtask_counts",
    "graph_size",
];
/// Those of tileables.
pub(crate) const TILEABLE: &[&str] = &[
    "kind",
    "name",
    "shape",
    "dtype",
    "order",
    "nsplits",
    "chunk_keys",
    "chunk_indexes",
    "graph_key",
    "state",
    "nbytes",
    "columns",
    "index_kind",
];
/// Those of chunks.
pub(crate) const CHUNK: &[&str] =
    &["index", "shape", "dtype", "nbytes", "store_bytes", "workers", "version", "object_id"];

/// The fields that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fields {
    /// None were named.
    All,
    Only(BTreeSet<&'static str>),
}

impl Fields {
    /// Those that a request names.
    ///
    /// # Errors
    /// It names one that there is not; the text has those that there are.
    pub(crate) fn read(named: &[String], allowed: &[&'static str]) -> Result<Self, Status> {
        if named.len() > FIELDS_MAX {
            return Err(status::too_many("filter_fields", named.len(), FIELDS_MAX));
        }
        if named.is_empty() {
            return Ok(Self::All);
        }
        let find = |name: &String| {
            let found = allowed.iter().find(|field| **field == name.as_str()).copied();
            found.ok_or_else(|| {
                let shown: String = name.chars().take(64).collect();
                let allowed = allowed.join(", ");
                status::invalid(&format!("filter_fields: {shown:?} is none of {allowed}"))
            })
        };
        named.iter().map(find).collect::<Result<_, _>>().map(Self::Only)
    }

    /// Whether a field is wanted.
    pub(crate) fn want(&self, field: &'static str) -> bool {
        match self {
            Self::All => true,
            Self::Only(fields) => fields.contains(field),
        }
    }

    /// The value if the field is wanted, else nothing.
    pub(crate) fn only<T: Default>(&self, field: &'static str, value: T) -> T {
        if self.want(field) { value } else { T::default() }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nobody_who_names_none_wants_all() {
        let all = Fields::read(&[], GRAPH).unwrap();
        assert!(GRAPH.iter().all(|field| all.want(field)));
        let some = Fields::read(&names(&["error", "state", "error"]), GRAPH).unwrap();
        assert!(some.want("error") && some.want("state") && !some.want("progress"));
        assert_eq!((some.only("state", 4), some.only("progress", 4)), (4, 0));
    }

    #[test]
    fn an_unknown_field_is_refused_with_those_that_there_are() {
        let refused = Fields::read(&names(&["state", "colour"]), GRAPH).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let text = refused.message();
        assert!(text.contains("\"colour\"") && GRAPH.iter().all(|field| text.contains(field)), "{text}");
        assert_eq!(
            Fields::read(&vec!["state".to_owned(); 65], GRAPH).unwrap_err().code(),
            Code::ResourceExhausted
        );
    }
}
