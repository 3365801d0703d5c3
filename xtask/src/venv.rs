//! Python environments with pinned packages, made once and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{root, run};

/// What an environment holds.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Its directory.
    pub(crate) name: String,
    /// Packages with their versions, besides those in `requirements`.
    pub(crate) pins: Vec<String>,
    /// The one among them that was published without a wheel; everything else is taken as a wheel.
    pub(crate) from_source: Option<&'static str>,
    /// A file of the repository that pins all others.
    pub(crate) requirements: String,
    /// A program that fails if something is missing.
    pub(crate) probe: &'static str,
    /// Minor versions of Python 3 that have wheels of everything, the preferred one first.
    pub(crate) minors: &'static [u8],
}

impl Recipe {
    /// The environment's interpreter; a missing or stale environment is made anew.
    ///
    /// # Errors
    /// No fitting interpreter, or pip failed.
    pub(crate) fn make(&self, folder: &Path) -> Result<PathBuf> {
        let place = folder.join(&self.name);
        let python = place.join("bin").join("python");
        let stamp = place.join("complete");
        let wanted = self.wanted()?;
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && python.exists() {
            return Ok(python);
        }
        if place.exists() {
            fs::remove_dir_all(&place)
                .with_context(|| format!("cannot remove the old {}", place.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let interpreter = self.interpreter()?;
        eprintln!("  making {} with {}", place.display(), interpreter.display());
        let mut make = Command::new(interpreter);
        make.args(["-m", "venv"]).arg(&place);
        run(make)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:"]);
        if let Some(package) = self.from_source {
            install.args(["--no-binary", package]);
        }
        install.arg("--disable-pip-version-check").args(&self.pins);
        install.arg("-r").arg(root().join(&self.requirements));
        run(install)?;
        let mut probe = Command::new(&python);
        probe.args(["-c", self.probe]);
        run(probe)?;
        // Written last: an interrupted installation is made anew.
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(python)
    }

    /// The versions of Python that it can be made with, as an error tells them.
    pub(crate) fn pythons(&self) -> String {
        self.minors.iter().map(|minor| format!("3.{minor}")).collect::<Vec<_>>().join(", ")
    }

    /// What a complete environment was made from; an environment made from anything else is stale.
    pub(crate) fn wanted(&self) -> Result<String> {
        let file = root().join(&self.requirements);
        let requirements = fs::read_to_string(file).with_context(|| self.requirements.clone())?;
        Ok(format!("{}\n{requirements}", self.pins.join("\n")))
    }

    /// The first interpreter that starts, has the right version and can make environments. Version
    /// managers put programs on the path that refuse to start, so every candidate is asked.
    fn interpreter(&self) -> Result<PathBuf> {
        let candidates = self.candidates();
        for candidate in &candidates {
            let mut ask = Command::new(candidate);
            ask.args(["-c", "import ensurepip, sys, venv; print(sys.version_info[1])"]);
            let Ok(answer) = ask.output() else { continue };
            let minor = String::from_utf8_lossy(&answer.stdout).trim().parse::<u8>();
            if answer.status.success() && minor.is_ok_and(|minor| self.minors.contains(&minor)) {
                return Ok(candidate.clone());
            }
        }
        let tried: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
        bail!("no interpreter fits; tried {}", tried.join(", "))
    }

    fn candidates(&self) -> Vec<PathBuf> {
        let managed = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv/versions"));
        let mut found = Vec::new();
        for minor in self.minors {
            found.push(PathBuf::from(format!("python3.{minor}")));
            if let Some(managed) = &managed {
                found.extend(managed_interpreters(managed, *minor));
            }
        }
        found.push(PathBuf::from("python3"));
        found
    }
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
        let recipe = Recipe {
            name: "none".to_owned(),
            pins: Vec::new(),
            from_source: None,
            requirements: "none".to_owned(),
            probe: "",
            minors: &[1],
        };
        let error = recipe.interpreter().unwrap_err();
        assert!(error.to_string().contains("python3.1"), "{error}");
    }
}
