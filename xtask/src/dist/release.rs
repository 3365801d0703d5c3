//! What all artefacts of a release are made from.

use std::path::PathBuf;

use super::glibc::{Glibc, Machine};
use super::tree::Tree;

/// A program that was built, and what goes with it everywhere.
#[derive(Debug)]
pub(crate) struct Release {
    /// Of the workspace.
    pub(crate) version: String,
    pub(crate) machine: Machine,
    /// The oldest glibc that it runs with; none: it brings its own.
    pub(crate) glibc: Option<Glibc>,
    /// Seconds since 1970 of the commit: the time of every file, so that a release is the same whenever it is made.
    pub(crate) epoch_s: u64,
    /// Without symbols.
    pub(crate) program: Vec<u8>,
    /// Manual pages, `tripod.1` and so on.
    pub(crate) man: Tree,
    pub(crate) completions: Completions,
    /// The root of the project, whose texts and files of deployment go with it.
    pub(crate) root: PathBuf,
    pub(crate) effort: Effort,
}

/// How hard packages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As a release is: everybody who downloads it gains.
    Best,
    /// For a package that is unpacked once, here, and thrown away.
    Least,
}

impl Effort {
    /// As zlib counts it.
    pub(crate) fn level(self) -> u8 {
        match self {
            Self::Best => 9,
            Self::Least => 1,
        }
    }
}

/// Scripts for shells.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    pub(crate) bash: Vec<u8>,
    pub(crate) zsh: Vec<u8>,
    pub(crate) fish: Vec<u8>,
}

/// A file that was made, before it is written.
#[derive(Debug)]
pub(crate) struct Artefact {
    /// Its name in the folder of the release.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Release {
    /// `tripod-0.1.0-linux-x86_64`.
    pub(crate) fn full_name(&self) -> String {
        format!("tripod-{}-linux-{}", self.version, self.machine.name())
    }
}

/// A release of a small program in a copy of what it needs of the project.
#[cfg(test)]
pub(crate) fn sample() -> Release {
    use super::tree::READ;

    let mut man = Tree::default();
    man.add("tripod.1", READ, ".TH tripod 1\n");
    man.add("tripod-server.1", READ, ".TH tripod-server 1\n");
    Release {
        version: "0.1.0".to_owned(),
        machine: Machine::X86,
        glibc: Some(Glibc(2, 34)),
        epoch_s: 1_700_000_000,
        program: b"#!/bin/sh\necho a fake tripod \"$@\"\n".to_vec(),
        man,
        completions: Completions { bash: b"bash".to_vec(), zsh: b"zsh".to_vec(), fish: b"fish".to_vec() },
        root: crate::cargo::root(),
        effort: Effort::Best,
    }
}
