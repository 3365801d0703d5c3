//! What a frame has, before it is decoded: a byte or two of a message can become a hundred in memory, so nothing is made of
//! a list that is too long.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use tonic::Status;

use super::bounds::{METADATA_BYTES_MAX, METADATA_MAX, OPS_A_FRAME_MAX, PATH_BYTES_MAX, PATHS_MAX};
use super::refused;

/// Numbers of fields, as in `calls.proto`.
const HELLO: u32 = 1;
const PATHS: u32 = 2;
const OPS: u32 = 3;
const ANSWERS: u32 = 4;
const BYE: u32 = 6;
const HELLO_METADATA: u32 = 1;
const OP_METADATA: u32 = 7;

/// # Errors
/// The frame is no message, or has more of something than a client may send.
pub(super) fn check(frame: &[u8]) -> Result<(), Status> {
    let (mut ops, mut paths, mut hello) = (0, 0, Metadata::of(HELLO_METADATA, "a hello"));
    each_part(frame, |number, content| match number {
        HELLO => hello.count(content),
        PATHS => {
            paths += 1;
            if paths > PATHS_MAX {
                return Err(refused::misused(format_args!(
                    "a stream names {PATHS_MAX} paths at most; open another one"
                )));
            }
            let length = content.len();
            if length > PATH_BYTES_MAX {
                return Err(refused::misused(format_args!(
                    "a path has {length} bytes; it may have {PATH_BYTES_MAX}"
                )));
            }
            Ok(())
        }
        OPS => {
            ops += 1;
            if ops > OPS_A_FRAME_MAX {
                return Err(refused::misused(format_args!(
                    "a frame has more than {OPS_A_FRAME_MAX} ops; send them by several"
                )));
            }
            Metadata::of(OP_METADATA, "an op").count(content)
        }
        ANSWERS | BYE => Err(refused::misused("only a node says answers, grants and bye; send ops")),
        _ => Ok(()),
    })
}

/// Counts the metadata of one message.
struct Metadata {
    field: u32,
    whose: &'static str,
    entries: usize,
    bytes: usize,
}

impl Metadata {
    fn of(field: u32, whose: &'static str) -> Self {
        Self { field, whose, entries: 0, bytes: 0 }
    }

    fn count(&mut self, message: &[u8]) -> Result<(), Status> {
        each_part(message, |number, content| {
            if number != self.field {
                return Ok(());
            }
            self.entries += 1;
            self.bytes += content.len();
            let whose = self.whose;
            if self.entries > METADATA_MAX {
                return Err(refused::misused(format_args!(
                    "{whose} has more than {METADATA_MAX} entries of metadata; send fewer"
                )));
            }
            if self.bytes > METADATA_BYTES_MAX {
                return Err(refused::misused(format_args!(
                    "{whose} has more than {METADATA_BYTES_MAX} bytes of metadata; send fewer"
                )));
            }
            Ok(())
        })
    }
}

/// Gives each field that has a length, with its number and what is in it.
fn each_part<'a>(
    mut bytes: &'a [u8],
    mut part: impl FnMut(u32, &'a [u8]) -> Result<(), Status>,
) -> Result<(), Status> {
    while !bytes.is_empty() {
        let (number, kind) = decode_key(&mut bytes).map_err(|error| undecodable(&error))?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, number, &mut bytes, DecodeContext::default())
                .map_err(|error| undecodable(&error))?;
            continue;
        }
        let length = decode_varint(&mut bytes).map_err(|error| undecodable(&error))?;
        let split = usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length));
        let Some((content, rest)) = split else {
            return Err(refused::misused("a frame ends within a field; send it whole"));
        };
        bytes = rest;
        part(number, content)?;
    }
    Ok(())
}

/// The frame is no message.
pub(super) fn undecodable(error: &prost::DecodeError) -> Status {
    let error = error.to_string();
    refused::misused(format_args!("a frame cannot be decoded: {error}"))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tonic::Code;
    use tripod_proto::tripod::v1 as wire;

    use super::*;

    fn refusal(frame: &wire::Frame) -> String {
        let status = check(&frame.encode_to_vec()).expect_err("it is refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    }

    fn metadata(key: &str, value: &str) -> wire::Metadata {
        wire::Metadata { key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn a_frame_within_the_bounds_is_let_through() {
        let op = wire::Op { metadata: vec![metadata("k", "v"); METADATA_MAX], ..Default::default() };
        let frame = wire::Frame {
            hello: Some(wire::Hello {
                metadata: vec![metadata("k", "v"); METADATA_MAX],
                ..Default::default()
            }),
            paths: vec!["p".repeat(PATH_BYTES_MAX); PATHS_MAX],
            ops: vec![op; OPS_A_FRAME_MAX],
            ..Default::default()
        };
        check(&frame.encode_to_vec()).expect("it is within them");
        check(&[]).expect("an empty one is, too");
    }

    #[test]
    fn what_is_one_beyond_a_bound_is_refused_by_its_name() {
        let of_ops = |ops| wire::Frame { ops, ..Default::default() };
        let of_paths = |paths| wire::Frame { paths, ..Default::default() };
        let long = metadata("k", &"v".repeat(METADATA_BYTES_MAX));
        let hello = wire::Hello { metadata: vec![metadata("", ""); METADATA_MAX + 1], ..Default::default() };
        for (frame, named) in [
            (of_ops(vec![wire::Op::default(); OPS_A_FRAME_MAX + 1]), "256 ops"),
            (of_paths(vec![String::new(); PATHS_MAX + 1]), "256 paths"),
            (of_paths(vec!["p".repeat(PATH_BYTES_MAX + 1)]), "257 bytes"),
            (of_ops(vec![wire::Op { metadata: vec![long], ..Default::default() }]), "bytes of metadata"),
            (wire::Frame { hello: Some(hello), ..Default::default() }, "32 entries of metadata"),
            (wire::Frame { answers: vec![wire::Answer::default()], ..Default::default() }, "only a node"),
            (wire::Frame { bye: Some(wire::Bye {}), ..Default::default() }, "only a node"),
        ] {
            let refusal = refusal(&frame);
            assert!(refusal.contains(named), "{refusal}");
        }
    }

    #[test]
    fn a_megabyte_of_empty_ops_is_refused_before_anything_is_made_of_it() {
        let frame = [0x1a, 0].repeat(1 << 19);
        let status = check(&frame).expect_err("they are too many");
        assert!(status.message().contains("256 ops"), "{status:?}");
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        for bytes in [&[0x1a, 5, 0][..], &[0xff; 12], &[0x1a], &[0x07], &[0x1a, 0xff, 0xff, 0xff, 0xff, 0x7f]]
        {
            check(bytes).expect_err("it is no message");
        }
    }
}
