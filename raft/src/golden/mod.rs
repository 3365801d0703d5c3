//! What earlier builds wrote and said, frozen, one folder a feature level. No file in there is ever edited.
//!
//! Each golden file is checked in both directions: it is read as what it was written from, and what is written
//! today from the same is the file, byte for byte. The second direction fails when an encoding changes. Nodes of
//! two builds then do not understand each other, so such a change needs a new level that gates it
//! (docs/decisions/018-feature-levels.md), samples of it here, and a file of its own in that level's folder.

pub(crate) mod clusters;
pub(crate) mod commands;
mod messages;
pub(crate) mod needs;
mod scheduler_state;
pub(crate) mod schedulers;
pub(crate) mod sessions;
mod state;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Set to anything, it has the tests write the golden files that do not exist yet.
const WRITE: &str = "TRIPOD_FREEZE";

/// What to do about a difference.
const ADVICE: &str = "an encoding has changed, and builds of this level would not understand each other. Take the \
    change back, or make it a part of a new feature level: gate it, add samples for that level, and write a new \
    file with TRIPOD_FREEZE=1. Never edit a file that is there";

/// Every kind of command that came with level 10.
pub(crate) fn commands_of_level_10() -> Vec<commands::Sample> {
    needs::commands().into_iter().chain(sessions::commands()).collect()
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden").join(name)
}

/// Compares bytes with the golden file of that name. Gives the file's, so that the caller reads them.
pub(crate) fn check_file(name: &str, today: &[u8]) -> Vec<u8> {
    let place = place(name);
    if std::env::var_os(WRITE).is_some() && !place.exists() {
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, today).unwrap();
    }
    let golden = std::fs::read(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    assert!(golden == today, "{name}: {ADVICE}");
    golden
}

/// The same for named encodings, one a line in hexadecimal. Gives what the file has for each name.
pub(crate) fn check_lines(name: &str, today: &[(String, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    let mut text = String::new();
    for (name, bytes) in today {
        writeln!(text, "{name}: {}", hex(bytes)).unwrap();
    }
    let place = place(name);
    if std::env::var_os(WRITE).is_some() && !place.exists() {
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, &text).unwrap();
    }
    let golden =
        std::fs::read_to_string(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    for (golden, today) in golden.lines().zip(text.lines()) {
        assert_eq!(golden, today, "{name}: {ADVICE}");
    }
    assert_eq!(golden.lines().count(), today.len(), "{name}: {ADVICE}");
    let lines = golden.lines().map(|line| {
        let (name, hex) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        (name.to_owned(), unhex(hex))
    });
    lines.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tripod_state::Envelope;
    use tripod_state::ids::FeatureLevel;
    use tripod_state::level::{Kind, NEWEST};

    use super::*;
    use crate::base::codec;

    fn check_commands(name: &str, samples: &[commands::Sample]) {
        let today: Vec<_> =
            samples.iter().map(|(name, envelope)| ((*name).to_owned(), codec::encode(envelope))).collect();
        for ((name, envelope), (_, bytes)) in samples.iter().zip(check_lines(name, &today)) {
            assert_eq!(&codec::decode::<Envelope>(&bytes).unwrap(), envelope, "{name} is read differently");
        }
    }

    #[test]
    fn commands_of_level_1_stay_as_they_are() {
        check_commands("level1/commands.txt", &commands::level_1());
    }

    #[test]
    fn commands_of_level_2_stay_as_they_are() {
        check_commands("level2/commands.txt", &commands::level_2());
    }

    #[test]
    fn commands_of_level_3_stay_as_they_are() {
        check_commands("level3/commands.txt", &schedulers::commands());
    }

    #[test]
    fn commands_of_level_5_stay_as_they_are() {
        check_commands("level5/commands.txt", &commands::level_5());
    }

    #[test]
    fn commands_of_level_6_stay_as_they_are() {
        check_commands("level6/commands.txt", &commands::level_6());
    }

    #[test]
    fn commands_of_level_7_stay_as_they_are() {
        check_commands("level7/commands.txt", &commands::level_7());
    }

    #[test]
    fn commands_of_level_8_stay_as_they_are() {
        check_commands("level8/commands.txt", &commands::level_8());
    }

    #[test]
    fn commands_of_level_9_stay_as_they_are() {
        check_commands("level9/commands.txt", &clusters::commands());
    }

    #[test]
    fn commands_of_level_10_stay_as_they_are() {
        check_commands("level10/commands.txt", &commands_of_level_10());
    }

    /// A level that is being built has no file: what it writes may change until it is released.
    #[test]
    fn commands_of_level_11_are_read_as_they_are_written() {
        for (name, envelope) in commands::level_11() {
            let bytes = codec::encode(&envelope);
            assert_eq!(codec::decode::<Envelope>(&bytes).unwrap(), envelope, "{name} is read differently");
        }
    }

    /// The table of levels and the samples agree, and no kind is without a frozen sample.
    #[test]
    fn every_kind_of_command_is_frozen_at_its_level() {
        let of_level = |samples: Vec<commands::Sample>, level: u32| {
            samples.into_iter().map(move |(name, envelope)| (name, envelope.command, FeatureLevel(level)))
        };
        let mut frozen = BTreeSet::new();
        let (first, second) = (of_level(commands::level_1(), 1), of_level(commands::level_2(), 2));
        let (third, fifth) = (of_level(schedulers::commands(), 3), of_level(commands::level_5(), 5));
        let later = of_level(commands::level_6(), 6).chain(of_level(commands::level_7(), 7));
        let later = later.chain(of_level(commands::level_8(), 8)).chain(of_level(clusters::commands(), 9));
        let later = later.chain(of_level(commands_of_level_10(), 10));
        let later = later.chain(of_level(commands::level_11(), 11));
        for (name, command, level) in first.chain(second).chain(third).chain(fifth).chain(later) {
            let kind = command.kind();
            assert_eq!(kind.needs, level, "{name} is frozen at another level than it needs");
            assert!(
                name == "retried" || name.split(' ').next() == Some(kind.name),
                "{name} is {}",
                kind.name
            );
            frozen.insert(kind);
        }
        assert_eq!(frozen, Kind::ALL.iter().copied().collect());
        assert!(frozen.iter().all(|kind| kind.needs <= NEWEST));
    }

    /// One byte that differs is found: this is what all the tests here stand on.
    #[test]
    #[should_panic(expected = "Never edit a file that is there")]
    fn another_encoding_is_found() {
        let mut samples = commands::level_1();
        check_commands("level1/commands.txt", &samples);
        samples[3].1.stamp = None;
        samples[3].1.command = samples[4].1.command.clone();
        check_commands("level1/commands.txt", &samples);
    }
}
