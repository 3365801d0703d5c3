//! A file as frames, one behind the other. A frame is begun only when the one before it is durable, so a crash can have
//! spoilt the last one and nothing else.
//!
//! ```text
//! "TPMR" | u32 bytes of the content | u64 number, from 0 | u32 crc32c of the content | u32 crc32c of the 20 bytes before
//! ```

/// Bytes before a frame's content.
pub(super) const HEAD_BYTES: usize = 24;
const MAGIC: [u8; 4] = *b"TPMR";

/// The head of a frame.
pub(super) fn head(number: u64, content: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&MAGIC);
    head[4..8].copy_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..20].copy_from_slice(&crc32c::crc32c(content).to_le_bytes());
    let check = crc32c::crc32c(&head[..20]);
    head[20..].copy_from_slice(&check.to_le_bytes());
    head
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    content_bytes: usize,
    number: u64,
    crc32c: u32,
}

/// The head at the beginning of these bytes, if it is a whole one.
fn read_head(bytes: &[u8]) -> Option<Head> {
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
    let word = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    if head[..4] != MAGIC || word(20)? != crc32c::crc32c(&head[..20]) {
        return None;
    }
    let number = u64::from_le_bytes(*head[8..].first_chunk()?);
    Some(Head { content_bytes: usize::try_from(word(4)?).ok()?, number, crc32c: word(16)? })
}

/// What is whole of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scanned<'a> {
    pub(super) contents: Vec<&'a [u8]>,
    /// Where the next frame goes. What is behind it was never durable.
    pub(super) end: usize,
}

/// A frame that was durable is not what was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

/// The frames of a file.
///
/// # Errors
/// [`Damage`] of any but the last frame. Of the last one nobody can tell it from a crash while it was written.
pub(super) fn scan(file: &[u8]) -> Result<Scanned<'_>, Damage> {
    let mut contents = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let rest = &file[at..];
        let number = contents.len() as u64;
        let Some(head) = read_head(rest) else {
            let goes_on = (1..rest.len()).any(|place| {
                rest[place] == MAGIC[0] && read_head(&rest[place..]).is_some_and(|head| head.number > number)
            });
            if goes_on {
                return Err(Damage { at, why: "the head of a frame is damaged, and frames follow it" });
            }
            break;
        };
        if head.number != number {
            return Err(Damage { at, why: "a frame is missing, or there twice" });
        }
        let end = HEAD_BYTES.saturating_add(head.content_bytes);
        let Some(content) = rest.get(HEAD_BYTES..end) else { break };
        if crc32c::crc32c(content) != head.crc32c {
            if rest.len() > end {
                return Err(Damage { at, why: "the content of a frame is damaged, and frames follow it" });
            }
            break;
        }
        contents.push(content);
        at += end;
    }
    Ok(Scanned { contents, end: at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(contents: &[&[u8]]) -> Vec<u8> {
        (0..)
            .zip(contents)
            .flat_map(|(number, content)| [&head(number, content)[..], content].concat())
            .collect()
    }

    const CONTENTS: [&[u8]; 4] = [b"first", b"", b"a third one TPMR", b"last"];

    #[test]
    fn a_file_that_is_cut_anywhere_has_its_whole_frames() {
        let whole = file(&CONTENTS);
        for cut in 0..=whole.len() {
            let scanned = scan(&whole[..cut]).expect("a cut is no damage");
            let fit = (0..=CONTENTS.len()).rev().find(|count| file(&CONTENTS[..*count]).len() <= cut);
            let count = fit.expect("none is the least");
            assert_eq!(scanned.contents, &CONTENTS[..count], "cut at {cut}");
            assert_eq!(scanned.end, file(&CONTENTS[..count]).len());
        }
    }

    #[test]
    fn a_flipped_bit_is_told_unless_it_is_in_the_last_frame() {
        let whole = file(&CONTENTS);
        let last = file(&CONTENTS[..3]).len();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                match scan(&flipped) {
                    Err(damage) => assert!(at < last && damage.at <= at, "{damage:?} for {at}"),
                    Ok(scanned) => assert!(at >= last && scanned.contents == CONTENTS[..3], "{at} bit {bit}"),
                }
            }
        }
    }

    #[test]
    fn what_a_crash_leaves_behind_the_last_frame_is_none() {
        for left in [&[0; 100][..], b"TPMR and other bytes that are no frame"] {
            let mut torn = file(&CONTENTS);
            let end = torn.len();
            torn.extend_from_slice(left);
            assert_eq!(scan(&torn), Ok(Scanned { contents: CONTENTS.to_vec(), end }));
        }
    }

    #[test]
    fn a_frame_that_is_missing_or_there_twice_is_told() {
        let missing = [file(&CONTENTS[..1]), [&head(2, b"x")[..], b"x"].concat()].concat();
        let twice = [file(&CONTENTS[..1]), file(&CONTENTS[..1])].concat();
        for wrong in [missing, twice] {
            assert_eq!(scan(&wrong).expect_err("told").at, 29);
        }
    }
}
