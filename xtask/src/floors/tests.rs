//! What is refused, on the tree as it is with a line planted in it, and on small ones.

use super::*;
use crate::cargo::root;

fn tree() -> BTreeMap<String, String> {
    read(&root().join(SOURCES)).unwrap()
}

/// The complaints about the tree with a line at the end of a file.
fn planted(file: &str, line: &str) -> Vec<String> {
    let mut files = tree();
    let text = files.get_mut(file).unwrap_or_else(|| panic!("there is no {file}"));
    text.push_str(line);
    complaints(&files, FLOORS)
}

#[test]
fn a_name_from_above_is_refused_wherever_it_is_planted() {
    assert_eq!(complaints(&tree(), FLOORS), Vec::<String>::new());
    for (file, line, arrow) in [
        ("base/failure.rs", "use crate::disk::Files;\n", "base -> disk"),
        ("disk/contract.rs", "use crate::apply::engine::Raft;\n", "disk -> apply"),
        ("disk/journal/engine.rs", "use super::super::super::log::LogStore;\n", "disk -> log"),
        ("log/tail.rs", "use crate::{base::codec, snapshot::Header};\n", "log -> snapshot"),
        ("snapshot/store.rs", "fn f(_: crate::peers::line::Line) {}\n", "snapshot -> peers"),
        ("apply/state_machine.rs", "pub(crate) use crate::lead::{\n    heard::Heard,\n};\n", "apply -> lead"),
        ("offline/doctor/mod.rs", "use crate::log::LogStore;\n", "offline -> log"),
        ("peers/client.rs", "use crate::apply::{engine::Raft};\n", "peers -> apply"),
        ("lead/submit.rs", "use crate::care::space::Admission;\n", "lead -> care/space"),
        ("care/level/gate.rs", "use crate::care::{membership::Votes};\n", "care/level -> care/membership"),
        ("care/rejoin/task.rs", "use super::super::membership::Members;\n", "care/rejoin -> care/membership"),
        ("care/space/mod.rs", "use crate::node::status::Status;\n", "care/space -> node"),
        ("node/start.rs", "use crate::handle::Handle;\n", "node -> handle"),
        ("node/stop.rs", "use crate::Handle;\n", "node -> lib"),
    ] {
        let wrong = planted(file, line);
        let [one] = wrong.as_slice() else { panic!("{file}: {wrong:?}") };
        assert!(one.starts_with(&format!("{file}:")) && one.contains(arrow), "{one}");
    }
}

#[test]
fn comments_texts_and_tests_may_name_everything() {
    for line in [
        "/// See [`crate::node`].\nfn f() {}\n",
        "const F: &str = \"crate::node\";\n",
        "#[cfg(test)]\nuse crate::node::Node;\n",
        "#[cfg(test)]\nmod more_tests {\n    use crate::node::Node;\n}\n",
        "#[cfg(test)]\n#[allow(dead_code)]\nfn f() {\n    crate::node::f();\n}\n",
        "struct S {\n    #[cfg(test)]\n    node: crate::node::Node,\n}\n",
    ] {
        assert_eq!(planted("disk/contract.rs", line), Vec::<String>::new(), "{line}");
    }
    let behind = "struct S {\n    #[cfg(test)]\n    a: A,\n    node: crate::node::Node,\n}\n";
    assert_eq!(planted("disk/contract.rs", behind).len(), 1);
}

#[test]
fn what_is_on_no_floor_and_what_the_table_allows_in_vain_are_refused() {
    let mut files = tree();
    files.insert("extra.rs".to_owned(), "use crate::base::codec;\n".to_owned());
    assert!(complaints(&files, FLOORS).is_empty(), "nobody declares it");
    files.get_mut("lib.rs").unwrap().push_str("mod extra;\n");
    let wrong = complaints(&files, FLOORS);
    assert!(wrong.len() == 1 && wrong[0].starts_with("extra.rs: it is on no floor"), "{wrong:?}");

    let floors = [
        Floor { folder: "lib", floor: 2, may: &[], because: "" },
        Floor { folder: "high", floor: 2, may: &["low"], because: "" },
        Floor { folder: "low", floor: 1, may: &[], because: "" },
    ];
    let text = |high: &str| {
        let files = [("lib.rs", "mod high;\nmod low;\n"), ("high.rs", high), ("low/mod.rs", "")];
        files.map(|(file, text)| (file.to_owned(), text.to_owned())).into()
    };
    assert!(complaints(&text("use crate::low::Word;\n"), &floors).is_empty());
    assert_eq!(complaints(&text(""), &floors), ["high names low nowhere: take it out of the table"]);
}

#[test]
fn the_table_itself_leads_down_and_lets_neighbours_name_each_other_in_one_direction_only() {
    let table = |high: &'static [&'static str], low: &'static [&'static str], beside: u8| {
        [
            Floor { folder: "lib", floor: 3, may: &[], because: "" },
            Floor { folder: "high", floor: 2, may: high, because: "" },
            Floor { folder: "low", floor: beside, may: low, because: "" },
        ]
    };
    let files: BTreeMap<String, String> = [
        ("lib.rs", "mod high;\nmod low;\n"),
        ("high.rs", "use crate::low::Word;\n"),
        ("low.rs", "use crate::high::Word;\n"),
    ]
    .map(|(file, text)| (file.to_owned(), text.to_owned()))
    .into();
    let up = |from, to| format!("the table lets {from} name {to}, which is not below it");
    assert_eq!(complaints(&files, &table(&["low"], &["high"], 1)), [up("low", "high")]);
    assert_eq!(complaints(&files, &table(&["low"], &["high"], 2)), [up("high", "low"), up("low", "high")]);
    assert_eq!(complaints(&files, &table(&["low"], &[], 2)), ["low.rs:1: low -> high: "]);
}
