//! An RPC without a row does not compile. The table is compiled once more, as it is and with an RPC too many.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// What the table needs of the crate.
const MODULES: [&str; 6] = ["check", "port", "right", "role", "row", "rows/mod"];

#[test]
fn an_rpc_without_a_row_does_not_compile() {
    let rpcs = std::fs::read_to_string(env!("RPC_OF_GATE")).expect("the list of RPCs was made");
    let as_it_is = compile(&rpcs);
    assert!(as_it_is.status.success(), "{}", String::from_utf8_lossy(&as_it_is.stderr));

    let more = rpcs.replace("pub enum Jobs {", "pub enum Jobs {\n    Steal,").replace(
        "            Self::Jobs(Jobs::Create) =>",
        "            Self::Jobs(Jobs::Steal) => \"Steal\",\n            Self::Jobs(Jobs::Create) =>",
    );
    assert_ne!(more, rpcs);
    let with_more = compile(&more);
    let told = String::from_utf8_lossy(&with_more.stderr);
    assert!(!with_more.status.success(), "it compiled");
    assert!(told.contains("E0004") && told.contains("Jobs::Steal") && told.contains("native.rs"), "{told}");
    assert_eq!(told.matches("error[").count(), 1, "nothing else is wrong with it: {told}");
}

#[test]
fn no_row_stands_for_whatever_comes() {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rows");
    let mut files = 0;
    for file in std::fs::read_dir(rows).expect("rows") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("source");
        files += 1;
        assert!(!text.contains("_ =>"), "{}: write every RPC down", path.display());
    }
    assert_eq!(files, 6);
}

/// Compiles the table with these RPCs, as a crate of its own.
fn compile(rpcs: &str) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("rpc.rs"), rpcs).expect("written");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut root = String::from("#![allow(dead_code, unused_imports)]\npub mod rpc;\n");
    for module in MODULES {
        let name = module.trim_end_matches("/mod");
        let _ = writeln!(root, "#[path = {:?}]\nmod {name};", source.join(format!("{module}.rs")));
    }
    root.push_str(
        "pub use check::{Check, Checks};\npub use port::Port;\npub use right::Right;\npub use role::Role;\n\
         pub use row::Row;\npub use rows::row;\npub use rpc::*;\n",
    );
    let main = directory.path().join("lib.rs");
    std::fs::write(&main, root).expect("written");
    let mut rustc = Command::new(env!("RUSTC_OF_GATE"));
    rustc
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--out-dir"])
        .arg(directory.path())
        .arg(&main);
    rustc.output().expect("the compiler runs")
}
