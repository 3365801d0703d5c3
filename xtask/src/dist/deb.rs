//! The package for Debian and its kin: the program, a service that is not started by itself, its user, its directories.

use std::fs;

use anyhow::{Context, Result};
use md5::{Digest as _, Md5};

use super::release::{Artefact, Release};
use super::tree::{READ, RUN, Tree, gz};

/// Where the configuration is, which people change.
const CONFIGURATION: &str = "etc/tripod/server.toml";
/// Files of `deploy/systemd`, and where they belong.
const SYSTEMD: [(&str, &str); 4] = [
    ("tripod.service", "usr/lib/systemd/system/tripod.service"),
    ("tripod.sysusers", "usr/lib/sysusers.d/tripod.conf"),
    ("tripod.tmpfiles", "usr/lib/tmpfiles.d/tripod.conf"),
    ("tripod.sysctl", "usr/lib/sysctl.d/50-tripod.conf"),
];
/// What runs as the package is installed and removed, in `deploy/systemd/debian`.
const SCRIPTS: [&str; 3] = ["postinst", "postrm", "prerm"];
const KIB: usize = 1024;

/// Makes it.
///
/// # Errors
/// A file of the project is missing.
pub(crate) fn make(release: &Release) -> Result<Artefact> {
    let data = data(release)?;
    let control = control(release, &data)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control.tar_gz("", release.epoch_s, release.effort)?),
        ("data.tar.gz", data.tar_gz("", release.epoch_s, release.effort)?),
    ];
    let mut builder = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), u64::try_from(bytes.len())?);
        header.set_mode(0o100_644);
        header.set_mtime(release.epoch_s);
        builder.append(&header, &bytes[..]).with_context(|| format!("cannot pack {name}"))?;
    }
    Ok(Artefact { name: file_name(release), bytes: builder.into_inner()? })
}

/// `tripod_0.1.0_amd64.deb`.
pub(crate) fn file_name(release: &Release) -> String {
    format!("tripod_{}_{}.deb", release.version, release.machine.debian())
}

/// What is unpacked.
fn data(release: &Release) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.add("usr/bin/tripod", RUN, release.program.clone());
    tree.add_file(CONFIGURATION, &release.root.join("docs/server.toml"))?;
    for (name, path) in SYSTEMD {
        tree.add_file(path, &release.root.join("deploy/systemd").join(name))?;
    }
    for (path, entry) in release.man.iter() {
        tree.add(format!("usr/share/man/man1/{path}.gz"), READ, gz(&entry.bytes, release.effort)?);
    }
    tree.add("usr/share/bash-completion/completions/tripod", READ, release.completions.bash.clone());
    tree.add("usr/share/zsh/vendor-completions/_tripod", READ, release.completions.zsh.clone());
    tree.add("usr/share/fish/vendor_completions.d/tripod.fish", READ, release.completions.fish.clone());
    tree.add_file("usr/share/doc/tripod/copyright", &release.root.join("LICENSE"))?;
    tree.add_file("usr/share/doc/tripod/NOTICE", &release.root.join("NOTICE"))?;
    tree.add_file("usr/share/doc/tripod/README.md", &release.root.join("README.md"))?;
    Ok(tree)
}

/// What the package manager reads.
fn control(release: &Release, data: &Tree) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.add("control", READ, fields(release, data));
    tree.add("conffiles", READ, format!("/{CONFIGURATION}\n"));
    let sums = data.iter().filter(|(path, _)| *path != CONFIGURATION);
    let sums: String =
        sums.map(|(path, entry)| format!("{:x}  {path}\n", Md5::digest(&entry.bytes))).collect();
    tree.add("md5sums", READ, sums);
    for name in SCRIPTS {
        let script = release.root.join("deploy/systemd/debian").join(name);
        let bytes = fs::read(&script).with_context(|| format!("cannot read {}", script.display()))?;
        tree.add(name, RUN, bytes);
    }
    Ok(tree)
}

