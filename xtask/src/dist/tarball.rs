//! The program with its manual, completions and texts, for a system without a package manager of its own.

use anyhow::Result;

use super::release::{Artefact, Release};
use super::tree::{READ, RUN, Tree};

/// Texts that go with every copy.
pub(crate) const TEXTS: [&str; 3] = ["LICENSE", "NOTICE", "README.md"];

/// Makes it.
///
/// # Errors
/// A text of the project is missing.
pub(crate) fn make(release: &Release) -> Result<Artefact> {
    let mut tree = Tree::default();
    tree.add("bin/tripod", RUN, release.program.clone());
    tree.add_tree("share/man/man1", &release.man);
    tree.add("share/bash-completion/completions/tripod", READ, release.completions.bash.clone());
    tree.add("share/zsh/site-functions/_tripod", READ, release.completions.zsh.clone());
    tree.add("share/fish/vendor_completions.d/tripod.fish", READ, release.completions.fish.clone());
    for text in TEXTS {
        tree.add_file(text, &release.root.join(text))?;
    }
    tree.add_file("server.toml", &release.root.join("docs/server.toml"))?;
    tree.add_folder("deploy", &release.root.join("deploy"))?;
    let name = release.full_name();
    let bytes = tree.tar_gz(&format!("{name}/"), release.epoch_s, release.effort)?;
    Ok(Artefact { name: file_name(release), bytes })
}

/// `tripod-0.1.0-linux-x86_64.tar.gz`.
pub(crate) fn file_name(release: &Release) -> String {
    format!("{}.tar.gz", release.full_name())
}

#[cfg(test)]
mod tests {
    use super::super::release::sample;
    use super::super::tree::un_tar_gz;
    use super::*;

    #[test]
    fn a_tarball_has_the_program_its_manual_completions_and_licences_and_is_the_same_each_time() {
        let release = sample();
        let artefact = make(&release).unwrap();
        assert_eq!(artefact.name, "tripod-0.1.0-linux-x86_64.tar.gz");
        assert!(artefact.bytes == make(&release).unwrap().bytes, "two of one release differ");
        let found = un_tar_gz(&artefact.bytes);
        let of = |path: &str| {
            let path = format!("tripod-0.1.0-linux-x86_64/{path}");
            let entry = found.iter().find(|entry| entry.0 == path);
            entry.unwrap_or_else(|| panic!("no {path}"))
        };
        assert_eq!((of("bin/tripod").1, &of("bin/tripod").3), (RUN, &release.program));
        for path in [
            "share/man/man1/tripod.1",
            "share/man/man1/tripod-server.1",
            "share/bash-completion/completions/tripod",
            "share/zsh/site-functions/_tripod",
            "share/fish/vendor_completions.d/tripod.fish",
            "LICENSE",
            "NOTICE",
            "README.md",
            "server.toml",
            "deploy/systemd/tripod.service",
        ] {
            assert_eq!((of(path).1, of(path).2), (READ, release.epoch_s), "{path}");
            assert!(!of(path).3.is_empty(), "{path}");
        }
        assert!(String::from_utf8_lossy(&of("LICENSE").3).contains("Apache License"));
    }
}
