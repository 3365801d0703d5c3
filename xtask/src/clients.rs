//! Python environments with pinned releases of jaxlib, made once and kept in the build directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::cargo::{root, run};

/// A release of jaxlib that the tests drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Release {
    pub(crate) jaxlib: &'static str,
    /// Minor versions of Python 3 that have wheels of it, the preferred one first.
    minors: &'static [u8],
}

/// The newest release, the last one for Python 3.11, and the last one of the older dialect.
pub(crate) const RELEASES: &[Release] = &[
    Release { jaxlib: "0.12.0.1", minors: &[13, 12] },
    Release { jaxlib: "0.10.2", minors: &[11, 12, 13] },
    Release { jaxlib: "0.9.2", minors: &[11, 12, 13] },
];

/// What every environment holds besides jax; beside the scripts that need it.
const REQUIREMENTS: &str = "tests/clients/requirements.txt";

/// Set to `1` where there is no way to get jaxlib: the real clients are then left out, loudly.
pub(crate) const SKIP_VARIABLE: &str = "TRIPOD_SKIP_CLIENTS";

/// The environments' interpreters, by release; missing environments are made.
///
/// # Errors
/// No fitting interpreter, or pip failed; the text says how to go on without.
pub(crate) fn prepare(folder: &Path) -> Result<Vec<(Release, PathBuf)>> {
    let outcomes: Vec<Result<PathBuf>> = std::thread::scope(|scope| {
        let makers: Vec<_> =
            RELEASES.iter().map(|release| scope.spawn(move || environment(folder, *release))).collect();
        let join = |maker: std::thread::ScopedJoinHandle<'_, Result<PathBuf>>| {
            maker.join().unwrap_or_else(|_| Err(anyhow!("the maker of an environment panicked")))
        };
        makers.into_iter().map(join).collect()
    });
    let mut ready = Vec::new();
    for (release, outcome) in RELEASES.iter().zip(outcomes) {
        let python = outcome.with_context(|| {
            format!(
                "no Python environment for jaxlib {}: install one of Python {} and reach a package index, \
                 or set {SKIP_VARIABLE}=1 to leave the real clients out",
                release.jaxlib,
                release.minors.iter().map(|minor| format!("3.{minor}")).collect::<Vec<_>>().join(", "),
            )
        })?;
        ready.push((*release, python));
    }
    Ok(ready)
}

fn environment(folder: &Path, release: Release) -> Result<PathBuf> {
    let place = folder.join(format!("venv-{}", release.jaxlib));
    let python = place.join("bin").join("python");
    let stamp = place.join("complete");
    let wanted = wanted(release)?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && python.exists() {
        return Ok(python);
    }
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("cannot remove the old {}", place.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let interpreter = interpreter(release)?;
    eprintln!("  making {} with {}", place.display(), interpreter.display());
    let mut make = Command::new(interpreter);
    make.args(["-m", "venv"]).arg(&place);
    run(make)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:"]);
    install.arg("--disable-pip-version-check").args(pins(release)).arg("-r").arg(root().join(REQUIREMENTS));
    run(install)?;
    let mut probe = Command::new(&python);
    probe.args(["-c", "import jax, jaxlib, numpy, grpc, google.protobuf"]);
    run(probe)?;
    // Written last: an interrupted installation is made anew.
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

fn pins(release: Release) -> [String; 2] {
    [format!("jax=={}", release.jaxlib), format!("jaxlib=={}", release.jaxlib)]
}

/// What a complete environment was made from; an environment made from anything else is stale.
fn wanted(release: Release) -> Result<String> {
    let requirements = fs::read_to_string(root().join(REQUIREMENTS)).context(REQUIREMENTS)?;
    Ok(format!("{}\n{requirements}", pins(release).join("\n")))
}

/// The first interpreter that starts, has the right version and can make environments. Version
/// managers put programs on the path that refuse to start, so every candidate is asked.
fn interpreter(release: Release) -> Result<PathBuf> {
    let candidates = candidates(release);
    for candidate in &candidates {
        let mut ask = Command::new(candidate);
        ask.args(["-c", "import ensurepip, sys, venv; print(sys.version_info[1])"]);
        let Ok(answer) = ask.output() else { continue };
        let minor = String::from_utf8_lossy(&answer.stdout).trim().parse::<u8>();
        if answer.status.success() && minor.is_ok_and(|minor| release.minors.contains(&minor)) {
            return Ok(candidate.clone());
        }
    }
    let tried: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    bail!("no interpreter fits; tried {}", tried.join(", "))
}

fn candidates(release: Release) -> Vec<PathBuf> {
    let managed = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv/versions"));
    let mut found = Vec::new();
    for minor in release.minors {
        found.push(PathBuf::from(format!("python3.{minor}")));
        if let Some(managed) = &managed {
            found.extend(managed_interpreters(managed, *minor));
        }
    }
    found.push(PathBuf::from("python3"));
    found
}

fn managed_interpreters(managed: &Path, minor: u8) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(managed) else { return Vec::new() };
    let prefix = format!("3.{minor}.");
    let of_minor = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path().join("bin/python3"));
    of_minor.filter(|python| python.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_of_another_version_is_refused() {
        let error = interpreter(Release { jaxlib: "0", minors: &[1] }).unwrap_err();
        assert!(error.to_string().contains("python3.1"), "{error}");
    }

    #[test]
    fn a_stamp_changes_with_the_release() {
        assert_ne!(wanted(RELEASES[0]).unwrap(), wanted(RELEASES[1]).unwrap());
        assert!(wanted(RELEASES[0]).unwrap().starts_with("jax==0.12.0.1\njaxlib==0.12.0.1\n"));
    }
}
