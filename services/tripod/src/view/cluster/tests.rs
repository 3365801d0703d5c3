//! Answers of nodes, put together. The numbers of tests that begin with n are those of a walk-through that a new
//! operator made.

use serde_json::json;
use tripod_client::{Attempt, Phase, wire};

use super::*;

fn member(id: u64) -> wire::Member {
    wire::Member {
        node_id: id,
        client_address: format!("127.0.0.1:770{}", id - 1),
        voter: true,
        ..Default::default()
    }
}

fn alive(id: u64, term: u64, leader: u64) -> NodeAnswer {
    let status = wire::StatusResponse {
        cluster_id: "dev-1".into(),
        node_id: id,
        role: if id == leader { "leader" } else { "follower" }.into(),
        term,
        leader_id: leader,
        applied_index: 40 + id,
        version: "0.1.0".into(),
        members: (1..=3).map(member).collect(),
        ..Default::default()
    };
    NodeAnswer { endpoint: format!("127.0.0.1:770{}", id - 1), status: Ok(status) }
}

fn dead(id: u64) -> NodeAnswer {
    let endpoint = format!("127.0.0.1:770{}", id - 1);
    let attempt =
        Attempt { endpoint: endpoint.clone(), phase: Phase::Connect, cause: "Connection refused".into() };
    NodeAnswer { endpoint, status: Err(attempt) }
}

#[test]
fn a_dead_node_keeps_its_id_and_says_why() {
    let view = ClusterView::of(&[dead(1), alive(2, 7, 3), alive(3, 7, 3)], false);
    let json = serde_json::to_value(&view).expect("JSON");
    assert_eq!(json["cluster_id"], "dev-1");
    assert_eq!(json["leader"], 3);
    assert_eq!(json["term"], 7);
    assert_eq!(json["nodes"][0]["id"], 1);
    assert_eq!(json["nodes"][0]["state"], "unreachable");
    assert_eq!(json["nodes"][0]["why"], "127.0.0.1:7700: connect: Connection refused");
    assert_eq!(json["nodes"][0]["applied_index"], json!(null));
    assert_eq!(json["nodes"][2]["role"], "leader");
    assert_eq!(json["nodes"][2]["address"], "127.0.0.1:7702");
    assert_eq!(json["nodes"][2]["applied_index"], 43);
}

#[test]
fn s52_nodes_that_serve_other_machines_in_plain_text_are_named() {
    let insecure = |mut answer: NodeAnswer| {
        answer.status.as_mut().expect("told").insecure = true;
        answer
    };
    let line = "\ninsecure: nodes 1, 3 may be used in plain text from other machines (--insecure)";
    let view = ClusterView::of(&[insecure(alive(1, 7, 3)), alive(2, 7, 3), insecure(alive(3, 7, 3))], false);
    assert!(view.render().contains(line), "{}", view.render());
    assert!(view.is_healthy(), "it was asked for");
    assert!(!ClusterView::of(&[alive(1, 7, 1)], false).render().contains("insecure"));
}

#[test]
fn the_highest_term_is_believed_about_the_leader() {
    let view = ClusterView::of(&[alive(1, 4, 1), alive(2, 5, 2), alive(3, 5, 2)], false);
    assert_eq!((view.leader, view.term), (Some(2), 5));
}

#[test]
fn a_port_that_cannot_be_opened_is_one_line_of_what_is_wrong() {
    let mut troubled = alive(1, 7, 3);
    let port = wire::ClosedJobPort {
        job_id: 5,
        job: "train".into(),
        address: "127.0.0.1:8000".into(),
        reason: "taken".into(),
    };
    troubled.status.as_mut().expect("told").closed_job_ports.push(port);
    let view = ClusterView::of(&[troubled, alive(2, 7, 3)], false);
    let text = view.render();
    let last = text.lines().last().expect("lines");
    assert!(last.starts_with("node 1 cannot open 127.0.0.1:8000 for job `train`: taken"), "{text}");
    let json = serde_json::to_value(&view).expect("JSON");
    let expected = json!([{ "job": "train", "address": "127.0.0.1:8000", "reason": "taken" }]);
    assert_eq!(json["nodes"][0]["closed_job_ports"], expected);
    assert_eq!(json["nodes"][1].get("closed_job_ports"), None);
}

