use crate::page::blocks;
use crate::program::Program;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/replace-dead-node.md");

#[test]
fn a_dead_node_is_replaced_while_a_program_writes_and_is_refused_when_it_comes_back() {
    let mut site = Site::of_three();
    let program = Program::start(&site.endpoints());
    program.goes_on();
    site.kill(3);
    let mut printed = Vec::new();
    for block in &blocks(PAGE) {
        printed.push(site.run(block));
    }
    assert!(printed[1].contains("done"), "{printed:?}");
    program.goes_on();
    program.end(&site);
    let status = site.status();
    let ids: Vec<u64> =
        status["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["id"].as_u64()).collect();
    assert_eq!(ids, [1, 2, 4], "{status}");

    // It is needed now.
    site.kill(2);
    assert!(!site.look("tripod kv put needed yes").contains("error"));
    let first = blocks(include_str!("../../../../docs/runbooks/first-cluster.md"));
    let serve = first.iter().find(|block| block.lines[0].starts_with("tripod server")).expect("on the page");
    site.run_on(3, serve);
    let told = site.wait_for_end(3);
    assert!(told.contains("T4201 node-removed"), "{told}");
}
