//! Whether lines follow from each other.

use std::fmt;
use std::io::{self, BufRead, Read as _};

use crate::line::{Hash, LINE_BYTES_MAX, Line};

/// Problems that are told of at most.
pub const PROBLEMS_MAX: usize = 100;

/// What was found in files of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of the first line; those before it may lie in older files, which have gone.
    pub first: Option<u64>,
    /// Number and hash of the last line that was read.
    pub last: Option<(u64, Hash)>,
    /// How many were read.
    pub lines: u64,
    /// What is wrong, in order; no more than [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which of the files, from 0 on.
    pub file: usize,
    /// Which of its lines, from 1 on.
    pub line: u64,
    /// What.
    pub what: What,
}

/// What may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Lines are missing before this one.
    Missing {
        /// The number of the first of them.
        from: u64,
        /// And of the last.
        to: u64,
    },
    /// A line has a number that was there, or comes before one that was.
    Again {
        /// Its number.
        seq: u64,
    },
    /// A line is not the one that was written, as the next one says.
    Changed {
        /// Its number.
        seq: u64,
    },
    /// The first line of a log names one before it.
    NotTheFirst,
    /// It is no line of an audit log.
    Unreadable,
    /// The file ends within a line.
    Unfinished,
}

impl Verified {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn tell(&mut self, file: usize, line: u64, what: What) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { file, line, what });
        }
    }

    /// Takes the next line, and compares it with the one before.
    fn take(&mut self, file: usize, number: u64, bytes: &[u8]) {
        let Some(line) = Line::read(bytes) else {
            self.tell(file, number, What::Unreadable);
            return;
        };
        let seq = line.seq;
        match self.last {
            None if seq == 1 && line.prev != Hash::NONE => self.tell(file, number, What::NotTheFirst),
            None => {}
            Some((before, _)) if seq <= before => self.tell(file, number, What::Again { seq }),
            Some((before, _)) if seq > before + 1 => {
                self.tell(file, number, What::Missing { from: before + 1, to: seq - 1 });
            }
            Some((before, hash)) if line.prev != hash => {
                self.tell(file, number, What::Changed { seq: before });
            }
            Some(_) => {}
        }
        self.first.get_or_insert(seq);
        self.last = Some((seq, Hash::of(bytes)));
        self.lines += 1;
    }
}

/// Reads files of a log in their order, and compares each line with the one before.
///
/// # Errors
/// Those of the readers. What is wrong with lines is no error.
pub fn verify<R: BufRead>(files: impl IntoIterator<Item = R>) -> io::Result<Verified> {
    let mut verified = Verified::default();
    for (file, mut lines) in files.into_iter().enumerate() {
        let mut number = 0;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = lines.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                break;
            }
            number += 1;
            match bytes.strip_suffix(b"\n") {
                Some(line) => verified.take(file, number, line),
                None if read < LINE_BYTES_MAX => verified.tell(file, number, What::Unfinished),
                None => {
                    verified.tell(file, number, What::Unreadable);
                    skip_line(&mut lines)?;
                }
            }
        }
    }
    Ok(verified)
}

/// Reads on to the end of a line that is too long to be one.
fn skip_line(lines: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = lines.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |place| place + 1);
        lines.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { from, to } if from == to => write!(out, "record {from} is missing before it"),
            Self::Missing { from, to } => write!(out, "records {from} to {to} are missing before it"),
            Self::Again { seq } => write!(out, "record {seq} is out of its order"),
            Self::Changed { seq } => write!(out, "record {seq} is not the one that was written"),
            Self::NotTheFirst => out.write_str("record 1 names one before it"),
            Self::Unreadable => out.write_str("it is no record"),
            Self::Unfinished => out.write_str("the file ends within it"),
        }
    }
}
