//! The commands of README and of the pages for clients, typed as they stand. Programs that they start are stood in for:
//! `python` ends at once, `srun` and `mpirun` are one of their processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::screen::assert_as_shown;
use crate::site::Site;

/// Each page with its commands that are typed elsewhere, by how they begin.
const PAGES: [(&str, &str, &[&str]); 7] = [
    (
        "README.md",
        include_str!("../../../../README.md"),
        &["cargo ", "tripod dev ", "tripod run --job demo "],
    ),
    ("jax.md", include_str!("../../../../docs/clients/jax.md"), &[]),
    ("tensorflow.md", include_str!("../../../../docs/clients/tensorflow.md"), &[]),
    ("mars.md", include_str!("../../../../docs/clients/mars.md"), &["tripod dev ", "tripod objstore "]),
    ("mindspore.md", include_str!("../../../../docs/clients/mindspore.md"), &[]),
    ("ray.md", include_str!("../../../../docs/clients/ray.md"), &["tripod objstore ", "tripod worker "]),
    ("tasks.md", include_str!("../../../../docs/runbooks/tasks.md"), &[]),
];
/// The jobs of the pages, which each block begins anew.
const JOBS: [&str; 2] = ["exp7", "train42"];
/// How commands begin that are typed here; others are lines of programs, of files and of output.
const COMMANDS: [&str; 6] = ["tripod ", "srun ", "mpirun ", "export ", "cargo ", "install "];
/// The directory that a page has made.
const OBJECTS_ON_PAGE: &str = "/var/lib/tripod-objects";
/// What JAX must find in its variable behind each block: one of the ways of its page, if any.
const LOOK_AT_ADDRESS: &str =
    r#"case "$JAX_COORDINATOR_ADDRESS" in ""|ipv4:*,*,*|xds:///*|127.0.0.1:*) ;; *) exit 9 ;; esac"#;
/// How `tripod run` begins what it says.
const SAID: &str = "tripod run: ";
/// Programs that stand in for those of the pages.
const STAND_INS: [(&str, &str); 4] = [
    ("python", "exit 0"),
    ("srun", r#"shift 2; SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=64 exec "$@""#),
    ("mpirun", r#"shift 2; OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=8 exec "$@""#),
    // As `jq -r .target` does.
    ("jq", r#"sed -n 's/.*"target": *"\([^"]*\)".*/\1/p'"#),
];

/// Commands that stand together in one block, and what the page shows of their screen, if it does.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    commands: Vec<String>,
    shows: Vec<String>,
}

/// The commands of a page.
fn blocks(page: &str) -> Vec<Typed> {
    let (mut blocks, mut open, mut fence) = (Vec::<Typed>::new(), Vec::new(), None);
    for line in page.lines() {
        let text = line.trim_start();
        let kind = text.strip_prefix("```");
        if kind.is_some() {
            fence = if fence.is_none() { kind } else { None };
        }
        let is_code = kind.is_none() && (fence.is_some() || line.starts_with("    "));
        let is_command = COMMANDS.iter().any(|command| text.starts_with(command));
        if is_code && fence == Some("text") {
            blocks.last_mut().expect("a screen stands behind its commands").shows.push(line.to_owned());
        } else if is_code && is_command && !text.starts_with(SAID) {
            open.push(text.to_owned());
        } else if !is_code && !line.trim().is_empty() && !open.is_empty() {
            blocks.push(Typed { commands: std::mem::take(&mut open), ..Typed::default() });
        }
    }
    blocks.extend((!open.is_empty()).then_some(Typed { commands: open, ..Typed::default() }));
    blocks
}

/// A directory of stand-ins.
fn stand_ins(folder: &Path) {
    for (name, script) in STAND_INS {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    }
}

#[test]
fn the_commands_of_readme_and_client_pages_do_what_they_say() {
    let site = Site::of_three();
    let folder = tempfile::tempdir().expect("a directory");
    stand_ins(folder.path());
    let objects = folder.path().join("objects");
    site.wait_for_all(3);
    let mut count = 0;
    for (page, text, elsewhere) in PAGES {
        let blocks = blocks(text);
        assert!(!blocks.is_empty(), "{page} has no commands");
        for Typed { commands, shows } in blocks {
            for job in JOBS {
                // It may not be there.
                let _ = site.attempt(&format!("tripod job delete {job} --yes"));
            }
            let typed: Vec<_> =
                commands
                    .iter()
                    .filter(|line| !elsewhere.iter().any(|begin| line.starts_with(begin)))
                    // An agent serves until it is ended, which its own tests look at; that it takes its flags is seen here.
                    .map(|line| {
                        if line.starts_with("tripod agent ") {
                            format!("{line} --help")
                        } else {
                            line.clone()
                        }
                    })
                    .collect();
            count += typed.len();
            // A value is printed as it is, and a prompt stands behind it.
            let script = typed.join("\necho\n").replace("a:7700,b:7700,c:7700", "$TRIPOD_ENDPOINTS");
            let script = script.replace(OBJECTS_ON_PAGE, &objects.display().to_string());
            let path = folder.path().display();
            let (code, printed, told) =
                site.screen(&format!("set -e\nPATH={path}:$PATH\n{script}\n{LOOK_AT_ADDRESS}"));
            assert_eq!(code, Some(0), "{page}:\n{script}\n{printed}\n{told}");
            if !shows.is_empty() {
                assert_as_shown(&format!("{page}: {script}"), &shows, &printed);
            }
        }
    }
    // Of the numbers of the walk-through of a new operator, n21: a store refuses a directory that others may enter.
    let mode = fs::metadata(&objects).expect("made as the page has it").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{}", objects.display());
    assert!(count > 30, "only {count} commands were typed");
}

#[test]
fn blocks_are_the_commands_that_stand_together_and_their_screens() {
    let page = "Text\n\n    tripod a    # why\n    tripod b\n\nMore\n\n```\nexport C=1\nprogram\n```\n\nIt prints:\n\n\
                ```text\ntripod is\n  there\n```\n\nEnd\n";
    let typed = |commands: &[&str], shows: &[&str]| Typed {
        commands: commands.iter().map(ToString::to_string).collect(),
        shows: shows.iter().map(ToString::to_string).collect(),
    };
    let expected =
        [typed(&["tripod a    # why", "tripod b"], &[]), typed(&["export C=1"], &["tripod is", "  there"])];
    assert_eq!(blocks(page), expected);
}
