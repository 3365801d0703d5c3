//! The commands of README and of the pages for clients, typed as they stand. Programs that they start are stood in for:
//! `python` ends at once, `srun` and `mpirun` are one of their processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::site::Site;

/// Each page with its commands that are typed elsewhere, by how they begin.
const PAGES: [(&str, &str, &[&str]); 5] = [
    ("README.md", include_str!("../../../../README.md"), &["cargo "]),
    ("jax.md", include_str!("../../../../docs/clients/jax.md"), &[]),
    ("tensorflow.md", include_str!("../../../../docs/clients/tensorflow.md"), &[]),
    ("ray.md", include_str!("../../../../docs/clients/ray.md"), &["tripod objstore ", "tripod worker "]),
    ("tasks.md", include_str!("../../../../docs/runbooks/tasks.md"), &[]),
];
/// The jobs of the pages, which each block begins anew.
const JOBS: [&str; 2] = ["exp7", "train42"];
/// How commands begin that are typed here; others are lines of programs, of files and of output.
const COMMANDS: [&str; 5] = ["tripod ", "srun ", "mpirun ", "export ", "cargo "];
/// How `tripod run` begins what it says.
const SAID: &str = "tripod run: ";
/// Programs that stand in for those of the pages.
const STAND_INS: [(&str, &str); 4] = [
    ("python", "exit 0"),
    ("srun", r#"shift 2; SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=64 exec "$@""#),
    ("mpirun", r#"shift 2; OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=8 exec "$@""#),
    ("jq", "cat"),
];

/// The commands of a page, those that stand together in one block.
fn blocks(page: &str) -> Vec<Vec<String>> {
    let (mut blocks, mut open, mut fenced) = (Vec::new(), Vec::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let text = line.trim_start();
        let is_code = fenced || line.starts_with("    ");
        let is_command = COMMANDS.iter().any(|command| text.starts_with(command));
        if is_code && is_command && !text.starts_with(SAID) {
            open.push(text.to_owned());
        } else if !is_code && !line.trim().is_empty() && !open.is_empty() {
            blocks.push(std::mem::take(&mut open));
        }
    }
    blocks.extend((!open.is_empty()).then_some(open));
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
    let mut count = 0;
    for (page, text, elsewhere) in PAGES {
        let blocks = blocks(text);
        assert!(!blocks.is_empty(), "{page} has no commands");
        for block in blocks {
            for job in JOBS {
                // It may not be there.
                let _ = site.attempt(&format!("tripod job delete {job} --yes"));
            }
            let typed: Vec<_> =
                block
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
            let script = typed.join("\n").replace("a:7700,b:7700,c:7700", "$TRIPOD_ENDPOINTS");
            let (code, told) =
                site.attempt(&format!("set -e\nPATH={}:$PATH\n{script}", folder.path().display()));
            assert_eq!(code, Some(0), "{page}:\n{script}\n{told}");
        }
    }
    assert!(count > 30, "only {count} commands were typed");
}

#[test]
fn blocks_are_the_commands_that_stand_together() {
    let page =
        "Text\n\n    tripod a    # why\n    tripod b\n\nMore\n\n```\nexport C=1\nprogram\n```\n\nEnd\n";
    assert_eq!(blocks(page), [vec!["tripod a    # why", "tripod b"], vec!["export C=1"]]);
}
