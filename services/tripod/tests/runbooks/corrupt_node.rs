use std::fs;
use std::path::PathBuf;

use crate::page::blocks;
use crate::program::Program;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/corrupt-node.md");

/// The largest file of the log that a killed node left, which holds its newest entries.
fn newest_part_of_the_log(site: &Site) -> PathBuf {
    let mut files = Vec::new();
    let mut directories = vec![site.data(2)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.parent().is_some_and(|parent| parent.ends_with("journal")) {
                files.push(path);
            }
        }
    }
    let used = |path: &PathBuf| fs::read(path).expect("readable").iter().filter(|byte| **byte != 0).count();
    files.into_iter().max_by_key(used).expect("a journal")
}

#[test]
fn n3_a_node_with_damaged_data_is_made_whole_while_a_program_writes() {
    let mut site = Site::of_three();
    let program = Program::start(&site.endpoints());
    // Far more than one group of the journal: what was not synced before the kill may look like anything.
    program.counts(300);
    site.kill(2);
    // Amid what it wrote, not at its end, where a torn write is no damage; 64 bytes, of which one at least is not between
    // two frames, where bytes mean nothing.
    let file = newest_part_of_the_log(&site);
    let mut bytes = fs::read(&file).expect("readable");
    let used = bytes.iter().rposition(|byte| *byte != 0).expect("it was written");
    bytes[used / 4..][..64].iter_mut().for_each(|byte| *byte ^= 0x10);
    fs::write(&file, bytes).expect("writable");

    let mut program = Some(program);
    for block in &blocks(PAGE) {
        if block.lines.iter().any(|line| line.contains("--digest")) {
            site.wait_for_all(3);
            // While it writes, nodes may be asked at different indexes.
            program.take().expect("one block looks at hashes").end(&site);
        }
        let printed = site.run(block);
        if block.lines == ["tripod status --digest"] {
            let digests = printed.lines().skip(1).take(4).filter_map(|row| row.split_whitespace().last());
            let digests: Vec<_> = digests.collect();
            assert!(digests[0] == "DIGEST" && digests[2..].iter().all(|one| *one == digests[1]), "{printed}");
        }
        if let Some(program) = &program {
            program.goes_on();
        }
    }
    assert!(program.is_none(), "the page has hashes compared");
    site.kill(1);
    site.look("tripod kv put whole yes");
}