#[test]
fn a_divergent_state_is_told_below_the_table() {
    let mut leader = alive(3, 7, 3);
    leader.status.as_mut().expect("told").comparisons = Some(wire::Comparisons {
        last_index: 41,
        alarm: "T3112 state-diverged: the state of node 2 differs".into(),
        ..Default::default()
    });
    let view = ClusterView::of(&[alive(2, 7, 3), leader], false);
    let text = view.render();
    assert!(text.ends_with("\n\nT3112 state-diverged: the state of node 2 differs"), "{text}");
    let json = serde_json::to_value(&view).expect("JSON");
    assert_eq!(json["nodes"][1]["compared_index"], 41);
    assert_eq!(json["nodes"][0].get("divergence"), None);
}

#[test]
fn without_a_leader_the_field_is_null_and_nodes_say_so() {
    let view = ClusterView::of(&[alive(1, 9, 0), dead(2), dead(3)], false);
    let json = serde_json::to_value(&view).expect("JSON");
    assert_eq!(json["leader"], json!(null));
    assert_eq!(json["nodes"][0]["state"], "no-leader");
    assert!(view.anybody_answered());
}

#[test]
fn n10_that_nobody_answers_is_a_trouble_with_every_reason() {
    let view = ClusterView::of(&[dead(1), dead(2)], false);
    assert!(!view.anybody_answered());
    let json = serde_json::to_value(&view).expect("JSON");
    let [trouble] = &json["troubles"].as_array().expect("a list")[..] else { panic!("{json}") };
    assert_eq!((&trouble["kind"], &trouble["node"]), (&json!("unreachable"), &json!(null)));
    assert_eq!(trouble["what"].as_str().expect("text").matches("Connection refused").count(), 2);
    assert!(view.render().contains("\n\nno node answers: 127.0.0.1:7700: connect: "), "{}", view.render());
}

/// The first node of a first start, while the two others are not there.
#[test]
fn n12_a_first_start_is_shown_as_forming_with_whom_it_waits_for() {
    let first = NodeAnswer {
        endpoint: "127.0.0.1:7700".into(),
        status: Ok(wire::StatusResponse {
            cluster_id: "c-1".into(),
            node_id: 1,
            role: "learner".into(),
            version: "0.1.0".into(),
            waiting_calls: 2,
            forming: Some(wire::Forming { waits_for: vec![2, 3] }),
            ..Default::default()
        }),
    };
    let view = ClusterView::of(&[first, dead(2)], false);
    assert_eq!(
        view.render(),
        "\
cluster c-1  forming
NODE  ROLE     STATE        VERSION  APPLIED  LAG  DISK p99  SEEN   ADDRESS
1     none     forming      0.1.0    0        0    -         now    127.0.0.1:7700
-     unknown  unreachable  -        -        -    -         never  127.0.0.1:7701

the cluster is not formed yet: node 1 waits for nodes 2, 3
next: start those, each with the same --initial: a majority forms the cluster. Nodes that run must reach each other at \
the peer addresses of --initial"
    );
    let json = serde_json::to_value(&view).expect("JSON");
    assert_eq!(json["forming"], json!([{ "node": 1, "waits_for": [2, 3] }]));
    assert_eq!((&json["quorum"]["needed"], &json["leader"]), (&json!(0), &json!(null)));
}

/// An answer of a node whose state has this hash at this index.
fn hashed(id: u64, index: u64, digest: u64) -> NodeAnswer {
    measured(alive(id, 7, 3), |status, _| {
        (status.applied_index, status.committed_index, status.digest) = (index, index, digest);
    })
}

#[test]
fn n3_hashes_are_in_the_table_and_below_it_stands_what_they_amount_to() {
    let shown = |answers: &[NodeAnswer]| ClusterView::of(answers, true).render();
    let equal = shown(&[hashed(1, 43, 171), hashed(2, 43, 171), hashed(3, 43, 171)]);
    let digests: Vec<_> =
        equal.lines().skip(1).take(4).filter_map(|row| row.split_whitespace().last()).collect();
    assert_eq!(digests, ["DIGEST", "00000000000000ab", "00000000000000ab", "00000000000000ab"], "{equal}");
    assert!(equal.ends_with("\ndigests: all equal at index 43"), "{equal}");
    let moving = shown(&[hashed(1, 42, 170), hashed(2, 43, 171), hashed(3, 43, 171)]);
    assert!(moving.contains("\ndigests: of different indexes, which cannot be compared"), "{moving}");
    let different = shown(&[hashed(1, 43, 170), hashed(2, 43, 171), hashed(3, 43, 171)]);
    assert!(
        different.ends_with(
            "\n\nthe states of nodes 1, 2, 3 are not the same at index 43\nnext: docs/runbooks/corrupt-node.md"
        ),
        "{different}"
    );
    let plain = ClusterView::of(&[hashed(1, 43, 171), hashed(3, 43, 171)], false).render();
    assert!(!plain.contains("DIGEST") && !plain.contains("digests"), "{plain}");
}

