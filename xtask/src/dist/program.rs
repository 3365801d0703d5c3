//! The program: built, without its symbols, and asked for its manual and completions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::glibc::{Glibc, Machine};
use super::release::Completions;
use super::tree::Tree;
use crate::cargo::{self, cargo, shown, target_dir};
use crate::venv::Recipe;

/// What strips a program is a part of.
const BINUTILS: &str = "it is a part of binutils: apt-get install binutils";
/// What builds for an older glibc than this machine has: pinned, and got by pip.
const ZIG: &str = "deploy/requirements-zig.txt";
/// Versions of Python for which it is published.
const ZIG_MINORS: &[u8] = &[13, 12, 11, 10, 9];

/// Builds the program with the profile `dist`; for an older glibc than that of this machine, if one is named.
///
/// # Errors
/// The build failed, or what builds for another glibc is not there.
pub(crate) fn build(older: Option<Glibc>) -> Result<PathBuf> {
    let Some(glibc) = older else {
        cargo::run(cargo(&["build", "--profile", "dist", "--locked", "--package", "tripod"]))?;
        return Ok(target_dir()?.join("dist/tripod"));
    };
    let programs = zig().context("no cargo-zigbuild, which builds for an older glibc")?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let versioned = format!("{target}.{glibc}");
    let mut build =
        cargo(&["zigbuild", "--profile", "dist", "--locked", "--package", "tripod", "--target", &versioned]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(programs).chain(std::env::split_paths(&path));
    build.env("PATH", std::env::join_paths(places).context("PATH cannot be made longer")?);
    cargo::run(build)?;
    Ok(target_dir()?.join(target).join("dist/tripod"))
}

/// Where `cargo-zigbuild` and zig are, in an environment of Python that is made if it is missing.
fn zig() -> Result<PathBuf> {
    let recipe = Recipe {
        name: "venv-zig".to_owned(),
        pins: Vec::new(),
        from_source: None,
        requirements: ZIG.to_owned(),
        probe: "import ziglang",
        minors: ZIG_MINORS,
    };
    let python = recipe.make(&target_dir()?.join("clients"))?;
    Ok(python.parent().context("an interpreter lies in a folder")?.to_owned())
}

/// Writes the program without its symbols, and the symbols, into `out`; gives both files.
///
/// # Errors
/// What does it is not there, or failed.
pub(crate) fn strip(program: &Path, out: &Path, name: &str) -> Result<(PathBuf, PathBuf)> {
    let (stripped, symbols) = (out.join(format!("{name}.program")), out.join(format!("{name}.debug")));
    let mut keep = Command::new("objcopy");
    keep.arg("--only-keep-debug").arg(program).arg(&symbols);
    let mut strip = Command::new("strip");
    strip.args(["--strip-all", "--remove-section=.comment", "-o"]).arg(&stripped).arg(program);
    for command in [keep, strip] {
        cargo::run(command).context(BINUTILS)?;
    }
    Ok((stripped, symbols))
}

/// The manual pages that the program writes.
///
/// # Errors
/// It does not run here, or writes none.
pub(crate) fn manual(program: &Path, folder: &Path) -> Result<Tree> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove the old {}", folder.display()))?;
    }
    answer(Command::new(program).arg("man").arg(folder))?;
    let mut tree = Tree::default();
    tree.add_folder("", folder)?;
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    if tree.iter().next().is_none() {
        bail!("`{} man` wrote no page", program.display());
    }
    Ok(tree)
}

/// The scripts for shells that the program prints.
///
/// # Errors
/// It does not run here, or prints nothing.
pub(crate) fn completions(program: &Path) -> Result<Completions> {
    let of = |shell: &str| answer(Command::new(program).args(["completion", shell]));
    Ok(Completions { bash: of("bash")?, zsh: of("zsh")?, fish: of("fish")? })
}

/// Whether the program runs here.
///
/// # Errors
/// It is for another kind of processor.
pub(crate) fn check_machine(machine: Machine) -> Result<()> {
    let here = std::env::consts::ARCH;
    if machine.name() != here {
        bail!(
            "the program is for {}, and this machine is {here}: its manual is written by the program itself, so run \
             this on a machine of its kind",
            machine.name()
        );
    }
    Ok(())
}

fn answer(command: &mut Command) -> Result<Vec<u8>> {
    let shown = shown(command);
    // What this shell is told about a cluster is nobody's default.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRIPOD_")) {
        command.env_remove(name);
    }
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!("`{shown}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// The bytes of the program, as they are shipped.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read(program: &Path) -> Result<Vec<u8>> {
    fs::read(program).with_context(|| {
        format!("cannot read {}; to build it: cargo build --profile dist -p tripod", program.display())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A program that answers as ours does.
    const FAKE: &str = "#!/bin/sh\ncase $1 in\n\
        man) mkdir -p \"$2\" && echo .TH > \"$2/tripod.1\" && echo done ;;\n\
        completion) echo \"for $2\" ;;\n\
        *) echo no >&2; exit 2 ;;\nesac\n";

    #[test]
    fn manual_and_completions_are_those_of_the_program_itself() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tripod");
        fs::write(&program, FAKE).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let pages = folder.path().join("man");
        // What an earlier run left there is no page of this one.
        fs::create_dir_all(&pages).unwrap();
        fs::write(pages.join("old.1"), "old").unwrap();
        let manual = manual(&program, &pages).unwrap();
        assert_eq!(manual.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["tripod.1"]);
        assert!(!pages.exists());
        assert_eq!(completions(&program).unwrap().zsh, b"for zsh\n");
        let error = answer(Command::new(&program).arg("other")).unwrap_err().to_string();
        assert!(error.contains("other") && error.contains("no"), "{error}");
        let tree = read(&folder.path().join("missing")).unwrap_err().to_string();
        assert!(tree.contains("cargo build --profile dist -p tripod"), "{tree}");
    }
}
