//! Wheels: the program for whoever has pip, and the Python packages that need it.

mod project;

use std::io::{Cursor, Write as _};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use self::project::Project;
use super::release::{Artefact, Effort, Release};
use super::tree::{READ, RUN, Tree};

/// The package that has the program, and its folder, which holds a module of Python beside it.
const PROGRAM: (&str, &str) = ("tripod", "services/python-tripod");
/// Drivers and workers, and their folder.
const RAY: &str = "services/python";
const LICENCES: [&str; 2] = ["LICENSE", "NOTICE"];
/// Of a wheel that runs wherever Python does.
const EVERYWHERE: &str = "py3-none-any";

/// Makes both.
///
/// # Errors
/// A file of the project is missing, or a package has another version than the program.
pub(crate) fn make(release: &Release) -> Result<Vec<Artefact>> {
    Ok(vec![program(release)?, ray(release)?])
}

fn program(release: &Release) -> Result<Artefact> {
    let folder = release.root.join(PROGRAM.1);
    let project = Project::read(&folder)?;
    let mut tree = Tree::default();
    tree.add_folder("", &folder.join("src"))?;
    let scripts = format!("{}-{}.data/scripts", project.file_name(), project.version);
    tree.add(format!("{scripts}/{}", PROGRAM.0), RUN, release.program.clone());
    pack(release, &project, tree, &tag(release))
}

fn ray(release: &Release) -> Result<Artefact> {
    let folder = release.root.join(RAY);
    let project = Project::read(&folder)?.requiring(PROGRAM.0, &release.version);
    let mut tree = Tree::default();
    tree.add_folder("", &folder.join("src"))?;
    pack(release, &project, tree, EVERYWHERE)
}

/// Which systems may install the program: those with this glibc, or any other C library if it brings its own.
fn tag(release: &Release) -> String {
    let machine = release.machine.name();
    match release.glibc {
        Some(glibc) => format!("py3-none-manylinux_{}_{}_{machine}", glibc.0, glibc.1),
        // Tags may be several: a static program runs with glibc and with musl.
        None => format!("py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"),
    }
}

fn pack(release: &Release, project: &Project, mut tree: Tree, tag: &str) -> Result<Artefact> {
    if project.version != release.version {
        bail!(
            "`{}` has version {} and the program {}: write the same into pyproject.toml and Cargo.toml",
            project.name,
            project.version,
            release.version
        );
    }
    let name = format!("{}-{}", project.file_name(), project.version);
    let info = format!("{name}.dist-info");
    for licence in LICENCES {
        tree.add_file(format!("{info}/licenses/{licence}"), &release.root.join(licence))?;
    }
    tree.add(format!("{info}/METADATA"), READ, project.metadata(&LICENCES));
    if let Some(text) = project.entry_points() {
        tree.add(format!("{info}/entry_points.txt"), READ, text);
    }
    tree.add(format!("{info}/WHEEL"), READ, wheel(tag)?);
    let record = format!("{info}/RECORD");
    let lines: String = tree.iter().map(|(path, entry)| line(path, &entry.bytes)).collect();
    let bytes = zipped(&tree, &record, &format!("{lines}{record},,\n"), release.effort)?;
    Ok(Artefact { name: format!("{name}-{tag}.whl"), bytes })
}

/// The text of `WHEEL`.
fn wheel(tag: &str) -> Result<String> {
    let (python, platforms) = tag.rsplit_once('-').context("a tag has three parts")?;
    let tags: String = platforms.split('.').map(|platform| format!("Tag: {python}-{platform}\n")).collect();
    let is_pure = tag == EVERYWHERE;
    Ok(format!("Wheel-Version: 1.0\nGenerator: tripod-dist\nRoot-Is-Purelib: {is_pure}\n{tags}"))
}

/// The line of a file in `RECORD`.
fn line(path: &str, bytes: &[u8]) -> String {
    format!("{path},sha256={},{}\n", URL_SAFE_NO_PAD.encode(Sha256::digest(bytes)), bytes.len())
}

/// The files, and the list of them as the last one. They have the time that zip begins with: who installs a wheel gives
/// its files a time of his own.
fn zipped(tree: &Tree, record: &str, lines: &str, effort: Effort) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = |mode: u32| {
        SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(effort.level().into()))
            .last_modified_time(DateTime::default())
            .unix_permissions(mode)
    };
    for (path, entry) in tree.iter() {
        writer.start_file(path, options(entry.mode)).with_context(|| format!("cannot pack {path}"))?;
        writer.write_all(&entry.bytes)?;
    }
    writer.start_file(record, options(READ))?;
    writer.write_all(lines.as_bytes())?;
    Ok(writer.finish()?.into_inner())
}

#[cfg(test)]
mod tests;
