//! `cargo xtask verify`: everything that can be said about the tree without running it. Writes
//! nothing but build directories.

use anyhow::Result;

use crate::cargo::{cargo, metadata, root, run};
use crate::stage::Stage;
use crate::{deny, edges, floors, tidy};

/// The stages, cheapest first.
pub(crate) fn stages() -> Vec<Stage> {
    vec![
        Stage::new("tidy", || tidy::check(&root())),
        Stage::new("edges", || edges::check(&metadata()?)),
        Stage::new("floors", || floors::check(&root())),
        Stage::new("deny", deny::check),
        Stage::new("fmt", || run(cargo(&["fmt", "--all", "--check"]))),
        Stage::new("clippy", clippy),
        Stage::new("doc", doc),
    ]
}

fn clippy() -> Result<()> {
    run(cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn doc() -> Result<()> {
    let mut command = cargo(&["doc", "--quiet", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run(command)
}
