use std::collections::BTreeMap;

use tripod_processes::fault::storage::{Disk, FileSystem, Skip};
use tripod_wait::until_blocking;

use crate::page::blocks;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/disk-full.md");
const DISK_BYTES: u64 = 96 << 20;
/// Less than what a node keeps for what must go on.
const LEFT_BYTES: u64 = 8 << 20;

#[test]
fn full_disks_refuse_what_grows_until_there_is_room() {
    let mut disks = BTreeMap::new();
    for host in 1..=3 {
        match Disk::mount(FileSystem::Tmpfs, DISK_BYTES) {
            Ok(disk) => disks.insert(host, disk),
            Err(error) => {
                println!("{}", Skip::of(&error).unwrap_or_else(|| panic!("{error:#}")));
                return;
            }
        };
    }
    let mut site = Site::of_three_on(disks.iter().map(|(host, disk)| (*host, disk.data())).collect());
    for number in 0..30 {
        site.look(&format!("head -c 20000 /dev/zero | tripod kv put checkpoints/{number}"));
    }
    for disk in disks.values() {
        disk.fill(LEFT_BYTES).expect("filled");
    }
    until_blocking("a refusal", || {
        let (code, told) = site.attempt("tripod kv put more value --timeout 2");
        // Another failure is one of a leader that is being elected.
        (code != Some(0) && told.contains("T3201 disk-full")).then_some(())
    });

    for block in &blocks(PAGE) {
        if block.lines.iter().any(|line| line.contains("room-again")) {
            // Everything else went on meanwhile; somebody makes room now.
            assert!(site.attempt("tripod kv put more value --timeout 2").0 != Some(0));
            until_blocking("a transfer", || {
                (site.attempt("tripod leader transfer").0 == Some(0)).then_some(())
            });
            disks.values().for_each(|disk| disk.free().expect("freed"));
        }
        site.run(block);
    }
    assert!(!site.look("tripod kv list checkpoints --keys-only").contains("checkpoints/"));
}
