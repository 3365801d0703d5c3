//! What is sealed is opened by its recipients and by nobody else, and every change of it is seen.

use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;
use tripod_proto::code::Code;
use tripod_raft::backup::Pace;

use super::*;
use crate::failure::Failure;

/// Several chunks of age, and a part of one.
const CONTENT_BYTES: usize = 3 * (64 << 10) + 17;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

fn recipient(identity: &Identity) -> Recipient {
    identity.to_public().to_string().parse().expect("a recipient")
}

/// A file of identities, as `age-keygen` writes it.
fn key_file(place: &Path, name: &str, identities: &[&Identity]) -> PathBuf {
    let lines = identities.iter().map(|identity| identity.to_string().expose_secret().to_owned() + "\n");
    let path = place.join(name);
    fs::write(&path, format!("# created: today\n{}", lines.collect::<String>())).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
    path
}

/// Seals so many bytes, in parts that do not fit the chunks; gives what the file is to others.
fn seal(file: &Path, bytes: usize, recipients: &[Recipient]) -> Outer {
    let mut sink = Sink::open(file, false, recipients).map_err(|error| error.to_string()).expect("begun");
    for part in content(bytes).chunks(10_000) {
        sink.write(part).expect("written");
    }
    let written = sink.finish().expect("durable");
    let outer = written.outer().expect("it is sealed");
    written.put_in_place().expect("named");
    outer
}

/// What an identity finds in a file.
fn opened(file: &Path, keys: &Path) -> Result<Vec<u8>, Failure> {
    let mut content = open(file, &Identities::read(keys)?)?;
    let mut bytes = Vec::new();
    let read = content.read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(Code::BackupDamaged, error.to_string()))?;
    Ok(bytes)
}

#[test]
fn every_recipient_opens_what_was_sealed_and_nobody_else() {
    let place = tempfile::tempdir().expect("a directory");
    let (one, two, other) = (Identity::generate(), Identity::generate(), Identity::generate());
    for bytes in [0, 1, 64 << 10, CONTENT_BYTES] {
        let file = place.path().join(format!("{bytes}.snap.age"));
        let outer = seal(&file, bytes, &[recipient(&one), recipient(&two)]);
        assert_eq!(Outer::of(&file).expect("readable"), outer);
        assert!(is_sealed(&file));
        let text = fs::read(&file).expect("readable");
        assert!(
            bytes < 64 || !text.windows(64).any(|part| part == &content(64)[..]),
            "it lies there in plain text"
        );
        for keys in [&[&one][..], &[&two], &[&other, &two]] {
            let keys = key_file(place.path(), "key.txt", keys);
            assert_eq!(opened(&file, &keys).expect("a recipient"), content(bytes));
        }
        let keys = key_file(place.path(), "key.txt", &[&other]);
        let told = opened(&file, &keys).expect_err("not sealed for it").to_string();
        assert!(told.starts_with("T5107 backup-identity: ") && told.contains("key.txt"), "{told}");
        assert!(told.contains("--identity") && !told.contains("AGE-SECRET-KEY-1Q"), "{told}");
    }
}

#[test]
fn a_file_that_is_cut_changed_or_longer_is_damaged() {
    let place = tempfile::tempdir().expect("a directory");
    let identity = Identity::generate();
    let keys = key_file(place.path(), "key.txt", &[&identity]);
    let file = place.path().join("b.snap.age");
    let outer = seal(&file, CONTENT_BYTES, &[recipient(&identity)]);
    let whole = fs::read(&file).expect("readable");
    let end_of_chunk = whole.len() - (17 + 16);
    for length in [30, 200, 400, whole.len() / 2, end_of_chunk, whole.len() - 1] {
        fs::write(&file, &whole[..length]).expect("written");
        let refused = opened(&file, &keys).expect_err("it is cut");
        assert_eq!(refused.code(), Code::BackupDamaged, "cut at {length}: {refused}");
    }
    for at in [30, 150, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&file, &changed).expect("written");
        assert_ne!(Outer::of(&file).expect("readable"), outer);
        let refused = opened(&file, &keys).expect_err("it was changed");
        assert!(matches!(refused.code(), Code::BackupDamaged | Code::BackupIdentity), "byte {at}: {refused}");
    }
    fs::write(&file, [&whole[..], b"x"].concat()).expect("written");
    assert!(opened(&file, &keys).is_err(), "one byte more");
}

#[test]
fn a_head_without_an_end_is_refused_before_it_is_read() {
    let place = tempfile::tempdir().expect("a directory");
    let keys = key_file(place.path(), "key.txt", &[&Identity::generate()]);
    let file = place.path().join("b.snap.age");
    for tail in ["-> X25519 ".repeat(20_000), format!("\n--- {}", "a".repeat(1 << 20))] {
        fs::write(&file, format!("age-encryption.org/v1\n{tail}")).expect("written");
        let refused = opened(&file, &keys).expect_err("it never ends");
        assert_eq!(refused.code(), Code::BackupDamaged);
        assert!(refused.to_string().contains("its head has no end"), "{refused}");
    }
}

