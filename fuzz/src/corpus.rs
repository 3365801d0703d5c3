//! Inputs that are kept in the tree, `fuzz/corpus/TARGET/*`: one of each shape, and what was found once, under a name that says
//! what it did. Every one is tried by a unit test, and changed ones are tried when a target is fuzzed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where they lie.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Those of one target, by name; none if it has no folder.
///
/// # Errors
/// A file that is there cannot be read.
pub fn of(folder: &Path, target: &str) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = folder.join(target);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|input| (path, input))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::attempt;
    use crate::target::{ALL, named};

    #[test]
    fn what_was_found_once_is_not_found_again() {
        for target in ALL {
            let inputs = of(&folder(), target.name).unwrap();
            assert!(!inputs.is_empty(), "{} has no input in the tree", target.name);
            for (path, input) in inputs {
                let tried = attempt(target, &input);
                assert_eq!(
                    tried,
                    Ok(()),
                    "{}: to see it alone: cargo xtask fuzz --replay it",
                    path.display()
                );
            }
        }
    }

    #[test]
    fn every_folder_is_a_target_s() {
        for entry in fs::read_dir(folder()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(named(&name).is_some(), "{name} is no target");
        }
    }
}
