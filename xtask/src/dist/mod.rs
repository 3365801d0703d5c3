//! `cargo xtask dist`: what users install, made from one program, the same whoever makes it.
//!
//! | module | purpose |
//! |---|---|
//! | `program` | the program: built, stripped, asked for its manual |
//! | `glibc` | what it needs of a system |
//! | `release` | what all artefacts are made from |
//! | `tree` | files in memory, and as an archive that is the same each time |
//! | `sbom` | what the program is made of |
//! | `sign` | by whom it was made |
//! | `tarball`, `deb`, `wheel`, `chart`, `container` | the artefacts |
//! | `sizes` | how large they are, and should be |
//! | `check` | installs and uses them |

pub(crate) mod chart;
mod check;
mod container;
mod deb;
mod glibc;
mod program;
mod release;
mod sbom;
mod sign;
mod sizes;
mod tarball;
mod tree;
mod wheel;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use sha2::{Digest as _, Sha256};

use self::glibc::Glibc;
use self::release::{Artefact, Effort, Release};
use self::sizes::Goal;
use crate::cargo::{metadata, root, target_dir};

/// The oldest glibc that a release must run with, unless another one is named: that of Debian 12, Ubuntu 22.04 and
/// RHEL 9.
const GLIBC: Glibc = Glibc(2, 34);
/// No program needs a newer one: whatever this machine has will do for what is used here only.
const ANY_GLIBC: Glibc = Glibc(u16::MAX, 0);
/// The list of all files of a release with their hashes, as `sha256sum --check` reads it.
const SUMS: &str = "SHA256SUMS";

/// What to make, and from what.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Where to write everything [default: `dist` in cargo's target directory].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A program that was built with `cargo build --profile dist -p tripod` before; without it one is built.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// The glibc that the program must run with [default: 2.34]. Without --binary one is built for it by cargo-zigbuild,
    /// whatever this machine has.
    #[arg(long, value_name = "X.Y")]
    glibc: Option<Glibc>,
    /// Then install tarball, package and wheels where nothing else of Tripod is, and kill the leader of a cluster of each.
    #[arg(long)]
    check: bool,
    /// Sign the list of hashes with this secret key of minisign. Its password, if it has one, is in MINISIGN_PASSWORD.
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
    /// Compress as little as possible: packages that are to be used here, once.
    #[arg(long)]
    fast: bool,
}

/// A kind of artefact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Program, manual, completions and files of deployment, for any system.
    Tarball,
    /// The package for Debian and its kin.
    Deb,
    /// `tripod` and `tripod-ray` for pip.
    Wheel,
    /// The chart for Kubernetes.
    Chart,
    /// What an image is built from, and the image where docker, podman or buildah can build it.
    Container,
}

/// Makes a release.
///
/// # Errors
/// The build failed; the program needs more of a system than it may; a file of the project is missing.
pub(crate) fn run(options: &Options) -> Result<()> {
    let out = match &options.out {
        Some(out) => std::path::absolute(out)?,
        None => target_dir()?.join("dist"),
    };
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    // A key that cannot be used is told before minutes of work.
    let signer = options.sign.as_deref().map(sign::Signer::read).transpose()?;
    let release = prepare(options, &out)?;
    let mut lines = vec![write(&out, &sbom::make(&release)?, None)?];
    let wanted = |kind: &&Kind| options.only.is_empty() || options.only.contains(kind);
    let kinds: Vec<Kind> = Kind::value_variants().iter().filter(wanted).copied().collect();
    for kind in &kinds {
        say(&format!("{} ...", kind.word()));
        lines.extend(kind.make(&release, &out)?);
    }
    let signature = out.join(format!("{SUMS}{}", sign::SUFFIX));
    if signature.exists() {
        // That of an earlier run is of another list.
        fs::remove_file(&signature).with_context(|| format!("cannot remove {}", signature.display()))?;
    }
    let sums = sums(&out)?;
    fs::write(out.join(SUMS), &sums).with_context(|| format!("cannot write {SUMS}"))?;
    if let Some(signer) = signer {
        let text = signer.sign(sums.as_bytes(), &release)?;
        fs::write(&signature, text).with_context(|| format!("cannot write {}", signature.display()))?;
        say(&format!("signed: minisign -V -p KEY.pub -m {SUMS}"));
    }
    say(&format!("tripod {} is in {}", release.version, out.display()));
    println!("{}", sizes::line("the program, stripped", release.program.len(), Some(Goal::Program)));
    for line in lines {
        println!("{line}");
    }
    say(&format!("to check the files: cd {} && sha256sum --check {SUMS}", out.display()));
    if options.check {
        check::all(&release, &out, &kinds)?;
    }
    Ok(())
}

