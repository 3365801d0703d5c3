//! One bit that is not what was written.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rand::{Rng, RngExt as _};

use super::structure::{FileKind, FileRegion, Layout};

/// Draws before a part of a file that is wanted counts as not there.
const DRAWS: usize = 4096;
/// Parts of a journal segment, drawn alike: nearly all of its bytes are the bodies of frames, which would
/// hide how the small parts fare.
const SEGMENT_REGIONS: [FileRegion; 6] = [
    FileRegion::SegmentHead,
    FileRegion::FrameHeader,
    FileRegion::FrameBody,
    FileRegion::LastFrames,
    FileRegion::Padding,
    FileRegion::Unused,
];

/// A bit of a file in a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// Below the data directory.
    pub file: PathBuf,
    pub kind: FileKind,
    pub region: FileRegion,
    pub offset: u64,
    /// 0 is the lowest.
    pub bit: u8,
}

impl Flip {
    /// Draws a bit of a file of this kind; `None` if there is no such file, or only empty ones. The same
    /// random numbers and files give the same bit. Blocks.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn draw(data: &Path, kind: FileKind, random: &mut impl Rng) -> anyhow::Result<Option<Self>> {
        let mut layouts = Vec::new();
        for file in files(data)? {
            if FileKind::of(&file) == kind {
                let layout = Layout::read(&data.join(&file), kind)?;
                layouts.push((file, layout));
            }
        }
        // Files without any use, such as segments made ahead, are drawn as rarely as one page of a used one.
        let weight = |layout: &Layout| layout.used().max(layout.length().min(4096));
        let total: u64 = layouts.iter().map(|(_, layout)| weight(layout)).sum();
        if total == 0 {
            return Ok(None);
        }
        let mut left = random.random_range(0..total);
        let drawn = layouts.iter().find(|(_, layout)| match left.checked_sub(weight(layout)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        let (file, layout) = drawn.expect("the sum of the weights is reached");
        let offset = draw_offset(layout, kind, random);
        let (region, bit) = (layout.region(offset), random.random_range(0..8));
        Ok(Some(Self { file: file.clone(), kind, region, offset, bit }))
    }

    /// Turns the bit over; a second time, back. The node may run. Blocks.
    ///
    /// # Errors
    /// The file is gone or shorter now.
    pub fn apply(&self, data: &Path) -> anyhow::Result<()> {
        let path = data.join(&self.file);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, self.offset).with_context(|| format!("cannot read {self}"))?;
        byte[0] ^= 1 << self.bit;
        file.write_all_at(&byte, self.offset).with_context(|| format!("cannot write {self}"))?;
        file.sync_data().with_context(|| format!("cannot write {self}"))
    }
}

impl std::fmt::Display for Flip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, region, offset, bit, .. } = self;
        write!(f, "bit {bit} of byte {offset} of {} ({})", file.display(), region.name())
    }
}

fn draw_offset(layout: &Layout, kind: FileKind, random: &mut impl Rng) -> u64 {
    if kind != FileKind::JournalSegment || layout.used() == 0 {
        return random.random_range(0..layout.length());
    }
    let wanted = SEGMENT_REGIONS[random.random_range(0..SEGMENT_REGIONS.len())];
    let range = match wanted {
        FileRegion::SegmentHead => 0..48,
        // As far back as the last two frames may reach, nearly always.
        FileRegion::LastFrames => layout.used().saturating_sub(8192)..layout.used(),
        FileRegion::Unused => layout.used().min(layout.length() - 1)..layout.length(),
        _ => 0..layout.used(),
    };
    let drawn =
        (0..DRAWS).map(|_| random.random_range(range.clone())).find(|at| layout.region(*at) == wanted);
    drawn.unwrap_or_else(|| random.random_range(0..layout.length()))
}

/// Every file below `data`, as a path below it, in the order of names. Blocks.
///
/// # Errors
/// A directory cannot be read.
pub fn files(data: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let place = data.join(&directory);
        for entry in std::fs::read_dir(&place).with_context(|| format!("cannot read {}", place.display()))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            match entry.file_type()? {
                kind if kind.is_dir() => directories.push(path),
                kind if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_flip_changes_one_bit_and_back() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("log")).unwrap();
        let path = directory.path().join("log/db");
        let before: Vec<u8> = (0..=255).collect();
        std::fs::write(&path, &before).unwrap();
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..50 {
            let flip = Flip::draw(directory.path(), FileKind::SledData, &mut random).unwrap().unwrap();
            flip.apply(directory.path()).unwrap();
            let after = std::fs::read(&path).unwrap();
            let bits: u32 = before.iter().zip(&after).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!((bits, after.len()), (1, before.len()), "{flip}");
            flip.apply(directory.path()).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_bit() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("identity.json"), "{\"node\":1}").unwrap();
        let draw = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            Flip::draw(directory.path(), FileKind::Identity, &mut random).unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert!((2..20).any(|seed| draw(seed) != draw(1)));
        assert_eq!(
            Flip::draw(directory.path(), FileKind::Snapshot, &mut StdRng::seed_from_u64(1)).unwrap(),
            None
        );
    }
}
