//! `monitoring`: alerts and dashboards before a real Prometheus, which is brought here if the machine has none.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{self, cargo, target_dir};
use crate::stage::Missing;

/// The package of Debian and its kin that has both programs.
const PACKAGE: &str = "prometheus";
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];
/// By which the tests find them.
const FOLDER: &str = "TRIPOD_PROMETHEUS";

/// Runs the tests that need them.
///
/// # Errors
/// One failed. [`Missing`]: there is no Prometheus, and none can be had.
pub(crate) fn run() -> Result<()> {
    let place = target_dir()?.join("prometheus");
    let folder = match installed().or_else(|| whole(&place.join("usr/bin"))) {
        Some(folder) => folder,
        None => fetch(&place)?,
    };
    let tests = ["test", "--workspace", "--test", "processes", "--", "--ignored", "monitoring::real"];
    cargo::run(cargo(&tests).env(FOLDER, folder))
}

/// Where the machine has them.
fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find_map(|folder| whole(&folder))
}

/// That folder, if it has both.
fn whole(folder: &Path) -> Option<PathBuf> {
    PROGRAMS.iter().all(|program| folder.join(program).is_file()).then(|| folder.to_path_buf())
}

/// Unpacks the package there. Nothing is installed, and no service is started.
fn fetch(place: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    let runs = |command: &mut Command| {
        command.current_dir(place).output().is_ok_and(|output| output.status.success())
    };
    let download = || runs(Command::new("apt-get").args(["download", PACKAGE]));
    // A machine that has just been made has no list of packages.
    let is_here = download() || (runs(Command::new("apt-get").args(["update", "-qq"])) && download());
    let package = std::fs::read_dir(place).ok().and_then(|entries| {
        let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.find(|file| file.extension().is_some_and(|extension| extension == "deb"))
    });
    let is_unpacked = match package.filter(|_| is_here) {
        Some(package) => runs(Command::new("dpkg").arg("-x").arg(package).arg(".")),
        None => false,
    };
    let folder = whole(&place.join("usr/bin")).filter(|_| is_unpacked);
    folder.ok_or_else(|| {
        Missing(format!(
            "no {PACKAGE}, and none can be had: apt-get install {PACKAGE}; its tests did not run"
        ))
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_that_has_both_programs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(PROGRAMS[0]), "").unwrap();
        assert_eq!(whole(folder.path()), None);
        std::fs::write(folder.path().join(PROGRAMS[1]), "").unwrap();
        assert_eq!(whole(folder.path()).as_deref(), Some(folder.path()));
    }
}
