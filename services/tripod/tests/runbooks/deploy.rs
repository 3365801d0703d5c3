//! Nodes take what files of `deploy/` tell them: every flag of a manifest, a file of containers, a script of Slurm, a unit.
//! What else must be true of these files is tested beside `cargo xtask dist`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Files that start nodes by a list of arguments.
const LISTS: [(&str, &str); 4] = [
    ("rendered/default.yaml", include_str!("../../../../deploy/kubernetes/rendered/default.yaml")),
    ("rendered/joining.yaml", include_str!("../../../../deploy/kubernetes/rendered/joining.yaml")),
    ("rendered/protected.yaml", include_str!("../../../../deploy/kubernetes/rendered/protected.yaml")),
    ("compose.yaml", include_str!("../../../../deploy/compose/compose.yaml")),
];
/// Files and pages with commands that people and programs type.
const LINES: [(&str, &str); 10] = [
    ("nodes-inside.sbatch", include_str!("../../../../deploy/slurm/nodes-inside.sbatch")),
    ("nodes-outside.sbatch", include_str!("../../../../deploy/slurm/nodes-outside.sbatch")),
    ("tripod.service", include_str!("../../../../deploy/systemd/tripod.service")),
    ("postinst", include_str!("../../../../deploy/systemd/debian/postinst")),
    ("NOTES.txt", include_str!("../../../../deploy/kubernetes/tripod/templates/NOTES.txt")),
    ("values.yaml", include_str!("../../../../deploy/kubernetes/tripod/values.yaml")),
    ("systemd.md", include_str!("../../../../docs/deploy/systemd.md")),
    ("kubernetes.md", include_str!("../../../../docs/deploy/kubernetes.md")),
    ("slurm.md", include_str!("../../../../docs/deploy/slurm.md")),
    ("compose.md", include_str!("../../../../docs/deploy/compose.md")),
];

/// What a command prints on standard output; it must succeed.
fn answer(arguments: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tripod"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRIPOD_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The arguments that follow each `- server` of a list, as one pod or service of the first number has them.
fn lists(text: &str) -> Vec<Vec<String>> {
    let mut lists = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while lines.by_ref().any(|line| line == "- server") {
        let item = |line: &str| line.strip_prefix("- ").map(|item| item.trim_matches('"').to_owned());
        let arguments = lines.clone().map_while(item);
        lists.push(
            arguments.map(|text| text.replace("$(POD_NUMBER)", "1").replace("$(POD_NAME)", "pod")).collect(),
        );
    }
    lists
}

/// The words of a command that a line has, from `tripod` on, without what only a shell reads.
fn command(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_program = |word: &&str| {
        let word = word.trim_start_matches("ExecStart=").trim_start_matches(['`', '"', '(']);
        matches!(word, "tripod" | "/usr/bin/tripod")
    };
    let at = words.iter().position(is_program)?;
    let ends = |word: &&str| ["--", "|", "||", "&&", "&", ";", ">", "2>&1"].contains(word);
    Some(words[at + 1..].iter().copied().take_while(|word| !ends(word)).collect())
}

#[test]
fn nodes_take_every_argument_of_manifests_and_of_files_of_containers() {
    for (file, text) in LISTS {
        let lists = lists(text);
        assert_eq!(lists.len(), if file == "compose.yaml" { 3 } else { 1 }, "{file}");
        // One value is asked for, and all flags are read for it.
        let data = ["config", "explain", "data", "--json", "--"].map(str::to_owned);
        for arguments in lists {
            let told = answer(&[&data[..], &arguments[..]].concat());
            assert!(told.contains(r#""from":"flag""#), "{file}: {told}");
        }
    }
}

#[test]
fn commands_in_scripts_units_and_guides_have_the_flags_that_are_given_to_them() {
    let (mut checked, mut helps) = (0, BTreeMap::new());
    for (file, text) in LINES {
        let joined = text.replace("\\\n", " ");
        for words in joined.lines().filter_map(command) {
            let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let names: Vec<String> = words
                .iter()
                .take(2)
                .take_while(is_name)
                .take_while(|word| !word.starts_with('-'))
                .map(|word| (*word).to_owned())
                .collect();
            let flags: Vec<&str> = words
                .iter()
                .filter_map(|word| word.strip_prefix("--"))
                .map(|flag| flag.split(['=', '`', '"', ',', ')', '.']).next().unwrap_or_default())
                .filter(|flag| !flag.is_empty())
                .collect();
            if names.is_empty() || flags.is_empty() {
                continue;
            }
            let help = helps.entry(names.clone()).or_insert_with(|| help_of(&names));
            for flag in flags {
                let found = help.split_whitespace().any(|word| {
                    let word = word.trim_end_matches(',');
                    word.strip_prefix("--").is_some_and(|rest| rest.split(['=', '[']).next() == Some(flag))
                });
                assert!(found, "{file}: `tripod {}` has no --{flag}", names.join(" "));
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "hardly a flag was found: {checked}");
}

/// The help of a command of one word or two.
fn help_of(names: &[String]) -> String {
    let mut arguments = names.to_vec();
    let two = ["config", "job", "kv", "leader", "level", "member", "node", "snapshot"];
    if !two.contains(&names[0].as_str()) {
        arguments.truncate(1);
    }
    arguments.push("--help".to_owned());
    answer(&arguments)
}

#[test]
fn the_file_that_the_package_installs_is_complete_and_legal() {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/server.toml"));
    answer(&["config".to_owned(), "check".to_owned(), file.display().to_string()]);
}
