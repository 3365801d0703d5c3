//! `cargo xtask bench mars`: tensors beside those of Dask and of pymars, by a program in Python.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{cargo, root, run, target_dir};
use crate::venv::Recipe;

/// What measures, and where the packages of each system are pinned.
const FOLDER: &str = "services/python/bench";

/// One of the environments. All but the first may be missing.
struct Environment {
    /// As it is called in the command line of what measures.
    option: &'static str,
    file: &'static str,
    probe: &'static str,
    minors: &'static [u8],
}

const OURS: Environment = Environment {
    option: "--ours",
    file: "requirements-tripod.txt",
    probe: "import grpc, numpy, cloudpickle, google.protobuf",
    minors: &[11, 12, 13],
};

/// Dask runs with the Python and the numpy of ours; pymars with the last Python that it has wheels for.
const PEERS: [Environment; 2] = [
    Environment {
        option: "--dask",
        file: "requirements-dask.txt",
        probe: "import dask.array, distributed",
        minors: &[11, 12, 13],
    },
    Environment {
        option: "--pymars",
        file: "requirements-pymars.txt",
        probe: "import mars.tensor",
        minors: &[9],
    },
];

impl Environment {
    fn recipe(&self) -> Recipe {
        let name = self.file.trim_start_matches("requirements-").trim_end_matches(".txt");
        Recipe {
            name: format!("venv-bench-{name}"),
            pins: Vec::new(),
            from_source: None,
            requirements: format!("{FOLDER}/{}", self.file),
            probe: self.probe,
            minors: self.minors,
        }
    }
}

/// Builds the program, sets up what is not named among the arguments, and measures. A peer that cannot be had is left out,
/// and that is said.
///
/// # Errors
/// The build or the measurement failed, or there is no Python for our side of it.
pub(super) fn bench(arguments: &[String]) -> Result<()> {
    run(cargo(&["build", "--release", "-p", "tripod"]))?;
    let built = target_dir()?;
    let environments = built.join("clients");
    let python = OURS.recipe().make(&environments).context("no Python for the benchmark of tensors")?;
    let mut command = Command::new(&python);
    command.arg(root().join(FOLDER).join("compare_mars.py"));
    command.arg("--tripod").arg(built.join("release").join("tripod"));
    for peer in PEERS {
        if !is_named(arguments, peer.option) {
            add(&mut command, &peer, &environments);
        }
    }
    command.args(arguments).current_dir(root());
    run(command)
}

/// Has the peer measured, if it can be had.
fn add(command: &mut Command, peer: &Environment, environments: &Path) {
    match peer.recipe().make(environments) {
        Ok(python) => {
            command.arg(peer.option).arg(python);
        }
        Err(error) => {
            let named = peer.option.trim_start_matches('-');
            eprintln!("{named} is left out: no environment of {FOLDER}/{} ({error:#})", peer.file);
        }
    }
}

/// Whether the caller has an interpreter of its own, or wants none (`--dask ""`).
fn is_named(arguments: &[String], option: &str) -> bool {
    arguments.iter().any(|argument| {
        argument == option || argument.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_that_is_named_is_not_set_up() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_named(&words("--rounds 2 --dask venv/bin/python"), "--dask"));
        assert!(is_named(&words("--dask=venv/bin/python"), "--dask"));
        assert!(!is_named(&words("--dask=venv/bin/python"), "--pymars"));
        assert!(!is_named(&words("--rounds 2"), "--dask"));
    }

    #[test]
    fn each_environment_has_its_pins() {
        for environment in PEERS.iter().chain([&OURS]) {
            let wanted = environment.recipe().wanted().expect("the file is there");
            assert!(wanted.contains("numpy=="), "{}", environment.file);
        }
    }
}
