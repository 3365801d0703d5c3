//! `tripod man`: a manual page for every command, from the description of the command line.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use serde::Serialize;
use tripod_proto::code::Code;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::count;

/// What `man` prints. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct WrittenView<'a> {
    directory: &'a Path,
    pages: usize,
}

pub(crate) fn run(dir: &Path, format: Format) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::OutputFailed, format!("cannot write manual pages to {}: {error}", dir.display()))
    };
    fs::create_dir_all(dir).map_err(failed)?;
    let pages = pages()?;
    for (name, page) in &pages {
        fs::write(dir.join(name), page).map_err(failed)?;
    }
    let view = WrittenView { directory: dir, pages: pages.len() };
    match format {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}

impl WrittenView<'_> {
    fn render(&self) -> String {
        let directory = self.directory.display();
        format!("{} in {directory}; `man -l {directory}/tripod.1`", count(self.pages, "page"))
    }
}

/// Names of files, and what is in them.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut pages = Vec::new();
    // Built first, so that subcommands have the global flags and are called by their whole names.
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    add(&cli, "tripod", &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command called `name`, and those of the commands below it.
fn add(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).section("1").render(&mut text)?;
    pages.push((format!("{name}.1"), text));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        add(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(command: &Command, name: &str, found: &mut BTreeSet<String>) {
        found.insert(name.to_owned());
        for below in command.get_subcommands() {
            names(below, &format!("{name}-{}", below.get_name()), found);
        }
    }

    #[test]
    fn n17_the_command_that_shows_a_page_names_the_directory() {
        let view = WrittenView { directory: Path::new("man"), pages: 62 };
        assert_eq!(view.render(), "62 pages in man; `man -l man/tripod.1`");
    }

    #[test]
    fn every_command_has_a_page_with_its_flags() {
        let pages = pages().expect("generated");
        let mut commands = BTreeSet::new();
        names(&Cli::command(), "tripod", &mut commands);
        let paged: BTreeSet<String> =
            pages.iter().map(|(name, _)| name.trim_end_matches(".1").to_owned()).collect();
        assert_eq!(paged, commands);
        let text = |name: &str| {
            let page = pages.iter().find(|(page, _)| page == name).expect("a page");
            String::from_utf8(page.1.clone()).expect("UTF-8").replace('\\', "")
        };
        let remove = text("tripod-member-remove.1");
        for part in [".TH tripod-member-remove 1", "tripod member remove", "--force", "--endpoints"] {
            assert!(remove.contains(part), "{part}: {remove}");
        }
        assert!(text("tripod.1").contains("Exit codes: 0 done"), "examples and exit codes are in it");
    }
}
