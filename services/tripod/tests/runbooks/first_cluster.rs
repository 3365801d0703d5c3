use crate::page::blocks;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/first-cluster.md");

#[test]
fn a_newcomer_gets_from_nothing_to_a_job_and_may_kill_any_node() {
    let mut site = Site::new();
    let blocks = blocks(PAGE);
    let mut printed = Vec::new();
    for block in &blocks {
        printed.push(site.run(block));
        if block.lines == ["tripod status"] {
            // The page has it typed until there is a leader, and it must have ended then, and no sooner.
            assert!(printed.last().is_some_and(|shown| shown.contains("  leader node ")), "{printed:?}");
        }
    }
    let status = site.status();
    assert_eq!(status["nodes"].as_array().map(Vec::len), Some(3), "{status}");
    let read = printed.iter().any(|text| text.contains("hello"));
    assert!(read, "{printed:?}");
    // Of the numbers of the walk-through of a new operator, n13: a created job tells what the page says.
    let job = printed.last().expect("the last block makes a job");
    for line in ["job train42\nport 8000\ntarget ipv4:", "\nexport JAX_COORDINATOR_ADDRESS=ipv4:"] {
        assert!(job.contains(line), "{job}");
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
