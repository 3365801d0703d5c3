use tripod_state::mindspore::cluster::Scaling;

use crate::page::{Block, Outcome, blocks};
use crate::parameter_server::ParameterServer;
use crate::screen::assert_as_shown;

const PAGE: &str = include_str!("../../../../docs/runbooks/scale-mindspore-servers.md");

const THREE: [&str; 4] = ["worker-0", "server-0", "server-1", "server-2"];
const FOUR: [&str; 5] = ["worker-0", "server-0", "server-1", "server-2", "server-3"];

/// Types a block as it stands, and compares what it prints with what the page shows.
fn type_block(server: &ParameterServer, block: &Block) {
    let mut printed = String::new();
    for line in &block.lines {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("tripod"), "{line}");
        let output = server.run(&words.collect::<Vec<_>>());
        let told = String::from_utf8_lossy(&output.stderr);
        let expected = if block.outcome == Outcome::Failure { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "`{line}`: {told}");
        printed += &String::from_utf8_lossy(&output.stdout);
        printed += &told;
    }
    if !block.shows.is_empty() {
        assert_as_shown(&block.lines.join("; "), &block.shows, &printed);
    }
}

#[test]
fn three_servers_become_four_and_three_again_and_one_step_is_taken_back() {
    let server = ParameterServer::start();
    let mut count = 0;
    for block in &blocks(PAGE) {
        let types = |begin: &str| block.lines.iter().any(|line| line.starts_with(begin));
        // What the nodes do, as the page says, since the command before.
        if types("tripod mindspore events") {
            server.event("worker-0", 7);
        }
        let is_of_a_dead_server = block.shows.iter().any(|line| line.contains("its place waits"));
        if is_of_a_dead_server {
            server.falls_silent("server-1");
        }
        type_block(&server, block);
        count += 1;
        if types("tripod mindspore abort") && block.outcome == Outcome::Success {
            server.scale(Scaling::Out, &FOUR, &[]);
        } else if types("tripod mindspore scale --job fl --to-servers") {
            server.scale(Scaling::In, &THREE, &["server-3"]);
        } else if is_of_a_dead_server {
            server.register("server-1");
            server.all_answer();
        } else if block.shows.first().is_some_and(|line| line.starts_with("parameter server: scale-out")) {
            server.scale(Scaling::Out, &FOUR, &[]);
        }
    }
    assert!(count >= 12, "only {count} blocks were typed");
}
