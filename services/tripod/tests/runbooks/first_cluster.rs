use crate::page::blocks;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/first-cluster.md");

#[test]
fn a_newcomer_gets_from_nothing_to_a_job_and_may_kill_any_node() {
    let mut site = Site::new();
    let blocks = blocks(PAGE);
    for block in &blocks {
        site.run(block);
    }
    // Of the numbers of the walk-through of a new operator, n13: a created job tells its port and what to export.
    let created = blocks.iter().find(|block| block.lines[0].starts_with("tripod job create"));
    let shown = &created.expect("the last block makes a job").shows;
    for line in ["port 8000", "export JAX_COORDINATOR_ADDRESS=ipv4:…"] {
        assert!(shown.iter().any(|shown| shown == line), "{shown:?}");
    }

    let leader = site.wait_for_leader();
    site.kill(leader);
    assert_eq!(site.look("tripod kv get greeting").trim(), "hello");
    site.look("tripod kv put greeting again");
    let [serve] =
        blocks.iter().filter(|block| block.lines[0].starts_with("tripod server")).collect::<Vec<_>>()[..]
    else {
        panic!("one line starts servers")
    };
    site.run_on(leader, serve);
    site.wait_for_all(3);
}