#[test]
fn nothing_of_the_content_is_taken_for_the_rest_of_a_head_whose_last_line_is_too_short_or_long() {
    let place = tempfile::tempdir().expect("a directory");
    let keys = key_file(place.path(), "key.txt", &[&Identity::generate()]);
    let file = place.path().join("b.snap.age");
    let content = "x".repeat(4 << 20);
    for mac in ["", "a", &"A".repeat(42), &"A".repeat(44)] {
        fs::write(&file, format!("age-encryption.org/v1\n-> X25519 a\n\n--- {mac}\n{content}"))
            .expect("written");
        let refused = opened(&file, &keys).expect_err("it is no head");
        assert_eq!(refused.code(), Code::BackupDamaged);
        assert!(refused.to_string().contains("its head has no end"), "{mac}: {refused}");
    }
}

/// A hostile file must not have this process work for years.
#[test]
fn a_passphrase_is_never_tried_whatever_work_it_asks_for() {
    let place = tempfile::tempdir().expect("a directory");
    let keys = key_file(place.path(), "key.txt", &[&Identity::generate()]);
    let file = place.path().join("b.snap.age");
    let (salt, letters) = ("A".repeat(22), "A".repeat(43));
    for work in ["1", "22", "62", "255", "99999999999999999999"] {
        let head = format!("age-encryption.org/v1\n-> scrypt {salt} {work}\n{letters}\n--- {letters}\n");
        fs::write(&file, head + &"x".repeat(1_000)).expect("written");
        let refused = opened(&file, &keys).expect_err("no identity is a passphrase");
        assert_eq!(refused.code(), Code::BackupIdentity, "{work}: {refused}");
    }
}

#[test]
fn nothing_is_sealed_for_a_recipient_that_is_nobodys() {
    // As they are, with another number of the same value, and with the bit set that does not count.
    let written_otherwise = [
        "age1ahlllllllllllllllllllllllllllllllllllllllllllllllalsn46ayy",
        "age1amlllllllllllllllllllllllllllllllllllllllllllllllalselrwrv",
        "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqzqqsuwj9m",
    ];
    for text in recipient::NOBODYS.into_iter().chain(written_otherwise) {
        assert!(text.parse::<age::x25519::Recipient>().is_ok(), "{text} is one to the library");
        let refused = text.parse::<Recipient>().expect_err("nobody's");
        assert!(refused.contains("it belongs to no identity"), "{refused}");
    }
    assert!(Identity::generate().to_public().to_string().parse::<Recipient>().is_ok());
}

#[test]
fn what_was_written_is_read_again_without_any_of_the_recipients() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("b.snap.age");
    let recipients = [recipient(&Identity::generate())];
    let mut sink = Sink::open(&file, false, &recipients).map_err(|error| error.to_string()).expect("begun");
    sink.write(b"no snapshot").expect("written");
    let written = sink.finish().expect("durable");
    let told = written.verify(Pace::unlimited()).expect_err("it was opened, and is no snapshot").to_string();
    assert!(told.starts_with("T5101 backup-damaged: "), "{told}");
    assert!(told.contains("it does not begin like a snapshot") || told.contains("the file ends"), "{told}");
    drop(written);
    assert!(!file.exists() && fs::read_dir(place.path()).expect("readable").count() == 0);
}

#[test]
fn identities_come_from_a_file_that_nobody_else_reads_and_are_never_told() {
    let place = tempfile::tempdir().expect("a directory");
    let identity = Identity::generate();
    let secret = identity.to_string().expose_secret().to_owned();
    let keys = key_file(place.path(), "key.txt", &[&identity]);
    assert!(Identities::read(&keys).is_ok());
    fs::set_permissions(&keys, Permissions::from_mode(0o644)).expect("set");
    let told = Identities::read(&keys).map(|_| ()).expect_err("others read it").to_string();
    assert!(told.starts_with("T5107 backup-identity: ") && told.contains("`chmod 600 "), "{told}");
    fs::set_permissions(&keys, Permissions::from_mode(0o600)).expect("set");
    for text in ["", "# nothing\n", "not a key\n", &format!("{secret}x\n"), &format!("{secret}\nage1\n")] {
        fs::write(&keys, text).expect("written");
        let told = Identities::read(&keys).map(|_| ()).expect_err("no identities").to_string();
        assert!(told.starts_with("T5107 backup-identity: ") && !told.contains(&secret), "{told}");
    }
    assert!(Identities::read(&place.path().join("none")).is_err());
    let long = format!("{secret}\n").repeat((1 << 20) / secret.len());
    fs::write(&keys, long).expect("written");
    let told = Identities::read(&keys).map(|_| ()).expect_err("some would be left out").to_string();
    assert!(told.contains("is the most"), "{told}");
}
