//! What pages must say besides their commands. Each number is that of the walk-through of a new operator.

const README: &str = include_str!("../../../../README.md");
const RAY: &str = include_str!("../../../../docs/clients/ray.md");
const LOST_QUORUM: &str = include_str!("../../../../docs/runbooks/lost-quorum.md");
const GROW: &str = include_str!("../../../../docs/runbooks/grow-and-shrink.md");

/// The text of the first step of a page with this number, up to the next step or heading.
fn step(page: &str, number: u8) -> String {
    let begin = format!("{number}. ");
    let lines = page.lines().skip_while(|line| !line.starts_with(&begin));
    let is_next = |line: &str| line.starts_with('#') || line.starts_with(&format!("{}. ", number + 1));
    let lines: Vec<_> = lines.take_while(|line| !is_next(line)).collect();
    assert!(!lines.is_empty(), "there is no step {number}");
    lines.join("\n")
}

/// The lines of the last block of commands before a text.
fn block_before<'a>(page: &'a str, text: &str) -> Vec<&'a str> {
    let (before, _) = page.split_once(text).unwrap_or_else(|| panic!("`{text}` is not on the page"));
    let mut parts: Vec<&str> = before.split("```").collect();
    parts.pop();
    parts.pop().expect("a block").trim().lines().collect()
}

#[test]
fn n16_a_cluster_that_was_recovered_on_one_node_is_told_to_grow() {
    let step = step(LOST_QUORUM, 3);
    let (_, behind) = step.split_once("--keep-jobs\n").expect("the command");
    for said in ["no redundancy", "(grow-and-shrink.md)", "(backup-and-restore.md)"] {
        assert!(behind.contains(said), "{said} is not said behind the command:\n{behind}");
    }
}

#[test]
fn n21_the_directory_of_a_store_is_made_for_its_user_only() {
    let lines: Vec<_> = RAY.lines().map(str::trim).collect();
    let serve =
        lines.iter().position(|line| line.starts_with("tripod objstore ")).expect("a store is started");
    let (_, directory) = lines[serve].split_once("--directory ").expect("it has a directory");
    let made = format!("install -d -m 700 {directory} ");
    assert!(lines[serve - 1].starts_with(&made), "{made} is not before {}", lines[serve]);
}

#[test]
fn n22_which_of_two_nodes_that_join_at_once_has_which_id_is_looked_up() {
    let step = step(GROW, 2);
    for said in ["the other way round", "`PEER` says which is which", "tripod member list"] {
        assert!(step.contains(said), "{said} is not in\n{step}");
    }
    // What the page shows promises no order.
    for id in [4, 5] {
        let row = format!("   {id}     learner  ok     10.0.0.…:7800");
        assert!(step.lines().any(|line| line.starts_with(&row)), "{row} is not in\n{step}");
    }
}

#[test]
fn n47_what_two_lines_are_for_stands_below_them() {
    let block = block_before(README, "gives process 0's own");
    let begins = ["export JAX_COORDINATOR_BIND_ADDRESS=", "export GRPC_FAIL_FAST=", "python "];
    assert_eq!(block.len(), begins.len(), "{block:?}");
    for (line, begin) in block.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line} does not begin with {begin}");
    }
}

#[test]
fn n48_the_first_program_prints_that_all_processes_are_there() {
    let said = "Each prints `process 0 of 3`";
    let block = block_before(README, said);
    let program = block.last().expect("a program");
    let (before, printed) = program.split_once("print(").expect("it prints something");
    assert!(before.contains("jax.distributed.initialize("), "{program}");
    assert!(before.contains("num_processes=3, process_id=0"), "{program}");
    assert!(
        printed.starts_with(r#""process", jax.process_index(), "of", jax.process_count())"#),
        "it does not print {said}: {program}"
    );
}
