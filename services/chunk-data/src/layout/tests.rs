//! Chunks are read as they were written, and what is no chunk is refused.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn whole(chunk: &Chunk) -> Bytes {
    chunk.image().concat().into()
}

fn tensor() -> Chunk {
    let values = Buffer::of(Bytes::from((0..48).collect::<Vec<u8>>()));
    Chunk::Tensor { element: Element::F64, shape: vec![2, 3], values }
}

fn frame() -> Chunk {
    let offsets: Vec<u8> = [0_u64, 3, 3, 5].iter().flat_map(|offset| offset.to_le_bytes()).collect();
    let text = Values::Text { offsets: Buffer::of(offsets.into()), text: Buffer::of("abcde".into()) };
    let numbers = Values::Fixed(Element::I32, Buffer::of(vec![7; 12].into()));
    let validity = Some(Buffer::of(vec![1, 0, 1].into()));
    let columns = vec![
        Column { name: "größe".to_owned(), values: numbers, validity: None },
        Column { name: String::new(), values: text, validity },
    ];
    Chunk::Frame { rows: 3, columns }
}

fn all() -> Vec<Chunk> {
    let empty = Chunk::Tensor { element: Element::Bool, shape: vec![0, 7], values: Buffer::of(Bytes::new()) };
    let number =
        Chunk::Tensor { element: Element::I64, shape: vec![], values: Buffer::of(vec![1; 8].into()) };
    let partial = Chunk::Partial { shape: vec![], bytes: Buffer::of("PK and so on".into()) };
    vec![tensor(), frame(), empty, number, partial, Chunk::Frame { rows: 0, columns: Vec::new() }]
}

#[test]
fn chunks_are_read_as_they_were_written() {
    for chunk in all() {
        let read = Chunk::read(&whole(&chunk), 0).expect("a chunk");
        assert_eq!(read, chunk);
        assert!(read.is_whole());
        let (pieces, offset) = chunk.object();
        assert_eq!((Chunk::read(&pieces.concat().into(), offset), offset), (Ok(chunk), 64));
    }
}

/// As the description says, byte for byte: other programs write it, too.
#[test]
fn a_tensor_is_laid_out_as_it_is_described() {
    let mut expected = b"TPCH\x01\0\0\0\x01\x05\x02\0\0\0\0\0".to_vec();
    for word in [2_u64, 3, 64, 48] {
        expected.extend_from_slice(&word.to_le_bytes());
    }
    let values: Vec<u8> = (0..48).collect();
    expected.extend_from_slice(&crc32c::crc32c(&values).to_le_bytes());
    expected.resize(64, 0);
    expected.extend_from_slice(&values);
    assert_eq!(whole(&tensor()), expected);
}

#[test]
fn a_description_may_stand_behind_its_buffers() {
    let image = whole(&tensor());
    let mut object = vec![0; 64];
    object[..48].copy_from_slice(&image[64..]);
    let mut described = image[..56].to_vec();
    // The place of the buffer.
    described[32..40].copy_from_slice(&0_u64.to_le_bytes());
    object.extend_from_slice(&described);
    assert_eq!(Chunk::read(&object.into(), 64), Ok(tensor()));
}

#[test]
fn damage_of_values_is_seen() {
    for chunk in all() {
        let image = whole(&chunk);
        if let Some(last) =
            image.len().checked_sub(1).filter(|_| chunk.shape() != [0] && chunk.shape() != [0, 7])
        {
            let mut damaged = image.to_vec();
            damaged[last] ^= 1;
            assert!(!Chunk::read(&damaged.into(), 0).expect("a chunk").is_whole());
        }
    }
}

#[test]
fn lengths_that_are_not_those_of_the_object_are_refused() {
    for chunk in all() {
        let image = whole(&chunk);
        for len in 0..image.len() {
            assert!(Chunk::read(&image.slice(..len), 0).is_err(), "{len} of {chunk:?}");
        }
        for offset in [1, 4, 8, u64::MAX, u64::MAX - 7] {
            assert!(Chunk::read(&image, offset).is_err(), "at {offset}");
        }
    }
    let refused = |at: usize, bytes: &[u8]| {
        let mut image = whole(&tensor()).to_vec();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        Chunk::read(&image.into(), 0).expect_err("refused").to_string()
    };
    assert!(refused(16, &u64::MAX.to_le_bytes()).contains("are not those of"));
    assert!(refused(32, &u64::MAX.to_le_bytes()).contains("no part of the object"));
    assert!(refused(32, &65_u64.to_le_bytes()).contains("no part of the object"));
    assert!(refused(40, &u64::MAX.to_le_bytes()).contains("no part of the object"));
    assert!(refused(10, &u16::MAX.to_le_bytes()).contains("too many"));
    assert!(refused(12, &u32::MAX.to_le_bytes()).contains("too many"));
    assert!(refused(4, &2_u32.to_le_bytes()).contains("version 2"));
}

proptest! {
    #[test]
    fn no_bytes_do_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), offset in 0_u64..100, kind in 0_u8..5) {
        if bytes.len() > 16 {
            bytes[..9].copy_from_slice(&[b'T', b'P', b'C', b'H', 1, 0, 0, 0, kind]);
        }
        let bytes = Bytes::from(bytes);
        for offset in [0, offset] {
            if let Ok(chunk) = Chunk::read(&bytes, offset) {
                let _ = chunk.is_whole();
                prop_assert_eq!(&Chunk::read(&whole(&chunk), 0).expect("written"), &chunk);
            }
        }
    }

    #[test]
    fn a_flipped_byte_does_no_harm(at in any::<prop::sample::Index>(), flip in 1_u8.., which in 0_usize..6) {
        let mut image = whole(&all()[which]).to_vec();
        let at = at.index(image.len());
        image[at] ^= flip;
        if let Ok(chunk) = Chunk::read(&image.into(), 0) {
            let _ = chunk.is_whole();
        }
    }
}
