//! `cargo xtask dist --check`: each artefact is installed where nothing else of it is, and used: a cluster begins, a key is
//! written, the leader is killed, and the key is read and written again.
//!
//! | module | purpose |
//! |---|---|
//! | `cluster` | `tripod dev` of a program, and the death of its leader |
//! | `tarball` | unpacked in an empty directory |
//! | `deb` | installed in a system that has never seen it, with its service's command, user and settings |
//! | `wheel` | `pip install tripod-ray` in a fresh environment, without an index |

mod cluster;
mod deb;
mod tarball;
mod wheel;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::release::Release;
use super::{Kind, SUMS, say};
use crate::cargo::shown;
use crate::clean_root::PATH;

/// What a check looks at.
struct Subject<'a> {
    release: &'a Release,
    /// Where everything was written.
    out: &'a Path,
    /// Empty, and the check's own.
    folder: &'a Path,
}

/// Installs and uses those of these kinds that can be used here.
///
/// # Errors
/// What does not do what it is for, with what it said.
pub(super) fn all(release: &Release, out: &Path, kinds: &[Kind]) -> Result<()> {
    answer(Command::new("sha256sum").args(["--check", "--quiet", SUMS]).current_dir(out))?;
    let folder = out.join("check");
    for kind in kinds {
        let check = match kind {
            Kind::Tarball => tarball::check,
            Kind::Deb => deb::check,
            Kind::Wheel => wheel::check,
            // Helm's own library reads the chart in a test, and the image's recipe is built where something builds it.
            Kind::Chart | Kind::Container => continue,
        };
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let begun = Instant::now();
        let remark = check(&Subject { release, out, folder: &folder })
            .with_context(|| format!("the {} does not do what it is for", kind.word()))?;
        say(&format!("{}: {remark} ({:.1} s)", kind.word(), begun.elapsed().as_secs_f64()));
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// What a program prints that knows nothing of this shell.
///
/// # Errors
/// It did not end with success.
fn answer(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    command.env_clear().env("PATH", PATH).env("HOME", "/");
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("`{shown}` ended with {}: {told}{errors}", output.status);
    }
    Ok(told.into_owned())
}
