//! What lies where in a data directory, as far as one needs it to say what a flipped bit has hit.

use std::path::Path;

use anyhow::Context as _;

/// Bytes in front of a journal segment's frames, and what frames are aligned to.
const ALIGN: usize = 64;
/// Bytes of a frame's header.
const HEADER: usize = 32;
/// What the header of a seal says that it is.
const SEAL: u8 = 2;
/// Frames that count as the last ones: one, and a seal.
const LAST_FRAMES: usize = 2;

/// The kinds of files in a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    Identity,
    JournalSegment,
    /// Anything in the journal's directory that is no segment.
    JournalOther,
    SledData,
    SledConfiguration,
    /// sled's own snapshot of its page table, or a blob.
    SledOther,
    Snapshot,
    Other,
}

impl FileKind {
    /// The kind of the file with this path below the data directory.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
        match parts[..] {
            ["identity.json"] => Self::Identity,
            ["journal", name] if name.ends_with(".segment") => Self::JournalSegment,
            ["journal", ..] => Self::JournalOther,
            ["log", "db"] => Self::SledData,
            ["log", "conf"] => Self::SledConfiguration,
            ["log", ..] => Self::SledOther,
            ["snapshots", ..] => Self::Snapshot,
            _ => Self::Other,
        }
    }

    /// A name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::JournalSegment => "journal segment",
            Self::JournalOther => "journal, other",
            Self::SledData => "sled data",
            Self::SledConfiguration => "sled configuration",
            Self::SledOther => "sled, other",
            Self::Snapshot => "snapshot",
            Self::Other => "other",
        }
    }
}

/// Which part of a file a byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRegion {
    /// The head of a journal segment.
    SegmentHead,
    FrameHeader,
    FrameBody,
    /// Header or body of the last two frames, one of which may be a seal: where damage could be taken for a
    /// write that was never finished.
    LastFrames,
    /// Zeroes that fill a frame or head up.
    Padding,
    /// Behind the last frame of this segment's life: zeroes, or frames of an earlier life.
    Unused,
    /// A byte of a file whose parts are not told apart.
    Byte,
}

impl FileRegion {
    /// A name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SegmentHead => "segment head",
            Self::FrameHeader => "frame header",
            Self::FrameBody => "frame body",
            Self::LastFrames => "last frames",
            Self::Padding => "padding",
            Self::Unused => "unused space",
            Self::Byte => "byte",
        }
    }
}

/// The parts of one file.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    kind: FileKind,
    length: u64,
    /// Begin and length of the body of each frame, header excluded; for journal segments.
    bodies: Vec<(u64, u64)>,
    /// Where the frames end.
    used: u64,
}

impl Layout {
    /// Reads the file at `path`. Blocks.
    pub(super) fn read(path: &Path, kind: FileKind) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let length = bytes.len() as u64;
        if kind != FileKind::JournalSegment {
            return Ok(Self { kind, length, bodies: Vec::new(), used: length });
        }
        let (bodies, used) = frames(&bytes);
        Ok(Self { kind, length, bodies, used })
    }

    /// Bytes that mean something, from the start.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn region(&self, offset: u64) -> FileRegion {
        if self.kind != FileKind::JournalSegment {
            return FileRegion::Byte;
        }
        // As journal::frame writes it: 48 bytes mean something, and zeroes fill them up.
        match offset {
            0..48 => return FileRegion::SegmentHead,
            48..64 => return FileRegion::Padding,
            _ if offset >= self.used => return FileRegion::Unused,
            _ => {}
        }
        let next = self.bodies.partition_point(|(begin, _)| begin - (HEADER as u64) <= offset);
        let (begin, length) = self.bodies[next - 1];
        match offset {
            _ if offset >= begin + length => FileRegion::Padding,
            _ if next + LAST_FRAMES > self.bodies.len() => FileRegion::LastFrames,
            _ if offset < begin => FileRegion::FrameHeader,
            _ => FileRegion::FrameBody,
        }
    }
}

/// Whether nothing that was begun stands at the end of a journal: its last header is a seal, which proves the frame
/// before it. Blocks.
pub(super) fn is_sealed(journal: &Path) -> anyhow::Result<bool> {
    let mut last = None;
    for entry in std::fs::read_dir(journal).with_context(|| format!("cannot list {}", journal.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "segment") {
            let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            // The frame after a seal has its number, and may be in the next segment.
            last = last.max(last_header(&bytes).map(|(number, kind)| (number, path, kind)));
        }
    }
    Ok(last.is_some_and(|(.., kind)| kind == SEAL))
}

