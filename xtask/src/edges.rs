//! Which crate may depend on which. The table is the policy: a new edge is a change of its own.

mod pins;
mod table;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use table::{COMPOSE, FOR_TESTS, FRONT_END_MAY, FRONT_ENDS, OURS, OWN, STATE_MAY, THEIRS};

/// One dependency of one crate of the workspace.
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    dev: bool,
}

/// Checks `cargo metadata` against the tables.
///
/// # Errors
/// Every edge that the tables do not allow, each with its reason.
pub(crate) fn check(metadata: &Value) -> Result<()> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let names: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let edges: Vec<Edge<'_>> = packages.iter().flat_map(edges_of).collect();
    let mut wrong: Vec<String> = names
        .iter()
        .filter(|name| OURS.iter().all(|ours| ours.package != **name))
        .filter(|name| FRONT_ENDS.iter().all(|front_end| front_end.package != **name))
        .map(|name| format!("{name} is not in xtask/src/edges/table.rs: say there what it may depend on"))
        .collect();
    for edge in &edges {
        if names.contains(edge.to) {
            wrong.extend(check_ours(edge));
        } else {
            wrong.extend(check_theirs(edge));
        }
    }
    wrong.extend(pins::wrong(packages));
    if !wrong.is_empty() {
        bail!("dependencies against the layout:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

fn edges_of(package: &Value) -> Vec<Edge<'_>> {
    let from = package["name"].as_str().unwrap_or_default();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    dependencies
        .iter()
        .filter_map(|dependency| {
            let to = dependency["name"].as_str()?;
            Some(Edge { from, to, dev: dependency["kind"].as_str() == Some("dev") })
        })
        .collect()
}

fn check_ours(edge: &Edge<'_>) -> Option<String> {
    let (may, dev, because) = row(edge.from)?;
    let in_tests = || dev.contains(&edge.to) || FOR_TESTS.contains(&edge.to);
    let composes =
        || COMPOSE.contains(&edge.from) && FRONT_ENDS.iter().any(|front_end| front_end.package == edge.to);
    let own = || OWN.contains(&(edge.from, edge.to));
    let may = may.contains(&edge.to) || composes() || own() || (edge.dev && in_tests());
    (!may).then(|| format!("{} -> {}: {because}", edge.from, edge.to))
}

/// What a crate may depend on, also in its tests, and why.
fn row(package: &str) -> Option<(&'static [&'static str], &'static [&'static str], &'static str)> {
    let front_end = FRONT_ENDS.iter().find(|front_end| front_end.package == package);
    let front_end =
        front_end.map(|row| (FRONT_END_MAY, row.dev, "front ends never see raft, nor each other"));
    let ours =
        || OURS.iter().find(|ours| ours.package == package).map(|ours| (ours.may, ours.dev, ours.because));
    front_end.or_else(ours)
}

fn check_theirs(edge: &Edge<'_>) -> Option<String> {
    if edge.from == "tripod-state" && !edge.dev && !STATE_MAY.contains(&edge.to) {
        return Some(format!("tripod-state -> {}: the state machine is pure; {STATE_MAY:?} is all", edge.to));
    }
    let theirs = THEIRS.iter().find(|theirs| theirs.crates.contains(&edge.to))?;
    let may = if edge.dev { &theirs.dev } else { &theirs.normal };
    (!may.have(edge.from)).then(|| format!("{} -> {}: {}", edge.from, edge.to, theirs.because))
}

#[cfg(test)]
mod tests;
