//! What is committed of the page is what its sources make, with licences that may be shipped. It needs Node and a package
//! registry; where they are not to be had, a word says so.

mod common;

use std::process::Command;

use common::modules::{page, with_modules};
use serde_json::Value;

const LICENCES: [&str; 5] = ["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"];

/// What goes with every copy of the program.
fn notice() -> String {
    let path = page().join("../../../NOTICE");
    std::fs::read_to_string(path).expect("readable")
}

#[test]
fn v28_the_committed_page_is_what_its_sources_make() {
    let Some(built) = with_modules() else { return };
    let ran = Command::new("node")
        .arg("build.mjs")
        .arg("--check")
        .arg(page().join("dist"))
        .current_dir(&built)
        .output()
        .expect("node runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    println!("{said}");
    let notice = notice();
    for package in ["preact", "uplot", "@dagrejs/dagre", "@dagrejs/graphlib"] {
        let licence = std::fs::read_to_string(built.join("node_modules").join(package).join("LICENSE"));
        let licence = licence.expect("each has one");
        let holder = licence.lines().find(|line| line.starts_with("Copyright")).expect("it names somebody");
        assert!(notice.contains(holder.trim()), "NOTICE does not say of {package}: {holder}");
    }
    let types = Command::new("node")
        .args(["node_modules/typescript/bin/tsc", "--noEmit", "-p", "tsconfig.json"])
        .current_dir(&built)
        .output()
        .expect("node runs");
    assert!(types.status.success(), "{}", String::from_utf8_lossy(&types.stdout));
}

#[test]
fn v28_what_is_in_the_page_may_be_shipped_and_names_no_registry() {
    let text = std::fs::read_to_string(page().join("package-lock.json")).expect("readable");
    assert!(!text.contains("\"resolved\""), "it names where packages were fetched");
    let lock: Value = serde_json::from_str(&text).expect("JSON");
    let packages = lock["packages"].as_object().expect("packages");
    let shipped = packages.iter().filter(|(name, package)| !name.is_empty() && package["dev"] != true);
    let shipped: Vec<_> = shipped.collect();
    assert!(shipped.len() >= 3, "{shipped:?}");
    let notice = notice();
    assert!(
        notice.contains("Permission is hereby granted, free of charge"),
        "the licence goes with every copy"
    );
    for (name, package) in shipped {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(LICENCES.contains(&licence), "{name}: {licence}");
        let short = name.trim_start_matches("node_modules/");
        let is_named = |line: &str| !line.starts_with(' ') && line.split(", ").any(|named| named == short);
        assert!(notice.lines().any(is_named), "NOTICE does not name {short}");
        assert!(package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-")), "{name}");
    }
}
