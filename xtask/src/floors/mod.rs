//! Which folder of `raft/src` may name which. The table is the policy: a new arrow is a change of its own.
//!
//! Whatever is compiled into the product is read along its `mod` lines, so tests may name what they like. A permission that
//! nobody uses is refused as well: the table says what there is.

mod names;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What a folder, or a file beside them, may name.
struct Floor {
    /// Below `raft/src`.
    folder: &'static str,
    /// Counted from the bottom.
    floor: u8,
    /// Folders below, or neighbours that are named on purpose.
    may: &'static [&'static str],
    because: &'static str,
}

const SOURCES: &str = "raft/src";

const CARE: &str = "what looks after a node does so by itself, and knows neither the others nor the node";

const FLOORS: &[Floor] = &[
    Floor { folder: "base", floor: 1, may: &[], because: "words know no disk, no node and no peer" },
    Floor {
        folder: "disk",
        floor: 2,
        may: &["base"],
        because: "what is on disk knows no engine, no leader, no member and no snapshot",
    },
    Floor {
        folder: "log",
        floor: 3,
        may: &["base", "disk"],
        because: "the log knows what keeps it by its contract, and not what is done with its entries",
    },
    Floor {
        folder: "snapshot",
        floor: 3,
        may: &["base", "disk"],
        because: "a file of the state knows neither who applies nor who sends",
    },
    Floor {
        folder: "apply",
        floor: 4,
        may: &["base", "disk", "snapshot"],
        because: "the state machine knows no leader and no peer, nor who looks at what it remembers",
    },
    Floor {
        folder: "offline",
        floor: 4,
        may: &["base", "disk", "snapshot"],
        because: "what is done with files needs no running node, nor the writer of its log",
    },
    Floor {
        folder: "peers",
        floor: 5,
        may: &["base", "disk", "snapshot"],
        because: "the transport carries messages, and knows neither what is applied nor who leads",
    },
    Floor {
        folder: "lead",
        floor: 6,
        may: &["apply", "base", "log", "peers"],
        because: "who leads knows nobody who looks after a node, and no node",
    },
    Floor { folder: "care", floor: 7, may: &[], because: CARE },
    Floor {
        folder: "care/divergence",
        floor: 7,
        may: &["apply", "base", "disk", "lead", "peers"],
        because: CARE,
    },
    Floor { folder: "care/level", floor: 7, may: &["apply", "base", "disk", "lead", "peers"], because: CARE },
    Floor {
        folder: "care/membership",
        floor: 7,
        // Whoever was removed asks as one does that has lost its data.
        may: &["apply", "base", "care/rejoin", "lead", "peers"],
        because: CARE,
    },
    Floor {
        folder: "care/rejoin",
        floor: 7,
        may: &["apply", "base", "disk", "lead", "peers"],
        because: CARE,
    },
    Floor { folder: "care/space", floor: 7, may: &["apply", "base", "disk", "lead", "peers"], because: CARE },
    Floor {
        folder: "node",
        floor: 8,
        may: &[
            "apply",
            "base",
            "care/divergence",
            "care/level",
            "care/membership",
            "care/rejoin",
            "care/space",
            "disk",
            "lead",
            "log",
            "offline",
            "peers",
            "snapshot",
        ],
        because: "a node is everything put together, and does not know how it is shown",
    },
    Floor {
        folder: "handle",
        floor: 9,
        may: &["apply", "base", "care/level", "care/membership", "lead", "node", "offline"],
        because: "the handle shows what a node does",
    },
    Floor {
        folder: "fuzzing",
        floor: 9,
        may: &["base", "care/divergence", "care/rejoin", "care/space", "disk", "lead", "peers", "snapshot"],
        because: "whatever reads bytes of others is fuzzed where it stands",
    },
    Floor {
        folder: "lib",
        floor: 9,
        may: &[],
        because: "what the crate shows it names by `pub use`, and nobody inside goes that way",
    },
];

/// Checks the sources below `root` against the table.
///
/// # Errors
/// Every name that the table does not allow, each with its reason.
pub(crate) fn check(root: &Path) -> Result<()> {
    let wrong = complaints(&read(&root.join(SOURCES))?, FLOORS);
    if !wrong.is_empty() {
        bail!("names against the floors of {SOURCES} (xtask/src/floors/mod.rs):\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// The Rust files of a folder, by their paths below it.
fn read(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(directory) = open.pop() {
        let entries =
            fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("{} is no UTF-8 text", path.display()))?;
                let below = path.strip_prefix(folder).context("a file is below its folder")?;
                files.insert(below.to_string_lossy().into_owned(), text);
            }
        }
    }
    Ok(files)
}

fn complaints(files: &BTreeMap<String, String>, floors: &[Floor]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for module in names::modules(files) {
        let Some(from) = floor_of(&module.path, floors) else {
            wrong.push(format!("{}: it is on no floor: say in the table what it may name", module.file));
            continue;
        };
        for (line, path) in &module.names {
            let to = floor_of(path, floors).map_or("lib", |floor| floor.folder);
            if to == from.folder {
                continue;
            }
            if from.may.contains(&to) {
                used.insert((from.folder, to));
            } else {
                wrong.push(format!("{}:{line}: {} -> {to}: {}", module.file, from.folder, from.because));
            }
        }
    }
    for floor in floors {
        let unused = floor.may.iter().filter(|to| !used.contains(&(floor.folder, **to)));
        wrong.extend(
            unused.map(|to| format!("{} names {to} nowhere: take it out of the table", floor.folder)),
        );
        let up = floor.may.iter().filter(|to| !leads_down(floor, to, floors));
        wrong
            .extend(up.map(|to| format!("the table lets {} name {to}, which is not below it", floor.folder)));
    }
    wrong
}

/// Whether a folder that may be named is below, or a neighbour that may not name this one.
fn leads_down(from: &Floor, to: &str, floors: &[Floor]) -> bool {
    let to = floors.iter().find(|floor| floor.folder == to);
    to.is_some_and(|to| match to.floor.cmp(&from.floor) {
        Ordering::Less => true,
        Ordering::Equal => to.folder != from.folder && !to.may.contains(&from.folder),
        Ordering::Greater => false,
    })
}

/// The floor of what is at that path; the root is that of `lib.rs`.
fn floor_of<'f>(path: &[String], floors: &'f [Floor]) -> Option<&'f Floor> {
    if path.is_empty() {
        return floors.iter().find(|floor| floor.folder == "lib");
    }
    let holds = |floor: &&Floor| {
        let folders = floor.folder.split('/').count();
        folders <= path.len() && floor.folder.split('/').eq(path[..folders].iter().map(String::as_str))
    };
    floors.iter().filter(holds).max_by_key(|floor| floor.folder.len())
}
