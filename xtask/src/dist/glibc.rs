//! What a program needs of the system that it is run on, as its own file says.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use object::Endianness;
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _};

/// How the versions of glibc's functions begin.
const PREFIX: &str = "GLIBC_";
/// Needed of a system whose linker knows packed relocations, which glibc does since then.
const PACKED_RELOCATIONS: (&str, Glibc) = ("ABI_DT_RELR", Glibc(2, 36));
/// Libraries that every system with glibc has.
const EVERYWHERE: [&str; 8] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// A version of glibc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc(pub(crate) u16, pub(crate) u16);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Glibc {
    type Err = anyhow::Error;

    /// Functions that were added between two versions, `2.2.5`, need the first of them.
    fn from_str(text: &str) -> Result<Self> {
        let mut numbers = text.split('.').map(str::parse::<u16>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Self(major, minor)),
            _ => bail!("`{text}` is no version of glibc, such as 2.34"),
        }
    }
}

/// A kind of processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    X86,
    Arm,
}

impl Machine {
    /// As Linux, Python and file names have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// As Debian has it.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }
}

/// What a program needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) machine: Machine,
    /// The oldest glibc that has all of its functions; none: it brings its own.
    pub(crate) glibc: Option<Glibc>,
}

/// Reads it from the bytes of the program.
///
/// # Errors
/// It is no program of Linux for a processor that we know, or it needs a library that not every system has.
pub(crate) fn needs(program: &[u8]) -> Result<Needs> {
    let what = "it is no program of 64-bit Linux: give a file that `cargo build --release -p tripod` made";
    let header = FileHeader64::<Endianness>::parse(program).context(what)?;
    let endian = header.endian()?;
    let machine = match header.e_machine.get(endian) {
        EM_X86_64 => Machine::X86,
        EM_AARCH64 => Machine::Arm,
        other => bail!("it is for a processor of kind {other}, and we know x86_64 and aarch64"),
    };
    let sections = header.sections(endian, program)?;
    let mut libraries = BTreeSet::new();
    if let Some((entries, link)) = sections.dynamic(endian, program)? {
        let strings = sections.strings(endian, program, link)?;
        for entry in entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED)) {
            libraries.insert(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned());
        }
    }
    let mut versions = BTreeSet::new();
    if let Some((mut files, link)) = sections.gnu_verneed(endian, program)? {
        let strings = sections.strings(endian, program, link)?;
        while let Some((_, mut names)) = files.next()? {
            while let Some(name) = names.next()? {
                versions.insert(String::from_utf8_lossy(name.name(endian, strings)?).into_owned());
            }
        }
    }
    check_libraries(&libraries)?;
    Ok(Needs { machine, glibc: floor(&versions)? })
}

fn check_libraries(needed: &BTreeSet<String>) -> Result<()> {
    let rare: Vec<&str> =
        needed.iter().map(String::as_str).filter(|name| !EVERYWHERE.contains(name)).collect();
    if !rare.is_empty() {
        bail!("it needs libraries that not every system has: {}; link them into it", rare.join(", "));
    }
    Ok(())
}

/// The newest of the versions that are glibc's.
fn floor(versions: &BTreeSet<String>) -> Result<Option<Glibc>> {
    let mut newest = None;
    for version in versions.iter().filter_map(|version| version.strip_prefix(PREFIX)) {
        let (relocations, since) = PACKED_RELOCATIONS;
        let needed = if version == relocations {
            since
        } else {
            version.parse().with_context(|| format!("it needs {PREFIX}{version}"))?
        };
        newest = newest.max(Some(needed));
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_newest_version_is_what_a_program_needs_by_number_and_not_by_letter() {
        let of = |names: &[&str]| floor(&set(names)).unwrap();
        assert_eq!(of(&["GLIBC_2.4", "GLIBC_2.28", "GLIBC_2.2.5", "GCC_4.2.0"]), Some(Glibc(2, 28)));
        assert_eq!(of(&["GLIBC_2.34", "GLIBC_ABI_DT_RELR"]), Some(Glibc(2, 36)));
        assert_eq!(of(&["GCC_3.0"]), None);
        assert!(floor(&set(&["GLIBC_PRIVATE"])).is_err());
        assert_eq!(Glibc(2, 34).to_string(), "2.34");
    }

    #[test]
    fn a_library_that_is_not_everywhere_is_refused_by_name() {
        assert!(check_libraries(&set(&["libc.so.6", "libgcc_s.so.1"])).is_ok());
        let error = check_libraries(&set(&["libc.so.6", "libssl.so.3"])).unwrap_err().to_string();
        assert!(error.contains("libssl.so.3") && !error.contains("libc.so.6"), "{error}");
    }

    #[test]
    fn this_very_program_is_read_and_a_text_is_not() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = needs(&own).unwrap();
        assert_eq!(needs.machine.name(), std::env::consts::ARCH);
        assert!(needs.glibc.is_none_or(|glibc| glibc >= Glibc(2, 2)), "{needs:?}");
        assert!(format!("{:#}", super::needs(b"#!/bin/sh\n").unwrap_err()).contains("cargo build --release"));
    }
}
