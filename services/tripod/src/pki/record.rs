//! Which certificates issuers have made and which they have revoked: lines of text beside their keys.

use std::fmt;
use std::fs::File;
use std::path::Path;

use tripod_local::files;
use tripod_proto::code::Code;

use super::store;
use crate::failure::Failure;

/// What was issued.
pub(super) const ISSUED: &str = "issued";
/// What was revoked.
pub(super) const REVOKED: &str = "revoked";
/// Whoever changes the records has this file locked, from before what is read until all is written.
const LOCK: &str = ".lock";
/// Lines of either; those of certificates that have expired do not count. A list of so many revoked ones is half of what a
/// node reads of a file.
const LINES_MAX: usize = 10_000;

/// A certificate: `SIGNER SERIAL NOT_AFTER_S AT_S PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(super) signer: String,
    /// Without zeros in front.
    pub(super) serial: Vec<u8>,
    pub(super) not_after_s: u64,
    /// When it was issued or revoked, since 1970.
    pub(super) at_s: u64,
    /// Whose it is, as the identity says behind the cluster.
    pub(crate) path: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { signer, not_after_s, at_s, path, .. } = self;
        write!(f, "{signer} {} {not_after_s} {at_s} {path}", self.serial_hex())
    }
}

impl Line {
    /// The number of the certificate, in hexadecimal.
    pub(crate) fn serial_hex(&self) -> String {
        self.serial.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let [signer, serial, not_after_s, at_s, path] = text.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let digits = |at: usize| u8::from_str_radix(serial.get(at..at + 2)?, 16).ok();
        Some(Self {
            signer: signer.to_owned(),
            serial: (0..serial.len()).step_by(2).map(digits).collect::<Option<_>>()?,
            not_after_s: not_after_s.parse().ok()?,
            at_s: at_s.parse().ok()?,
            path: path.to_owned(),
        })
    }
}

/// The records of a directory, which nobody else changes meanwhile: what is read stands there until it is replaced.
#[derive(Debug)]
pub(super) struct Record<'a> {
    directory: &'a Path,
    /// Locked until it is closed.
    _lock: File,
}

impl<'a> Record<'a> {
    /// Waits until no other process, and no other part of this one, has them open.
    pub(super) fn open(directory: &'a Path) -> Result<Self, Failure> {
        let path = directory.join(LOCK);
        let locked = files::options().write(true).create(true).truncate(false).open(&path).and_then(|file| {
            file.lock()?;
            Ok(file)
        });
        let lock = locked.map_err(|error| {
            let next = "check that the directory may be written";
            Failure::new(Code::PkiFailed, format!("cannot lock {}: {error}; next: {next}", path.display()))
        })?;
        Ok(Self { directory, _lock: lock })
    }

    /// The lines of a file whose certificates have not expired; none if there is no file.
    pub(super) fn read(&self, name: &str, now_s: u64) -> Result<Vec<Line>, Failure> {
        let path = self.directory.join(name);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = store::read(self.directory, name)?;
        let damaged = |number: usize| {
            let what =
                format!("{} is damaged in line {}; next: restore the directory", path.display(), number + 1);
            Failure::new(Code::PkiFailed, what)
        };
        let lines =
            text.lines().enumerate().map(|(number, line)| Line::parse(line).ok_or_else(|| damaged(number)));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        Ok(lines.into_iter().filter(|line| line.not_after_s >= now_s).collect())
    }

    /// Adds lines to a file, and leaves out what has expired.
    pub(super) fn add(&self, name: &str, more: &[Line], now_s: u64) -> Result<(), Failure> {
        let mut lines = self.read(name, now_s)?;
        lines.extend_from_slice(more);
        if lines.len() > LINES_MAX {
            let what = format!(
                "{} would have more than {LINES_MAX} certificates that have not expired; next: make them for shorter times",
                self.directory.join(name).display()
            );
            return Err(Failure::new(Code::PkiFailed, what));
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        store::write(self.directory, name, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(serial: &[u8], not_after_s: u64) -> Line {
        let (signer, path) = ("client-ca".to_owned(), "operator/ann".to_owned());
        Line { signer, serial: serial.to_vec(), not_after_s, at_s: 5, path }
    }

    #[test]
    fn what_is_written_is_read_again_until_it_has_expired() {
        let place = tempfile::tempdir().expect("a directory");
        let record = Record::open(place.path()).expect("nobody else has it");
        let lines = [line(&[0x40, 0, 0xff], 100), line(&[7], 50)];
        record.add(ISSUED, &lines, 10).expect("written");
        assert_eq!(record.read(ISSUED, 50).expect("read"), lines);
        assert_eq!(lines[0].to_string(), "client-ca 4000ff 100 5 operator/ann");
        record.add(ISSUED, &[line(&[8], 200)], 60).expect("written");
        assert_eq!(record.read(ISSUED, 0).expect("read"), [lines[0].clone(), line(&[8], 200)]);
        assert_eq!(record.read(REVOKED, 0).expect("missing"), []);
    }

    #[test]
    fn a_damaged_line_is_named() {
        let place = tempfile::tempdir().expect("a directory");
        let record = Record::open(place.path()).expect("nobody else has it");
        for damaged in ["x", "client-ca 4 100 5 a", "client-ca 4z 100 5 a", "client-ca 40 x 5 a", ""] {
            store::write(place.path(), ISSUED, &format!("{}\n{damaged}\n", line(&[7], 9))).expect("written");
            let text = record.read(ISSUED, 0).expect_err("damaged").to_string();
            assert!(text.contains("issued is damaged in line 2"), "{damaged}: {text}");
        }
    }

    #[test]
    fn commands_at_the_same_time_lose_no_line_of_each_other() {
        const EACH: u8 = 16;
        let place = tempfile::tempdir().expect("a directory");
        let add = |of: u8| {
            for number in 0..EACH {
                let record = Record::open(place.path()).expect("its turn comes");
                record.add(ISSUED, &[line(&[of, number], 100)], 0).expect("written");
            }
        };
        std::thread::scope(|scope| {
            for of in 1..=4 {
                scope.spawn(move || add(of));
            }
        });
        let record = Record::open(place.path()).expect("nobody else has it");
        assert_eq!(record.read(ISSUED, 0).expect("read").len(), 4 * usize::from(EACH));
    }
}