fn fields(release: &Release, data: &Tree) -> String {
    let depends = match release.glibc {
        Some(glibc) => format!("Depends: libc6 (>= {glibc}), libgcc-s1\n"),
        None => String::new(),
    };
    format!(
        "Package: tripod\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Tripod Authors <maintainers@tripod.invalid>\n\
         Installed-Size: {size_kib}\n\
         {depends}\
         Recommends: systemd\n\
         Section: net\n\
         Priority: optional\n\
         Description: coordinator for distributed ML jobs without a single point of failure\n \
         Three nodes keep one replicated state and speak the protocols that unmodified\n \
         clients of JAX, TensorFlow and MindSpore speak. Any node may be killed.\n \
         .\n \
         The package starts nothing: write /etc/tripod/server.toml first.\n",
        version = release.version,
        architecture = release.machine.debian(),
        size_kib = data.size().div_ceil(KIB),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;
    use std::process::Command;

    use super::super::release::sample;
    use super::super::tree::un_tar_gz;
    use super::*;

    /// The members of the package, by name.
    fn members(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut archive = ar::Archive::new(bytes);
        let mut found = Vec::new();
        while let Some(entry) = archive.next_entry() {
            let mut entry = entry.unwrap();
            let name = String::from_utf8(entry.header().identifier().to_vec()).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            found.push((name, bytes));
        }
        found
    }

    fn files(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        un_tar_gz(bytes).into_iter().map(|(path, mode, _, bytes)| (path, (mode, bytes))).collect()
    }

    #[test]
    fn a_package_says_what_it_is_and_its_sums_are_those_of_its_files() {
        let release = sample();
        let artefact = make(&release).unwrap();
        assert_eq!(artefact.name, "tripod_0.1.0_amd64.deb");
        assert!(artefact.bytes == make(&release).unwrap().bytes, "two of one release differ");
        let members = members(&artefact.bytes);
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
        assert_eq!(members[0].1, b"2.0\n");
        let (control, data) = (files(&members[1].1), files(&members[2].1));

        let text = String::from_utf8(control["control"].1.clone()).unwrap();
        for field in [
            "Package: tripod",
            "Version: 0.1.0",
            "Architecture: amd64",
            "Depends: libc6 (>= 2.34), libgcc-s1",
        ] {
            assert!(text.lines().any(|line| line == field), "{field} is not in\n{text}");
        }
        assert_eq!(data["usr/bin/tripod"], (RUN, release.program));
        let sums = String::from_utf8(control["md5sums"].1.clone()).unwrap();
        let mut summed = 0;
        for line in sums.lines() {
            let (sum, path) = line.split_once("  ").unwrap();
            assert_eq!(sum, format!("{:x}", Md5::digest(&data[path].1)), "{path}");
            summed += 1;
        }
        let of_files = data.keys().filter(|path| !path.ends_with('/')).count();
        assert_eq!(summed + 1, of_files, "all but the configuration have a sum");
        assert_eq!(control["conffiles"].1, b"/etc/tripod/server.toml\n");
    }

    #[test]
    fn scripts_are_run_and_start_no_node() {
        let bytes = make(&sample()).unwrap().bytes;
        let control = files(&members(&bytes)[1].1);
        for name in SCRIPTS {
            let (mode, bytes) = &control[name];
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert_eq!(*mode, RUN, "{name}");
            let starts = |line: &&str| {
                let line = line.trim_start();
                line.starts_with("systemctl") && ["start", "enable"].iter().any(|word| line.contains(word))
            };
            assert_eq!(text.lines().find(starts), None, "{name}");
            let folder = tempfile::tempdir().unwrap();
            let script = folder.path().join(name);
            fs::write(&script, bytes).unwrap();
            let parsed = Command::new("sh").arg("-n").arg(&script).status().unwrap();
            assert!(parsed.success(), "{name} is no script");
        }
        let told = String::from_utf8(control["postinst"].1.clone()).unwrap();
        for next in ["tripod preflight --config", "systemctl enable --now tripod", "tripod node drain ID"] {
            assert!(told.contains(&format!("echo \"  {next}")), "{next} is not what comes next:\n{told}");
        }
    }

    /// Where Debian's own program is, it has the last word.
    #[test]
    fn debian_reads_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let artefact = make(&sample()).unwrap();
        let package = folder.path().join(&artefact.name);
        fs::write(&package, &artefact.bytes).unwrap();
        let place = folder.path().join("unpacked");
        let Ok(output) = Command::new("dpkg-deb").arg("-x").arg(&package).arg(&place).output() else {
            eprintln!("no dpkg-deb here: only what the other tests look at was looked at");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let run = Command::new(place.join("usr/bin/tripod")).arg("version").output().unwrap();
        assert_eq!(run.stdout, b"a fake tripod version\n");
        let field = Command::new("dpkg-deb").arg("-f").arg(&package).arg("Version").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&field.stdout).trim(), "0.1.0");
    }
}
