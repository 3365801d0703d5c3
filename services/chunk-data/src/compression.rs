//! How bytes are compressed, each message by itself.

use std::io::{self, Read, Write as _};

use bytes::Bytes;
use tripod_proto::mars::v1::Compression;

/// The first of a client's list that is known here; else not compressed, which is never an error.
pub(crate) fn first_known(wanted: &[i32]) -> Compression {
    wanted.iter().find_map(|number| Compression::try_from(*number).ok()).unwrap_or(Compression::None)
}

/// The bytes as one whole frame of that kind.
///
/// # Errors
/// None that is known: what is written to memory.
pub(crate) fn compress(bytes: Bytes, how: Compression) -> io::Result<Bytes> {
    Ok(match how {
        Compression::None => bytes,
        Compression::Lz4Frame => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::with_capacity(bytes.len() / 2));
            encoder.write_all(&bytes)?;
            encoder.finish().map_err(io::Error::other)?.into()
        }
        Compression::Zstd => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(&bytes[..], level).into()
        }
        Compression::Gzip => {
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(bytes.len() / 2), level);
            encoder.write_all(&bytes)?;
            encoder.finish()?.into()
        }
    })
}

/// What was compressed, of `bytes_max` bytes at most.
///
/// # Errors
/// It is no such frame, or more than that.
pub(crate) fn decompress(bytes: Bytes, how: Compression, bytes_max: usize) -> io::Result<Bytes> {
    match how {
        Compression::None if bytes.len() > bytes_max => Err(too_much(bytes_max)),
        Compression::None => Ok(bytes),
        Compression::Lz4Frame => read(lz4_flex::frame::FrameDecoder::new(&bytes[..]), bytes_max),
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[..]).map_err(io::Error::other)?;
            read(decoder, bytes_max)
        }
        Compression::Gzip => read(flate2::read::MultiGzDecoder::new(&bytes[..]), bytes_max),
    }
}

fn read(decoder: impl Read, bytes_max: usize) -> io::Result<Bytes> {
    let mut read = Vec::new();
    decoder.take(bytes_max as u64 + 1).read_to_end(&mut read)?;
    if read.len() > bytes_max { Err(too_much(bytes_max)) } else { Ok(read.into()) }
}

fn too_much(bytes_max: usize) -> io::Error {
    io::Error::other(format!("it is more than {bytes_max} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compression; 4] =
        [Compression::None, Compression::Lz4Frame, Compression::Zstd, Compression::Gzip];

    fn pattern(len: usize) -> Bytes {
        (0..len).map(|at| u8::try_from(at * at % 7 + at / 1000 % 250).unwrap_or(0)).collect::<Vec<_>>().into()
    }

    #[test]
    fn what_is_compressed_is_read_again_and_is_less() {
        for how in ALL {
            for len in [0, 1, 1000, 1 << 20] {
                let bytes = pattern(len);
                let small = compress(bytes.clone(), how).unwrap();
                assert!(how == Compression::None || len < 1000 || small.len() < len, "{how:?} {len}");
                assert_eq!(decompress(small, how, len).unwrap(), bytes, "{how:?} {len}");
            }
        }
    }

    #[test]
    fn more_than_is_allowed_is_refused_before_it_takes_memory() {
        for how in ALL {
            let small = compress(vec![0; 1 << 20].into(), how).unwrap();
            assert!(decompress(small, how, (1 << 20) - 1).is_err(), "{how:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        for how in [Compression::Lz4Frame, Compression::Zstd, Compression::Gzip] {
            assert!(decompress(Bytes::from_static(b"no frame of any kind"), how, 100).is_err(), "{how:?}");
        }
    }

    #[test]
    fn the_first_known_one_is_taken() {
        assert_eq!(first_known(&[77, 3, 1]), Compression::Gzip);
        assert_eq!(first_known(&[77]), Compression::None);
        assert_eq!(first_known(&[]), Compression::None);
    }
}
