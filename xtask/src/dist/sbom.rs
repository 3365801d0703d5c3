//! What the program is made of, as CycloneDX tells it: every crate that is compiled into it, with the hash that `Cargo.lock`
//! pins. It is the same whenever it is made of the same commit and program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::release::{Artefact, Release};
use crate::cargo::cargo;

/// The crate that is the program.
const PROGRAM: &str = "tripod";

/// Name and version of a crate.
type Named = (String, String);

/// The bill of materials of a release.
///
/// # Errors
/// `cargo metadata` failed, or `Cargo.lock` cannot be read.
pub(crate) fn make(release: &Release) -> Result<Artefact> {
    let platform = format!("{}-unknown-linux-gnu", release.machine.name());
    let metadata = ask(&["metadata", "--format-version=1", "--locked", "--filter-platform", &platform])?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata prints no JSON")?;
    let tree = ask(&[
        "tree",
        "--locked",
        "--package",
        PROGRAM,
        "--edges",
        "normal",
        "--target",
        &platform,
        "--prefix",
        "none",
        "--format",
        "{p}",
    ])?;
    let lock = fs::read_to_string(release.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let bill = bill(&metadata, &compiled(&tree), &hashes(&lock)?, &release.program)?;
    let bytes = serde_json::to_vec_pretty(&bill).context("cannot write JSON")?;
    Ok(Artefact { name: format!("tripod-{}.cdx.json", release.version), bytes })
}

/// What cargo prints.
fn ask(arguments: &[&str]) -> Result<String> {
    let what = arguments[0];
    let output = cargo(arguments).output().with_context(|| format!("cannot start cargo {what}"))?;
    if !output.status.success() {
        bail!("cargo {what} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("cargo {what} prints no text"))
}

/// Name and version of each crate that the lines of `cargo tree` name: `serde v1.0.0 (proc-macro) (*)`. Cargo's metadata
/// alone has crates besides that only a feature which is off would bring.
fn compiled(tree: &str) -> BTreeSet<Named> {
    let named = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    tree.lines().filter_map(named).collect()
}

/// Name and version of a package.
fn named(package: &Value) -> Named {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("version"))
}

/// The hash of each crate that comes from a registry.
fn hashes(lock: &str) -> Result<BTreeMap<Named, String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock is no TOML")?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).context("Cargo.lock names no packages")?;
    let text = |package: &toml::Value, key: &str| package.get(key)?.as_str().map(str::to_owned);
    let hash = |package: &toml::Value| {
        Some(((text(package, "name")?, text(package, "version")?), text(package, "checksum")?))
    };
    Ok(packages.iter().filter_map(hash).collect())
}

fn bill(
    metadata: &Value,
    compiled: &BTreeSet<Named>,
    hashes: &BTreeMap<Named, String>,
    program: &[u8],
) -> Result<Value> {
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let packages = packages.iter().filter(|package| compiled.contains(&named(package)));
    let by_id: BTreeMap<&str, &Value> =
        packages.filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let needs = needs(metadata)?;
    let own = by_id.values().find(|package| package["name"] == PROGRAM);
    let own = own.context("there is no package `tripod`")?;
    let mut program_part = component(own, hashes);
    program_part["type"] = "application".into();
    program_part["hashes"] =
        json!([{ "alg": "SHA-256", "content": format!("{:x}", Sha256::digest(program)) }]);
    let others = by_id.values().filter(|package| package["name"] != PROGRAM);
    let components: Vec<Value> = others.map(|package| component(package, hashes)).collect();
    let mut dependencies = Vec::new();
    for (id, package) in &by_id {
        let needed = needs.get(id).into_iter().flatten().filter_map(|id| by_id.get(id));
        let on: BTreeSet<String> = needed.map(|package| purl(package)).collect();
        dependencies.push(json!({ "ref": purl(package), "dependsOn": on }));
    }
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program_part },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// What each package needs to be compiled into something, and what writes a part of that, as macros do; what only builds or
/// tests it is not among it.
fn needs(metadata: &Value) -> Result<BTreeMap<&str, Vec<&str>>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata resolves nothing")?;
    let is_normal =
        |kinds: &Value| kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()));
    let mut needs = BTreeMap::new();
    for node in nodes {
        let id = node["id"].as_str().context("a package without an id")?;
        let deps = node["deps"].as_array().context("a package without a list")?;
        let of_node =
            deps.iter().filter(|dep| is_normal(&dep["dep_kinds"])).filter_map(|dep| dep["pkg"].as_str());
        needs.insert(id, of_node.collect());
    }
    Ok(needs)
}

fn component(package: &Value, hashes: &BTreeMap<Named, String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let purl = purl(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": text("name"),
        "version": text("version"),
        "purl": purl,
        "scope": "required",
    });
    if let Some(licence) = package["license"].as_str() {
        // As crates wrote it before there were expressions.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(hash) = hashes.get(&named(package)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": hash }]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// How scanners name a crate.
fn purl(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    // What follows a plus tells nothing that a registry knows, but must not be taken for a blank.
    format!("pkg:cargo/{}@{}", text("name"), text("version").replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::super::release::sample;
    use super::*;

    #[test]
    fn crates_are_read_from_the_lines_of_cargo_tree() {
        let lines =
            "tripod v0.1.0 (/srv/a b/tripod)\nserde_derive v1.0.229 (proc-macro)\nbytes v1.12.1 (*)\n\n";
        let of = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let expected = [of("tripod", "0.1.0"), of("serde_derive", "1.0.229"), of("bytes", "1.12.1")];
        assert_eq!(compiled(lines), BTreeSet::from(expected));
    }

    #[test]
    fn s60_every_crate_of_the_program_is_in_the_bill_with_its_hash_and_licence() {
        let release = sample();
        let made = make(&release).unwrap();
        assert_eq!(made.name, "tripod-0.1.0.cdx.json");
        assert_eq!(made.bytes, make(&release).unwrap().bytes, "the same each time");
        let bill: Value = serde_json::from_slice(&made.bytes).unwrap();
        assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
        let own = &bill["metadata"]["component"];
        assert_eq!(own["hashes"][0]["content"], format!("{:x}", Sha256::digest(&release.program)));
        let components = bill["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|part| part["name"] == name);
        for name in ["openraft", "sled", "rustls", "aws-lc-rs", "age", "tokio", "tripod-state"] {
            assert!(named(name).is_some(), "{name} is compiled in");
        }
        for name in ["proptest", "xtask", "tripod-chaos", "yaml-rust2", "ring"] {
            assert!(named(name).is_none(), "{name} is not compiled in");
        }
        let mut references = BTreeSet::new();
        for part in components {
            let name = part["name"].as_str().unwrap();
            assert!(references.insert(part["bom-ref"].as_str().unwrap()), "{name} twice");
            assert!(!part["licenses"][0]["expression"].as_str().unwrap().contains('/'), "{name}");
            let is_ours = name.starts_with("tripod");
            let hash = part["hashes"][0]["content"].as_str().unwrap_or_default();
            assert_eq!(hash.len(), if is_ours { 0 } else { 64 }, "{name}");
        }
        references.insert(own["bom-ref"].as_str().unwrap());
        for dependency in bill["dependencies"].as_array().unwrap() {
            assert!(references.contains(dependency["ref"].as_str().unwrap()));
            for on in dependency["dependsOn"].as_array().unwrap() {
                assert!(references.contains(on.as_str().unwrap()), "{on} is needed and not listed");
            }
        }
    }
}
