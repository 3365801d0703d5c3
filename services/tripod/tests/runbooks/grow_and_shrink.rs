use tripod_wait::until_blocking;

use crate::page::blocks;
use crate::program::Program;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/grow-and-shrink.md");

#[test]
fn three_become_five_and_three_again_while_a_program_writes() {
    let mut site = Site::of_three();
    let mut everywhere = site.endpoints();
    everywhere.extend([4, 5].map(|host| site.address(host, 7700)));
    let program = Program::start(&everywhere);
    program.goes_on();
    // One of those that are removed leads, so that it has to hand over.
    until_blocking("a leader that will be removed", || {
        if site.wait_for_leader() == 3 {
            site.attempt("tripod leader transfer --to 1");
            return None;
        }
        Some(())
    });
    for block in &blocks(PAGE) {
        if block.lines.iter().any(|line| line.starts_with("tripod member promote")) {
            site.wait_for_all(5);
        }
        site.run(block);
        program.goes_on();
    }
    for removed in [1, 2] {
        let told = site.wait_for_end(removed);
        assert!(told.contains("T4201 node-removed"), "{told}");
    }
    program.end(&site);
    // Each of the three is a voter: two of them are enough, whichever is missing.
    site.kill(4);
    site.look("tripod kv put whole yes");
}