/// Number and kind of the last frame or seal of a segment.
fn last_header(bytes: &[u8]) -> Option<(u64, u8)> {
    let (begin, _) = frames(bytes).0.pop()?;
    let header = usize::try_from(begin).ok()? - HEADER;
    let number = bytes.get(header + 8..header + 16)?.try_into().ok()?;
    Some((u64::from_le_bytes(number), bytes[header + 4]))
}

/// The bodies of a segment's frames in order, and where they end. Stops at what does not carry the first
/// frame's salt, which is where the segment's present life ends.
fn frames(bytes: &[u8]) -> (Vec<(u64, u64)>, u64) {
    let word =
        |at: usize| bytes.get(at..at + 4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
    let mut bodies = Vec::new();
    let mut at = ALIGN;
    let salt = word(at).unwrap_or(0);
    // A spare segment holds zeroes only.
    while salt != 0 && word(at) == Some(salt) {
        let Some(length) = word(at + 16).map(|length| length as usize) else { break };
        bodies.push(((at + HEADER) as u64, length as u64));
        at += (HEADER + length).next_multiple_of(ALIGN);
    }
    (bodies, at.min(bytes.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_segment_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.segment");
        let mut bytes = vec![0; 4096];
        for (at, length) in [(64, 10_u32), (128, 100), (320, 0), (384, 0)] {
            bytes[at..at + 4].copy_from_slice(&[1, 2, 3, 4]);
            bytes[at + 16..at + 20].copy_from_slice(&length.to_le_bytes());
        }
        std::fs::write(&path, bytes).unwrap();
        let layout = Layout::read(&path, FileKind::JournalSegment).unwrap();
        assert_eq!(layout.used(), 448);
        for (offset, region) in [
            (0, FileRegion::SegmentHead),
            (50, FileRegion::Padding),
            (64, FileRegion::FrameHeader),
            (96, FileRegion::FrameBody),
            (106, FileRegion::Padding),
            (159, FileRegion::FrameHeader),
            (259, FileRegion::FrameBody),
            (260, FileRegion::Padding),
            (330, FileRegion::LastFrames),
            (352, FileRegion::Padding),
            (400, FileRegion::LastFrames),
            (448, FileRegion::Unused),
        ] {
            assert_eq!(layout.region(offset), region, "at {offset}");
        }
    }

    #[test]
    fn a_journal_is_sealed_when_its_last_header_is_a_seal() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_sealed(directory.path()).unwrap(), "there is none");
        // Segments by their numbers, with the numbers and kinds of their frames.
        let write = |segment: u8, frames: &[(u8, u8)]| {
            let mut bytes = vec![0; 1024];
            for ((number, kind), at) in frames.iter().zip((ALIGN..).step_by(ALIGN)) {
                (bytes[at], bytes[at + 4], bytes[at + 8]) = (segment, *kind, *number);
            }
            std::fs::write(directory.path().join(format!("{segment}.segment")), bytes).unwrap();
        };
        write(1, &[(1, 1), (2, 1), (3, 1)]);
        assert!(!is_sealed(directory.path()).unwrap());
        write(1, &[(1, 1), (2, 1), (3, 2)]);
        assert!(is_sealed(directory.path()).unwrap());
        write(2, &[(3, 1)]);
        write(3, &[]);
        assert!(!is_sealed(directory.path()).unwrap());
        write(2, &[(3, 1), (4, 1), (5, 2)]);
        assert!(is_sealed(directory.path()).unwrap());
    }

    #[test]
    fn files_are_known_by_their_place() {
        for (path, kind) in [
            ("identity.json", FileKind::Identity),
            ("journal/0000000000000001.segment", FileKind::JournalSegment),
            ("journal/spare", FileKind::JournalOther),
            ("log/db", FileKind::SledData),
            ("log/snap.0000", FileKind::SledOther),
            ("snapshots/1.snapshot", FileKind::Snapshot),
        ] {
            assert_eq!(FileKind::of(Path::new(path)), kind, "{path}");
        }
    }
}