#[test]
fn n14_indexes_of_a_restored_cluster_are_counted_from_where_it_begins() {
    let begin = 2 * tripod_raft::backup::INDEX_STEP;
    let leader = |matched| {
        measured(hashed(3, begin + 43, 1), move |status, _| status.members[0].matched_index = matched)
    };
    let new = hashed(2, 0, 1);
    let view = |matched| ClusterView::of(&[dead(1), new.clone(), leader(matched)], false);
    let lags = |matched| {
        let json = serde_json::to_value(view(matched)).expect("JSON");
        [0, 1].map(|place| json["nodes"][place]["lag_entries"].clone())
    };
    assert_eq!(
        lags(0),
        [json!(null), json!(43)],
        "the leader has not heard how far it is; the other one has nothing"
    );
    assert_eq!(lags(begin + 40), [json!(3), json!(43)]);
    let text = view(begin + 40).render();
    let leader = text.lines().nth(4).expect("a row").split_whitespace().nth(4);
    assert_eq!(leader, Some("43"), "{text}");
    assert!(text.contains("\nindexes are counted from 2,000,000,000,000, where "), "{text}");
}

#[test]
fn n20_the_table_tells_of_the_backups_of_each_node() {
    let with_backups = measured(alive(3, 7, 3), |status, _| {
        status.backups = Some(wire::Backups {
            directory: "/mnt/backups".into(),
            every_ms: 3_600_000,
            keep: 48,
            kept: 7,
            newest_file: "f.snap".into(),
            newest_index: 1_041,
            saved_ms: now_ms(),
            verified_ms: now_ms(),
            failure: String::new(),
        });
    });
    let text = ClusterView::of(&[alive(1, 7, 3), alive(2, 7, 3), with_backups], false).render();
    let line = text.lines().last().expect("lines");
    assert!(line.starts_with("backups of node 3: the newest of index 1,041, "), "{text}");
    assert!(line.ends_with(" s old, verified; 7 of 48 kept in /mnt/backups"), "{text}");
}

#[test]
fn addresses_of_clients_are_told_in_order_of_node() {
    let mut answer = alive(1, 1, 1);
    answer.status.as_mut().expect("told").members.reverse();
    assert_eq!(client_addresses(&[dead(3), answer]), ["127.0.0.1:7700", "127.0.0.1:7701", "127.0.0.1:7702"]);
    assert!(client_addresses(&[dead(3)]).is_empty());
}

#[test]
fn members_that_were_not_asked_are_found_once() {
    let asked = ["127.0.0.1:7700", "127.0.0.1:7701", "127.0.0.1:7702"].map(str::to_owned);
    assert_eq!(not_asked(&[alive(1, 1, 1)], &asked[..1]), ["127.0.0.1:7701", "127.0.0.1:7702"]);
    assert!(not_asked(&[alive(1, 1, 1), alive(2, 1, 1)], &asked).is_empty());
}

/// An answer with these figures added.
fn measured(
    answer: NodeAnswer,
    change: impl FnOnce(&mut wire::StatusResponse, &mut wire::Measured),
) -> NodeAnswer {
    let mut status = answer.status.expect("alive");
    let mut measured = status.measured.unwrap_or_default();
    change(&mut status, &mut measured);
    NodeAnswer { status: Ok(wire::StatusResponse { measured: Some(measured), ..status }), ..answer }
}

fn with_p99(id: u64, micros: u64) -> NodeAnswer {
    measured(alive(id, 7, 3), |status, measured| {
        status.committed_index = 43;
        measured.flush_p99_us = Some(micros);
    })
}

/// Kind and node of everything that is wrong.
fn troubles(answers: &[NodeAnswer]) -> Vec<(&'static str, Option<u64>)> {
    let json = serde_json::to_value(ClusterView::of(answers, false)).expect("JSON");
    let kinds = [
        "no-leader",
        "forming",
        "unreachable",
        "disk-stalled",
        "disk-full",
        "disk-slow",
        "behind",
        "growth-refused",
        "diverged",
        "job-port-closed",
    ];
    let known = |kind: &str| *kinds.iter().find(|known| **known == kind).expect("a kind that is listed here");
    let troubles = json["troubles"].as_array().expect("a list");
    troubles
        .iter()
        .map(|trouble| (known(trouble["kind"].as_str().expect("a word")), trouble["node"].as_u64()))
        .collect()
}

