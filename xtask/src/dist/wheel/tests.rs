use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _};
use std::process::Command;

use zip::ZipArchive;

use super::super::glibc::Glibc;
use super::super::release::sample;
use super::*;

/// The files of a wheel, with their modes.
fn files(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut found = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        found.insert(file.name().to_owned(), (file.unix_mode().unwrap() & 0o777, bytes));
    }
    found
}

fn text(files: &BTreeMap<String, (u32, Vec<u8>)>, path: &str) -> String {
    String::from_utf8(files.get(path).unwrap_or_else(|| panic!("no {path}")).1.clone()).unwrap()
}

#[test]
fn the_list_of_a_wheel_has_every_file_with_its_hash_and_size() {
    for artefact in make(&sample()).unwrap() {
        let files = files(&artefact.bytes);
        let record = files.keys().find(|path| path.ends_with(".dist-info/RECORD")).unwrap().clone();
        let list = text(&files, &record);
        let mut listed = Vec::new();
        for line in list.lines() {
            let [path, hash, size] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            listed.push(path);
            if path == record {
                assert_eq!((hash, size), ("", ""));
                continue;
            }
            let bytes = &files[path].1;
            assert_eq!(size, bytes.len().to_string(), "{path}");
            let encoded = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
            assert_eq!(hash, format!("sha256={encoded}"), "{path}");
        }
        listed.sort_unstable();
        assert_eq!(listed, files.keys().collect::<Vec<_>>(), "{}", artefact.name);
    }
}

#[test]
fn the_program_is_for_systems_with_its_glibc_and_the_packages_need_it() {
    let release = sample();
    let [program, ray] = make(&release).unwrap().try_into().expect("two wheels");
    assert_eq!(program.name, "tripod-0.1.0-py3-none-manylinux_2_34_x86_64.whl");
    assert_eq!(ray.name, "tripod_ray-0.1.0-py3-none-any.whl");
    let of_program = files(&program.bytes);
    assert_eq!(of_program["tripod-0.1.0.data/scripts/tripod"], (RUN, release.program.clone()));
    let wheel = text(&of_program, "tripod-0.1.0.dist-info/WHEEL");
    assert!(wheel.contains("Root-Is-Purelib: false\nTag: py3-none-manylinux_2_34_x86_64\n"), "{wheel}");
    let of_ray = files(&ray.bytes);
    let metadata = text(&of_ray, "tripod_ray-0.1.0.dist-info/METADATA");
    assert!(metadata.lines().any(|line| line == "Requires-Dist: tripod==0.1.0"), "{metadata}");
    assert!(of_ray.contains_key("tripod_ray/descriptors.bin"), "messages are missing");
    let of_tripod = text(&of_program, "tripod-0.1.0.dist-info/METADATA");
    for (metadata, classifier) in
        [(&metadata, "Topic :: Scientific/Engineering"), (&of_tripod, "Topic :: System :: Clustering")]
    {
        let line = format!("Classifier: {classifier}");
        assert!(metadata.lines().any(|found| found == line), "{line} is not in\n{metadata}");
    }
    assert!(of_ray.contains_key("tripod_mars/__init__.py"));

    let again = make(&release).unwrap();
    assert!(again[0].bytes == program.bytes && again[1].bytes == ray.bytes, "two of one release differ");
    let newer = Release { version: "9.9.9".to_owned(), ..release };
    let error = super::ray(&newer).unwrap_err().to_string();
    assert!(error.contains("9.9.9") && error.contains("pyproject.toml"), "{error}");
}

#[test]
fn a_static_program_is_for_every_c_library() {
    let musl = Release { glibc: None, ..sample() };
    assert_eq!(tag(&musl), "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64");
    assert!(
        wheel(&tag(&musl))
            .unwrap()
            .ends_with("Tag: py3-none-manylinux_2_17_x86_64\nTag: py3-none-musllinux_1_1_x86_64\n")
    );
    let older = Release { glibc: Some(Glibc(2, 28)), ..sample() };
    assert_eq!(tag(&older), "py3-none-manylinux_2_28_x86_64");
}

/// Where pip is, it has the last word.
#[test]
fn pip_installs_the_program_where_programs_are() {
    let folder = tempfile::tempdir().unwrap();
    let artefact = program(&Release { glibc: Some(Glibc(2, 17)), ..sample() }).unwrap();
    let file = folder.path().join(&artefact.name);
    fs::write(&file, &artefact.bytes).unwrap();
    let place = folder.path().join("installed");
    let asked = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !asked.is_ok_and(|output| output.status.success()) || std::env::consts::ARCH != "x86_64" {
        eprintln!("no pip here: only what the other tests look at was looked at");
        return;
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]);
    pip.args(["--disable-pip-version-check", "--target"]).arg(&place).arg(&file);
    let output = pip.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Command::new(place.join("bin/tripod")).arg("version").output().unwrap();
    assert_eq!(run.stdout, b"a fake tripod version\n");
}
