use tripod_wait::until_blocking;

use crate::page::blocks;
use crate::program::Program;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/replace-dead-node.md");

/// Below those that the kernel gives to connections that go out.
const JOB_PORTS: &str = "21000-21099";

/// Of the numbers of the walk-through of a new operator, this is also n19: the new node serves jobs where the others do.
#[test]
fn a_dead_node_is_replaced_while_a_program_writes_and_is_refused_when_it_comes_back() {
    let mut site = Site::of_three_with_job_ports(JOB_PORTS);
    let program = Program::start(&site.endpoints());
    program.goes_on();
    site.kill(3);
    for block in &blocks(PAGE) {
        site.run(block);
    }
    program.goes_on();
    program.end(&site);
    site.look("tripod job create moved --tasks 1");
    let port_of_new = site.address(4, 21_000);
    // It announces its ports by itself, a moment after it has joined.
    until_blocking("a job port of the new node where those of the others are", || {
        site.look("tripod job show moved").contains(&port_of_new).then_some(())
    });

    // It is needed now.
    site.kill(2);
    assert!(!site.look("tripod kv put needed yes").contains("error"));
    let first = blocks(include_str!("../../../../docs/runbooks/first-cluster.md"));
    let serve = first.iter().find(|block| block.lines[0].starts_with("tripod server")).expect("on the page");
    site.run_on(3, serve);
    let told = site.wait_for_end(3);
    assert!(told.contains("T4201 node-removed"), "{told}");
}