#[test]
fn a_healthy_cluster_has_no_trouble_and_its_rows_are_told_now() {
    let view = ClusterView::of(&[with_p99(1, 1900), with_p99(2, 2100), with_p99(3, 2000)], false);
    assert_eq!(
        view.render(),
        "\
cluster dev-1  leader node 3  term 7  3 voters  quorum 2, 3 answer  healthy
NODE  ROLE      STATE  VERSION  APPLIED  LAG  DISK p99  SEEN  ADDRESS
1     follower  ok     0.1.0    41       2    1.9 ms    now   127.0.0.1:7700
2     follower  ok     0.1.0    42       1    2.1 ms    now   127.0.0.1:7701
3     leader    ok     0.1.0    43       0    2.0 ms    now   127.0.0.1:7702
tolerance 1 node   change of members: safe
jobs 0  keys 0  calls that wait on node 3: 0"
    );
}

#[test]
fn while_members_change_no_other_change_is_safe() {
    let mut leader = alive(3, 7, 3);
    leader.status.as_mut().expect("told").change_under_way = true;
    let view = ClusterView::of(&[alive(1, 7, 3), alive(2, 7, 3), leader], false);
    let line = "tolerance 1 node   change of members: NOT safe: a change is under way";
    assert!(view.render().lines().any(|shown| shown == line), "{}", view.render());
    assert_eq!(view.safety_line(Some(1)), line);
}

#[test]
fn a_dead_node_is_told_of_by_the_leader_with_age_and_the_next_command() {
    let leader = measured(alive(3, 7, 3), |status, _| {
        status.committed_index = 9_043;
        status.members[0].matched_index = 43;
        status.members[0].heard_ms_ago = Some(4200);
    });
    let view = ClusterView::of(&[dead(1), alive(2, 7, 3), leader], false);
    let text = view.render();
    let row = text.lines().nth(2).expect("a row");
    assert_eq!(
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>(),
        ["1", "unknown", "unreachable", "-", "-", "9,000", "-", "4.2 s ago, by node 3", "127.0.0.1:7700"]
    );
    assert!(
        text.starts_with("cluster dev-1  leader node 3  term 7  3 voters  quorum 2, 2 answer  1 trouble\n")
    );
    assert!(
        text.ends_with(
            "\n\nnode 1 does not answer (127.0.0.1:7700: connect: Connection refused); node 3 heard it 4.2 s ago\n\
             next: start it again; if it is gone for good: tripod member replace 1 HOST:PORT"
        ),
        "{text}"
    );
}

#[test]
fn a_learner_that_is_gone_is_removed_and_not_replaced() {
    let leader = measured(alive(3, 7, 3), |status, _| status.members[0].voter = false);
    let text = ClusterView::of(&[dead(1), alive(2, 7, 3), leader], false).render();
    assert!(text.contains("2 voters, 1 learner  quorum 2, 2 answer"), "{text}");
    assert!(text.ends_with("gone for good: tripod member remove 1"), "{text}");
}

#[test]
fn n15_without_a_leader_it_is_told_whether_enough_voters_are_there_and_which_runbook_helps() {
    let lost = ClusterView::of(&[alive(1, 9, 0), dead(2), dead(3)], false).render();
    assert!(
        lost.contains(
            "\n\nno leader: 1 of 3 voters answer, 2 must, and nodes 2, 3 do not; calls are held\nnext: start nodes 2, 3, \
             of which 1 is enough; if they are gone for good: docs/runbooks/lost-quorum.md\n"
        ),
        "{lost}"
    );
    // Members can be changed by a quorum only.
    assert!(!lost.contains("member replace"), "{lost}");
    assert_eq!(lost.matches("gone for good: docs/runbooks/lost-quorum.md").count(), 3, "{lost}");
    let electing = ClusterView::of(&[alive(1, 9, 0), alive(2, 9, 0), dead(3)], false).render();
    assert!(electing.contains("an election is under way\nnext: tripod status --watch"), "{electing}");
    assert_eq!(
        troubles(&[alive(1, 9, 0), dead(2), dead(3)]),
        [("no-leader", None), ("unreachable", Some(2)), ("unreachable", Some(3))]
    );
}

