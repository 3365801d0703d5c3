//! Which versions of other people's crates ours ask for: exact ones, and ranges where other projects build on ours.

use std::collections::BTreeSet;

use serde_json::Value;

/// What other projects build on. A project has one version of tokio or tonic: if a library asked for an exact one, only
/// projects with the same one could use it. `Cargo.lock` says what is built here.
const LIBRARIES: [&str; 2] = ["tripod-client", "tripod-worker"];

/// Complaints about packages as `cargo metadata` lists them.
pub(super) fn wrong(packages: &[Value]) -> Vec<String> {
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let libraries = closure(packages, &ours);
    let asked: Vec<Asked<'_>> =
        packages.iter().flat_map(asked_of).filter(|asked| !ours.contains(asked.to)).collect();
    let of_library = |asked: &Asked<'_>| libraries.contains(asked.from) && !asked.dev;
    let ranged: BTreeSet<&str> =
        asked.iter().filter(|asked| of_library(asked)).map(|asked| asked.to).collect();
    asked
        .iter()
        .filter_map(|asked| {
            let Asked { from, to, version, .. } = asked;
            let exact = version.starts_with('=');
            if of_library(asked) && exact {
                return Some(format!(
                    "{from} -> {to} {version}: other projects build on it, so it asks for a range"
                ));
            }
            (!ranged.contains(to) && !exact).then(|| {
                format!(
                    "{from} -> {to} {version}: write an exact version, `={}`",
                    version.trim_start_matches('^')
                )
            })
        })
        .collect()
}

struct Asked<'a> {
    from: &'a str,
    to: &'a str,
    version: &'a str,
    dev: bool,
}

fn asked_of(package: &Value) -> impl Iterator<Item = Asked<'_>> {
    let from = package["name"].as_str().unwrap_or_default();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    dependencies.iter().filter_map(move |dependency| {
        Some(Asked {
            from,
            to: dependency["name"].as_str()?,
            version: dependency["req"].as_str()?,
            dev: dependency["kind"].as_str() == Some("dev"),
        })
    })
}

/// The libraries, and what of ours they are built from.
fn closure<'a>(packages: &'a [Value], ours: &BTreeSet<&str>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = LIBRARIES.to_vec();
    while let Some(name) = open.pop() {
        let Some(package) = packages.iter().find(|package| package["name"] == name) else { continue };
        if found.insert(package["name"].as_str().unwrap_or_default()) {
            open.extend(
                asked_of(package).filter(|asked| !asked.dev && ours.contains(asked.to)).map(|asked| asked.to),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, dependencies: &[(&str, &str, Option<&str>)]) -> Value {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|(name, req, kind)| json!({"name": name, "req": req, "kind": kind}))
            .collect();
        json!({"name": name, "dependencies": dependencies})
    }

    #[test]
    fn libraries_and_what_they_are_built_from_ask_for_ranges_and_nobody_else_does() {
        let packages = [
            package(
                "tripod-client",
                &[("tripod-proto", "*", None), ("tokio", "^1.54", None), ("tempfile", "=3", Some("dev"))],
            ),
            package("tripod-proto", &[("prost", "=0.14.4", None), ("protox", "^0.10.0", Some("build"))]),
            package(
                "tripod-raft",
                &[("sled", "^0.34", None), ("tokio", "^1.54", None), ("openraft", "=0.10.0", None)],
            ),
        ];
        assert_eq!(
            wrong(&packages),
            [
                "tripod-proto -> prost =0.14.4: other projects build on it, so it asks for a range",
                "tripod-raft -> sled ^0.34: write an exact version, `=0.34`",
            ]
        );
    }
}
