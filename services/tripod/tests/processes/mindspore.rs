//! `tripod mindspore` as it is typed, beside a node in memory whose MindSpore nodes are played.

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tripod_state::mindspore::cluster::Scaling;

use crate::parameter_server::{JOB, ParameterServer};
use crate::schemas::check;
use crate::support::stderr;

fn printed(server: &ParameterServer, words: &[&str]) -> Value {
    let output = server.run(&[words, &["--job", JOB, "--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {}", stderr(&output)))
}

fn told(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    stderr(output)
}

#[test]
fn what_is_printed_as_json_is_what_the_page_says() {
    let server = ParameterServer::without_nodes();
    for name in ["state", "nodes", "events"] {
        check(&format!("mindspore {name}"), &printed(&server, &["mindspore", name]));
    }
    let server = ParameterServer::start();
    server.event("worker-0", 7);
    server.falls_silent("server-1");
    for name in ["state", "nodes", "events"] {
        check(&format!("mindspore {name}"), &printed(&server, &["mindspore", name]));
    }
    let nodes = printed(&server, &["mindspore", "nodes"]);
    let dead = &nodes["cluster"]["nodes"][2];
    assert_eq!(
        (&dead["id"], &dead["alive"], &dead["events"]),
        (&json!("server-1"), &json!(false), &json!(1))
    );

    server.register("server-1");
    server.all_answer();
    let planned = printed(&server, &["mindspore", "scale", "--to-servers", "2", "--plan"]);
    check("mindspore scale", &planned);
    let generation = planned["generation"].as_u64().expect("a number");
    assert_eq!((&planned["begun"], &planned["servers_after"]), (&Value::Null, &json!(2)));
    let begun = printed(&server, &["mindspore", "scale", "--servers", "+1"]);
    check("mindspore scale", &begun);
    assert_eq!((&begun["begun"], &begun["free_ranks"]), (&json!(generation + 1), &json!([3])));
    check("mindspore state", &printed(&server, &["mindspore", "state"]));
    check("mindspore abort", &printed(&server, &["mindspore", "abort"]));
    server.scale(Scaling::Out, &["worker-0", "server-0", "server-1", "server-2"], &[]);
    check("mindspore switch", &printed(&server, &["mindspore", "switch", "enable-fls"]));
    assert_eq!(printed(&server, &["mindspore", "state"])["cluster"]["state"], "enable-fls");
}

#[test]
fn what_is_refused_has_its_code_and_the_next_command_and_changes_nothing() {
    let server = ParameterServer::start();
    let before = printed(&server, &["mindspore", "state"]);
    for (words, exit, code, next) in [
        (&["scale", "--servers", "+1", "--generation", "1"][..], 1, "T6503 plan-outdated", "--plan"),
        (&["abort", "--generation", "1"], 1, "T6503 plan-outdated", "mindspore state --job fl"),
        (
            &["switch", "enable-fls", "--generation", "1"],
            1,
            "T6503 plan-outdated",
            "mindspore state --job fl",
        ),
        (&["scale", "--leave", "server-0", "--yes"], 1, "T6502 scale-refused", "mindspore nodes --job fl"),
        (&["scale", "--leave", "nobody", "--plan"], 1, "T6502 scale-refused", "mindspore nodes --job fl"),
        (&["scale", "--to-servers", "3"], 1, "T6502 scale-refused", "nothing would change"),
        (&["scale", "--leave", "server-2"], 2, "T1104 not-confirmed", "--yes"),
        (&["scale", "--servers", "2"], 2, "T1101 usage", "--to-servers 2"),
        (&["scale"], 2, "T1101 usage", "--servers"),
        (&["scale", "--servers", "+1", "--to-servers", "3"], 2, "T1101 usage", "--to-servers"),
        (&["abort"], 1, "T6504 nothing-to-abort", "mindspore state --job fl"),
        (&["switch", "enable-fls", "--body", "-"], 2, "T1102 flags-conflict", "--body"),
        (&["switch", "new-instance", "--body", "-"], 2, "T1103 value-illegal", "no JSON"),
    ] {
        let words = [&["mindspore"][..], words, &["--job", JOB]].concat();
        let said = told(&server.run(&words), exit);
        assert!(said.starts_with(&format!("error: {code}: ")) && said.contains(next), "{words:?}: {said}");
    }
    let nobody = server.run(&["mindspore", "state", "--job", "nobody"]);
    assert!(told(&nobody, 1).starts_with("error: T6101 job-unknown: "));
    assert_eq!(printed(&server, &["mindspore", "state"]), before);

    printed(&server, &["mindspore", "scale", "--servers", "+1"]);
    let busy = server.run(&["mindspore", "scale", "--servers", "+1", "--job", JOB]);
    let busy = told(&busy, 1);
    assert!(busy.starts_with("error: T6501 cluster-not-ready: ") && busy.contains("scale-out"), "{busy}");
}

#[test]
fn each_help_names_what_there_is_and_its_examples_can_be_typed() {
    let server = ParameterServer::start();
    let mut typed = 0;
    for (words, named) in [
        (&["mindspore"][..], &["state", "nodes", "scale", "abort", "events", "switch", "--job fl"][..]),
        (&["mindspore", "state"], &["--job", "--json"]),
        (&["mindspore", "nodes"], &["--job", "--json"]),
        (
            &["mindspore", "scale"],
            &["--servers", "--to-servers", "--leave", "--plan", "--generation", "--yes", "T6501"],
        ),
        (&["mindspore", "abort"], &["--generation"]),
        (&["mindspore", "events"], &["--follow", "--after", "Events are numbered"]),
        (&["mindspore", "switch"], &["new-instance", "enable-fls", "disable-fls", "--body", "--generation"]),
    ] {
        let help = server.run(&[words, &["--help"]].concat());
        assert_eq!(help.status.code(), Some(0), "{words:?}: {}", stderr(&help));
        let text = String::from_utf8(help.stdout).expect("UTF-8");
        for name in named {
            assert!(text.contains(name), "{words:?} says nothing of {name}:\n{text}");
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("  tripod ")) {
            let command = line.split("  ").next().unwrap_or_default();
            let words: Vec<&str> = command.split_whitespace().collect();
            // That one goes on until it is interrupted.
            if words.contains(&"--follow") {
                continue;
            }
            let output = server.run(&words);
            // Some are about other clusters than this one, and are refused.
            assert!(matches!(output.status.code(), Some(0 | 1)), "`{command}`: {}", stderr(&output));
            typed += 1;
        }
    }
    assert!(typed >= 6, "only {typed} examples were typed");
}

#[test]
fn who_follows_events_sees_those_that_come() {
    let server = ParameterServer::start();
    server.event("worker-0", 7);
    let mut follow = server.process(&["mindspore", "events", "--follow", "--json", "--job", JOB]);
    let mut child = follow.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next =
        || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("read")).expect("JSON") };
    let first = next();
    assert_eq!((&first["events"][0]["number"], &first["events"][0]["event"]), (&json!(1), &json!(7)));
    server.event("server-1", 8);
    let second = next();
    assert_eq!(
        (&second["events"][0]["number"], &second["events"][0]["from"]),
        (&json!(2), &json!("server-1"))
    );
    assert_eq!(second["missed"], 0);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
