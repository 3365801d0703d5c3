//! What an image of a container is built from, and the image where something here builds it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::glibc::Glibc;
use super::release::Release;
use super::tree::RUN;
use crate::cargo;

/// Programs that build images.
const BUILDERS: [&str; 3] = ["docker", "podman", "buildah"];
/// The glibc of the image that ours begins with, Debian 12's.
const BASE: Glibc = Glibc(2, 36);

/// Writes the folder that an image is built from into `out`.
///
/// # Errors
/// The program needs more than the image has; a file cannot be written.
pub(crate) fn context(release: &Release, out: &Path) -> Result<PathBuf> {
    if let Some(glibc) = release.glibc.filter(|glibc| *glibc > BASE) {
        bail!(
            "the program needs glibc {glibc}, and the image of deploy/container/Dockerfile has {BASE}: name a newer \
             one in both, or build for an older glibc: cargo xtask dist --glibc 2.28"
        );
    }
    let folder = out.join(format!("{}-container", release.full_name()));
    // Empty, and made before anything else: a volume begins as its copy.
    let data = folder.join("data");
    fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
    let program = folder.join("tripod");
    fs::write(&program, &release.program).with_context(|| format!("cannot write {}", program.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(RUN))?;
    for (name, source) in
        [("Dockerfile", "deploy/container/Dockerfile"), ("LICENSE", "LICENSE"), ("NOTICE", "NOTICE")]
    {
        fs::copy(release.root.join(source), folder.join(name))
            .with_context(|| format!("cannot copy {source}"))?;
    }
    Ok(folder)
}

/// Builds the image, if something here can; gives the builder.
///
/// # Errors
/// The builder failed.
pub(crate) fn build(release: &Release, context: &Path) -> Result<Option<&'static str>> {
    // `info` asks the builder's service, where `--version` only shows that its command is there.
    let works = |builder: &&str| {
        Command::new(builder).arg("info").output().is_ok_and(|output| output.status.success())
    };
    let Some(builder) = BUILDERS.into_iter().find(works) else { return Ok(None) };
    let mut command = Command::new(builder);
    command.args(["build", "--tag", &tag(release)]).arg(context);
    cargo::run(command)?;
    Ok(Some(builder))
}

/// The name of the image.
pub(crate) fn tag(release: &Release) -> String {
    format!("tripod:{}", release.version)
}

#[cfg(test)]
mod tests {
    use super::super::release::sample;
    use super::*;

    #[test]
    fn an_image_is_built_from_a_folder_that_has_all_that_its_recipe_copies() {
        let out = tempfile::tempdir().unwrap();
        let folder = context(&sample(), out.path()).unwrap();
        let recipe = fs::read_to_string(folder.join("Dockerfile")).unwrap();
        let mut copied = 0;
        for line in recipe.lines().filter(|line| line.starts_with("COPY ")) {
            let words: Vec<&str> = line.split_whitespace().filter(|word| !word.starts_with("--")).collect();
            let [_, sources @ .., _] = &words[..] else { panic!("{line}") };
            for source in sources {
                assert!(folder.join(source).exists(), "{line}: {source} is not there");
                copied += 1;
            }
        }
        assert_eq!(copied, fs::read_dir(&folder).unwrap().count() - 1, "something is there for nothing");
        let mode = fs::metadata(folder.join("tripod")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, RUN);
    }

    #[test]
    fn a_program_that_needs_more_than_the_image_has_is_refused_with_a_way_out() {
        let out = tempfile::tempdir().unwrap();
        let newer = Release { glibc: Some(Glibc(2, 39)), ..sample() };
        let error = context(&newer, out.path()).unwrap_err().to_string();
        assert!(error.contains("2.39") && error.contains("--glibc 2.28"), "{error}");
    }
}
