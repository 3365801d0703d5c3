use tripod_raft::repair;

use crate::page::{Block, blocks};
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/unreadable-entry.md");
const FIRST_CLUSTER: &str = include_str!("../../../../docs/runbooks/first-cluster.md");
/// What the page has in place of what the doctor says.
const ON_PAGE: [&str; 2] = ["4711", "0123456789abcdef"];

/// Starts the servers, as they always are.
fn start(site: &mut Site) {
    let page = blocks(FIRST_CLUSTER);
    let servers = page.iter().filter(|block| block.lines[0].starts_with("tripod server "));
    for block in servers {
        site.run(block);
    }
}

/// The word behind a text.
fn behind<'a>(text: &'a str, before: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {text}")).1;
    rest.split([' ', ')']).next().expect("a word")
}

/// The command of F4: builds before this one appended whatever came to the peer port.
#[test]
fn f4_a_cluster_that_stopped_at_an_entry_that_nobody_can_read_comes_back_with_its_data() {
    let mut site = Site::of_three();
    site.look("tripod kv put before 1");
    site.wait_for_all(3);
    let leader = site.wait_for_leader();
    // The leader last: nobody is elected meanwhile, and all logs end alike.
    let followers: Vec<u8> = (1..=3).filter(|host| *host != leader).collect();
    for host in followers.into_iter().chain([leader]) {
        site.kill(host);
    }
    let planted =
        (1..=3).map(|host| repair::plant(&site.data(host), b"\xff\x00\xff\x00\xff").expect("planted"));
    let planted: Vec<u64> = planted.collect();
    assert!(planted.iter().all(|index| *index == planted[0]), "{planted:?}");
    start(&mut site);
    for log in site.wait_for_ends(2) {
        assert!(log.contains("T3114 apply-unknown") && log.contains("tripod doctor"), "{log}");
    }

    let mut found = ON_PAGE.map(str::to_owned);
    for block in blocks(PAGE) {
        let here = |line: &String| {
            ON_PAGE.iter().zip(&found).fold(line.clone(), |line, (from, to)| line.replace(from, to))
        };
        let (lines, shows) = (block.lines.iter().map(here).collect(), block.shows.iter().map(here).collect());
        let block = Block { lines, shows, ..block };
        if block.lines[0].starts_with("tripod status") {
            start(&mut site);
        }
        let printed = site.run(&block);
        if block.lines == ["tripod doctor /var/lib/tripod"] {
            found = ["at index ", "(checksum "].map(|before| behind(&printed, before).to_owned());
            assert_eq!(found[0], planted[0].to_string(), "{printed}");
        }
    }
    site.wait_for_all(3);
    assert_eq!(site.look("tripod kv get before").trim(), "1");
    site.look("tripod kv put behind 2");
}