#[test]
fn a_leader_that_only_its_followers_name_is_believed_if_they_are_enough() {
    let leader = |answers: &[NodeAnswer]| ClusterView::of(answers, false).leader;
    assert_eq!(
        leader(&[alive(1, 7, 3), alive(2, 7, 3), dead(3)]),
        Some(3),
        "it may be cut off from here only"
    );
    assert_eq!(leader(&[alive(1, 7, 3), dead(2), dead(3)]), None, "one follower elects nobody else");
    assert_eq!(leader(&[dead(1), dead(2), alive(3, 7, 3)]), Some(3), "it says so itself");
    let text = ClusterView::of(&[alive(1, 7, 3), dead(2), dead(3)], false).render();
    assert!(text.contains("follower  no-leader"), "{text}");
}

#[test]
fn a_disk_is_slow_by_comparison_and_only_if_it_is_slow_at_all() {
    assert_eq!(
        troubles(&[with_p99(1, 38_000), with_p99(2, 1900), with_p99(3, 1800)]),
        [("disk-slow", Some(1))]
    );
    assert!(troubles(&[with_p99(1, 9_000), with_p99(2, 100), with_p99(3, 100)]).is_empty(), "fast enough");
    assert!(
        troubles(&[with_p99(1, 38_000), with_p99(2, 30_000), with_p99(3, 40_000)]).is_empty(),
        "all alike"
    );
    assert!(troubles(&[with_p99(3, 38_000)]).is_empty(), "nothing to compare with");
    let text = ClusterView::of(&[with_p99(1, 38_000), with_p99(2, 1900), with_p99(3, 1900)], false).render();
    assert!(text.contains("follower  disk-slow"), "{text}");
    assert!(
        text.contains("node 1 has a slow disk: p99 38 ms, 20 times that of the others\nnext: look"),
        "{text}"
    );
}

#[test]
fn a_leader_whose_disk_stalls_should_hand_over() {
    let stalled = measured(alive(3, 7, 3), |_, measured| measured.flush_under_way_ms = Some(4200));
    let text = ClusterView::of(&[alive(1, 7, 3), stalled], false).render();
    assert!(text.contains("node 3 waits for its disk since 4.2 s\nnext: tripod leader transfer;"), "{text}");
    let busy = measured(alive(3, 7, 3), |_, measured| measured.flush_under_way_ms = Some(40));
    assert!(troubles(&[alive(1, 7, 3), busy]).is_empty());
}

#[test]
fn full_disks_and_lag_are_troubles() {
    let full = measured(alive(1, 7, 3), |status, _| {
        status.disk =
            Some(wire::Disk { directory: "/d".into(), free_bytes: 3 << 20, reserve_bytes: 1, full: true });
    });
    let ahead = measured(alive(3, 7, 3), |status, _| status.committed_index = 20_000);
    let found = troubles(&[full, alive(2, 7, 3), ahead]);
    assert_eq!(found, [("disk-full", Some(1)), ("behind", Some(2)), ("behind", Some(3))]);
}

#[test]
fn a_node_asked_at_two_addresses_is_one_row() {
    let other = NodeAnswer { endpoint: "localhost:7700".into(), ..alive(1, 7, 3) };
    let json =
        serde_json::to_value(ClusterView::of(&[alive(1, 7, 3), other, alive(3, 7, 3)], false)).expect("JSON");
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_member_that_nobody_could_ask_is_a_row() {
    let leader = measured(alive(3, 7, 3), |status, _| {
        status.members[0].client_address.clear();
        status.members[0].peer_address = "10.0.0.1:7800".into();
    });
    let json = serde_json::to_value(ClusterView::of(&[alive(2, 7, 3), leader], false)).expect("JSON");
    assert_eq!((&json["nodes"][0]["id"], &json["nodes"][0]["address"]), (&json!(1), &json!("10.0.0.1:7800")));
    assert_eq!(json["nodes"][0]["state"], "unreachable");
}

/// Programs read this: fields may be added, never renamed. Written by hand, so that a change is seen.
#[test]
fn the_json_is_the_one_that_was_promised() {
    let leader = measured(with_p99(3, 2000), |status, measured| {
        measured.flush_p50_us = Some(900);
        status.committed_index = 43;
        status.members[0].matched_index = 40;
        status.members[0].heard_ms_ago = Some(1500);
        status.disk =
            Some(wire::Disk { directory: "/d".into(), free_bytes: 3, reserve_bytes: 1, full: false });
        status.given_up_no_quorum = 1;
    });
    let view = ClusterView::of(&[dead(1), leader], false);
    let json = serde_json::to_string_pretty(&view).expect("JSON");
    assert_eq!(json, include_str!("golden.json").trim_end());
}
