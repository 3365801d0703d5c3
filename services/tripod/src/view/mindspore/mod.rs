//! MindSpore's clusters, as people and scripts see them.

pub(crate) mod events;
pub(crate) mod nodes;
pub(crate) mod plan;
pub(crate) mod state;

/// What is said where no node has registered yet.
fn nobody(job: &str) -> String {
    format!(
        "no MindSpore node has registered with job `{job}`; next: `tripod job show {job}` tells where its nodes register"
    )
}

/// A number that may be missing, in a table.
fn or_dash(number: Option<u32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}
