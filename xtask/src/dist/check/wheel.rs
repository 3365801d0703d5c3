//! Both wheels, as `pip install tripod-ray` takes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Subject, answer};
use crate::cargo::target_dir;
use crate::clients;

/// What a program with both of them does.
const USE: &str = include_str!("use_wheels.py");
/// Packages, and the folders of the project in which their metadata are.
const PACKAGES: [(&str, &str); 2] = [("tripod", "services/python-tripod"), ("tripod-ray", "services/python")];
const PURELIB: &str = "import sysconfig; print(sysconfig.get_path('purelib'))";
const CLASSIFIERS: &str = "import sys; from importlib.metadata import metadata; \
                           print(*metadata(sys.argv[1]).get_all('Classifier'), sep='\\n')";

/// # Errors
/// pip does not take them, their metadata are not those of the project, or a program that uses them fails.
pub(super) fn check(subject: &Subject<'_>) -> Result<String> {
    // gRPC and its kin are those of the clients' environment: an index could have another `tripod`.
    let with_needs = clients::newest(&target_dir()?.join("clients"))?;
    let place = subject.folder.join("environment");
    answer(Command::new(&with_needs).args(["-m", "venv"]).arg(&place))?;
    let python = place.join("bin/python");
    let ask = |of: &Path| -> Result<PathBuf> {
        Ok(answer(Command::new(of).args(["-c", PURELIB]))?.trim_end().into())
    };
    let line = format!("{}\n", ask(&with_needs)?.display());
    fs::write(ask(&python)?.join("needs.pth"), line).context("cannot write needs.pth")?;

    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--find-links",
    ]);
    answer(pip.arg(subject.out).arg("tripod-ray"))?;
    for (package, folder) in PACKAGES {
        let told = answer(Command::new(&python).args(["-c", CLASSIFIERS, package]))?;
        same_classifiers(&told, &subject.release.root.join(folder).join("pyproject.toml"))
            .with_context(|| format!("the wheel of {package}"))?;
    }
    let script = subject.folder.join("use_wheels.py");
    fs::write(&script, USE).context("cannot write a script")?;
    let told = answer(Command::new(&python).arg("-u").arg(script).current_dir(subject.folder))?;
    Ok(told.trim_end().to_owned())
}

/// Whether an installed package has those of its project.
fn same_classifiers(told: &str, project: &Path) -> Result<()> {
    let text = fs::read_to_string(project).with_context(|| format!("cannot read {}", project.display()))?;
    let table: toml::Table = text.parse().with_context(|| format!("{} is no TOML", project.display()))?;
    let classifiers = table["project"].get("classifiers").and_then(toml::Value::as_array);
    let wanted: BTreeSet<&str> = classifiers.into_iter().flatten().filter_map(toml::Value::as_str).collect();
    let has: BTreeSet<&str> = told.lines().collect();
    if wanted.is_empty() || wanted != has {
        bail!("has the classifiers {has:?}, and {} says {wanted:?}", project.display());
    }
    Ok(())
}