/// Packs a program that was built for tests, and installs and uses what comes of it.
///
/// # Errors
/// As [`run`].
pub(crate) fn check_packages(binary: PathBuf, out: PathBuf) -> Result<()> {
    run(&Options { out: Some(out), binary: Some(binary), check: true, ..Options::of_tests() })
}

/// Makes the wheels of a program, or of one that is built now, into a folder.
///
/// # Errors
/// As [`run`].
pub(crate) fn wheels(binary: Option<PathBuf>, out: PathBuf) -> Result<()> {
    run(&Options { out: Some(out), binary, only: vec![Kind::Wheel], ..Options::of_tests() })
}

impl Options {
    /// Of what is installed and used on this machine, and then thrown away.
    fn of_tests() -> Self {
        let only = vec![Kind::Tarball, Kind::Deb, Kind::Wheel];
        Self { out: None, binary: None, only, glibc: Some(ANY_GLIBC), check: false, sign: None, fast: true }
    }
}

impl Kind {
    /// As `--only` has it.
    fn word(self) -> String {
        self.to_possible_value().expect("none is hidden").get_name().to_owned()
    }

    /// Makes it; gives a line about each file.
    fn make(self, release: &Release, out: &Path) -> Result<Vec<String>> {
        match self {
            Self::Tarball => Ok(vec![write(out, &tarball::make(release)?, None)?]),
            Self::Deb => Ok(vec![write(out, &deb::make(release)?, None)?]),
            Self::Wheel => {
                let made = wheel::make(release)?;
                let goals = [Some(Goal::Wheel), None];
                made.iter().zip(goals).map(|(artefact, goal)| write(out, artefact, goal)).collect()
            }
            Self::Chart => Ok(vec![write(out, &chart::make(release)?, None)?]),
            Self::Container => {
                let context = container::context(release, out)?;
                let tag = container::tag(release);
                match container::build(release, &context)? {
                    Some(builder) => say(&format!("{builder} has built {tag}")),
                    None => say(&format!(
                        "neither docker, podman nor buildah works here; where one does: docker build --tag {tag} {}",
                        context.display()
                    )),
                }
                Ok(Vec::new())
            }
        }
    }
}

/// Builds the program, looks what it needs, strips it and asks it for its manual.
fn prepare(options: &Options, out: &Path) -> Result<Release> {
    let version = version()?;
    let epoch_s = epoch_s()?;
    let built = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            say("building the program, which takes minutes (--binary FILE takes one that is there) ...");
            program::build(options.glibc.filter(|glibc| *glibc != ANY_GLIBC))?
        }
    };
    let needs = glibc::needs(&program::read(&built)?).with_context(|| built.display().to_string())?;
    program::check_machine(needs.machine)?;
    check_floor(needs.glibc, options.glibc.unwrap_or(GLIBC))?;
    match needs.glibc {
        Some(glibc) => say(&format!("the program runs with glibc {glibc} and later")),
        None => say("the program is static: it runs with every C library"),
    }
    let name = format!("tripod-{version}-linux-{}", needs.machine.name());
    let (stripped, symbols) = program::strip(&built, out, &name)?;
    say(&format!("symbols for debuggers are in {}", symbols.display()));
    let release = Release {
        version,
        machine: needs.machine,
        glibc: needs.glibc,
        epoch_s,
        program: program::read(&stripped)?,
        man: program::manual(&built, &out.join(format!("{name}.man")))?,
        completions: program::completions(&built)?,
        root: root(),
        effort: if options.fast { Effort::Least } else { Effort::Best },
    };
    // It is in every artefact.
    fs::remove_file(&stripped).with_context(|| format!("cannot remove {}", stripped.display()))?;
    Ok(release)
}

