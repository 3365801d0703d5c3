use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use age::secrecy::ExposeSecret as _;
use tripod_wait::until_blocking;

use crate::page::{Block, Outcome, Target, blocks};
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/scheduled-backups.md");

fn files(site: &Site, node: u64) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = match fs::read_dir(site.backups()) {
        Ok(entries) => entries.map(|entry| entry.expect("an entry").path()).collect(),
        Err(_) => Vec::new(),
    };
    let prefix = format!("tripod-node-{node}-index-");
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)));
    files.sort();
    files
}

/// The page's line that starts nodes, with other times.
fn serve_every_second(blocks: &[Block], keep: u32) -> Block {
    let serve = blocks.iter().find(|block| block.lines[0].starts_with("tripod server")).expect("on the page");
    let line = serve.lines[0].replace("--backup-every 3600", "--backup-every 1");
    let line = line.replace("--backup-keep 48", &format!("--backup-keep {keep}"));
    Block { target: Target::Each, outcome: Outcome::Success, lines: vec![line], shows: Vec::new() }
}

/// What `tripod status` tells of a node's backups.
fn told(site: &Site, node: u64) -> serde_json::Value {
    let status = site.status();
    let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
    nodes
        .into_iter()
        .find(|told| told["id"] == node)
        .map_or(serde_json::Value::Null, |told| told["backups"].clone())
}

#[test]
fn n20_nodes_make_backups_that_can_be_verified_and_tell_of_them() {
    let mut site = Site::new();
    for block in &blocks(PAGE) {
        site.run(block);
    }
    for node in 1..=3 {
        let told = until_blocking("a backup that is told of", || {
            Some(told(&site, node)).filter(|told| told["kept"] == 1 && told["verified_ms"].is_u64())
        });
        let [file] = &files(&site, node)[..] else {
            panic!("one backup in an hour: {:?}", files(&site, node))
        };
        let name = file.file_name().expect("a name").to_string_lossy();
        assert_eq!((&told["newest_file"], &told["keep"]), (&name.as_ref().into(), &48.into()));
    }
}

#[test]
fn old_backups_go_when_newer_ones_are_whole_and_not_when_none_can_be_made() {
    let mut site = Site::new();
    let blocks = blocks(PAGE);
    let serve = serve_every_second(&blocks, 2);
    for host in 1..=3 {
        site.run_on(host, &serve);
    }
    site.run(blocks.iter().find(|block| block.lines[0].starts_with("export")).expect("on the page"));
    let newer_than = |site: &Site, number: u32| {
        until_blocking("newer backups", || {
            site.look(&format!("tripod kv put key-{number} value"));
            let seen = files(site, 1);
            let newest = seen.last()?.clone();
            let before = files(site, 1);
            (before.len() == 2 && newest != seen[0]).then_some(newest)
        })
    };
    let first = newer_than(&site, 0);
    until_blocking("the first one to go", || {
        (!files(&site, 1).contains(&first)).then_some(newer_than(&site, 1))
    });
    assert!(files(&site, 1).len() <= 3, "two, and the one that is written");
    // The newest: the other one goes when the next one is there.
    until_blocking("a backup that is whole", || {
        let whole = |file: &PathBuf| file.extension().is_some_and(|end| end == "snap");
        let newest = files(&site, 1).into_iter().rfind(whole)?;
        let (code, _) = site.attempt(&format!("tripod snapshot verify {}", newest.display()));
        (code == Some(0)).then_some(())
    });

    // A killed node goes on where it was, and takes away what it left half.
    site.kill(1);
    let half = site.backups().join("tripod-node-1-index-00000000000000000001.snap.AbCdEf.partial");
    fs::write(&half, b"half").expect("written");
    site.run_on(1, &serve);
    until_blocking("no half file", || (!half.exists()).then_some(()));
    site.wait_for_all(3);

    // Nobody can write there any more: the old ones stay, and it is told.
    site.kill(1);
    let elsewhere = site.backups().with_extension("moved");
    fs::rename(site.backups(), &elsewhere).expect("moved");
    fs::write(site.backups(), b"a file in its place").expect("written");
    site.run_on(1, &serve);
    let failure =
        until_blocking("a failure that is told", || told(&site, 1)["failure"].as_str().map(str::to_owned));
    assert!(failure.contains("--backup-dir"), "{failure}");
    fs::remove_file(site.backups()).expect("removed");
    fs::rename(&elsewhere, site.backups()).expect("moved back");
    until_blocking("backups again", || told(&site, 1)["failure"].is_null().then_some(()));
}

#[test]
fn sealed_backups_are_made_and_told_by_nodes_that_cannot_open_them() {
    let mut site = Site::new();
    let blocks = blocks(PAGE);
    let identity = age::x25519::Identity::generate();
    let mut serve = serve_every_second(&blocks, 48);
    serve.lines[0].push_str(&format!(" --backup-recipient {}", identity.to_public()));
    for host in 1..=3 {
        site.run_on(host, &serve);
    }
    site.run(blocks.iter().find(|block| block.lines[0].starts_with("export")).expect("on the page"));
    let newest = |site: &Site| {
        until_blocking("a sealed backup that is told of", || {
            let name = told(site, 1)["newest_file"].as_str()?.to_owned();
            name.ends_with(".snap.age").then(|| site.backups().join(name))
        })
    };
    let file = newest(&site);
    let (code, told_of) = site.attempt(&format!("tripod snapshot verify {}", file.display()));
    assert_eq!(code, Some(1), "{told_of}");
    assert!(told_of.contains("T5106 backup-sealed"), "{told_of}");

    let keys = site.backups().join("key");
    fs::write(&keys, identity.to_string().expose_secret()).expect("written");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).expect("set");
    let line = format!("tripod snapshot verify {} --identity {}", file.display(), keys.display());
    let (code, told_of) = site.attempt(&line);
    assert_eq!(code, Some(0), "{told_of}");

    // After a restart the node finds its own by their names.
    site.kill(1);
    site.run_on(1, &serve);
    let again = newest(&site);
    assert!(told(&site, 1)["failure"].is_null() && again >= file, "{}", again.display());
}