/// Refuses a program that would not start where it must.
fn check_floor(needed: Option<Glibc>, stated: Glibc) -> Result<()> {
    if let Some(needed) = needed.filter(|needed| *needed > stated) {
        bail!(
            "the program needs glibc {needed}, and must run with {stated}: build it on an older system, or for the older \
             glibc with cargo-zigbuild: cargo xtask dist --glibc {stated}; if {needed} will do: --glibc {needed}"
        );
    }
    Ok(())
}

/// The version of the program.
fn version() -> Result<String> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let program = packages.iter().find(|package| package["name"] == "tripod");
    let version = program.and_then(|program| program["version"].as_str());
    Ok(version.context("there is no package `tripod`")?.to_owned())
}

/// Seconds since 1970 of what is released: `SOURCE_DATE_EPOCH`, as other builders of packages take it, or the commit.
fn epoch_s() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().with_context(|| format!("SOURCE_DATE_EPOCH={text} is no number of seconds"));
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root());
    let output = git.output().context("cannot start git; without it: SOURCE_DATE_EPOCH=SECONDS")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let what = "git does not tell when this was committed; tell it: SOURCE_DATE_EPOCH=SECONDS";
    text.trim().parse().context(what)
}

fn write(out: &Path, artefact: &Artefact, goal: Option<Goal>) -> Result<String> {
    let file = out.join(&artefact.name);
    fs::write(&file, &artefact.bytes).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(sizes::line(&artefact.name, artefact.bytes.len(), goal))
}

/// The hash of every file of a folder but the list itself, by name.
fn sums(folder: &Path) -> Result<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != SUMS {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    let line = |name: String| {
        let bytes = fs::read(folder.join(&name)).with_context(|| format!("cannot read {name}"))?;
        Ok(format!("{:x}  {name}\n", Sha256::digest(bytes)))
    };
    names.into_iter().map(line).collect()
}

fn say(what: &str) {
    eprintln!("dist: {what}");
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn kinds_are_named_in_one_list_and_an_unknown_one_is_refused() {
        let line = Line::parse_from(["dist", "--only", "deb,wheel", "--glibc", "2.28"]);
        assert_eq!(line.options.only, [Kind::Deb, Kind::Wheel]);
        assert_eq!(line.options.glibc, Some(Glibc(2, 28)));
        for wrong in [["--only", "rpm"], ["--glibc", "old"]] {
            assert!(Line::try_parse_from(["dist", wrong[0], wrong[1]]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_program_that_needs_a_newer_system_than_stated_is_refused_with_the_next_command() {
        assert!(check_floor(None, GLIBC).is_ok());
        assert!(check_floor(Some(GLIBC), GLIBC).is_ok());
        let error = check_floor(Some(Glibc(2, 38)), GLIBC).unwrap_err().to_string();
        for said in ["2.38", "cargo xtask dist --glibc 2.34", "--glibc 2.38"] {
            assert!(error.contains(said), "{said} is not in: {error}");
        }
    }

    #[test]
    fn sums_are_those_that_sha256sum_checks() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "abc").unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        fs::write(folder.path().join(SUMS), "old").unwrap();
        fs::create_dir(folder.path().join("c")).unwrap();
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n\
                        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n";
        assert_eq!(sums(folder.path()).unwrap(), expected);
    }

    #[test]
    fn a_release_has_the_version_of_the_program() {
        assert_eq!(version().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
