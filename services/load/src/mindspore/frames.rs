//! The bytes of both protocols.

use anyhow::{Context as _, ensure};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use tripod_proto::mindspore::ps_core::{MessageMeta, NodeCommand};

/// What a frame of the dynamic cluster begins with.
const MAGIC: &[u8] = b"RPC0";
const RPC0_HEADER_BYTES: usize = 20;
const PS_HEADER_BYTES: usize = 16;
/// No answer is longer: the list of all nodes of the largest cluster has less.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// A frame of one of the protocols.
pub(super) trait Frame: Sized {
    fn encode(&self) -> BytesMut;

    /// Takes the first frame, if all of it is there.
    ///
    /// # Errors
    /// No frame begins so.
    fn take(buffer: &mut BytesMut) -> anyhow::Result<Option<Self>>;
}

/// A frame of the dynamic cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rpc0 {
    pub(super) name: Bytes,
    pub(super) body: Bytes,
}

/// A frame of the parameter server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ps {
    /// Raw, or protobuf.
    pub(super) format: u32,
    pub(super) meta: MessageMeta,
    pub(super) payload: Bytes,
}

/// How nodes write what they answer to their scheduler.
pub(super) const RAW: u32 = 0;
/// How nodes write what they ask.
pub(super) const PROTOBUF: u32 = 1;

impl Ps {
    pub(super) fn asking(command: NodeCommand, request_id: u64, payload: Bytes) -> Self {
        let meta = MessageMeta { cmd: command.into(), request_id, ..MessageMeta::default() };
        Self { format: PROTOBUF, meta, payload }
    }

    /// The answer to this frame: the same meta, and nothing new.
    pub(super) fn echo(&self, payload: Bytes) -> Self {
        Self { format: RAW, meta: self.meta.clone(), payload }
    }
}

impl Frame for Rpc0 {
    fn encode(&self) -> BytesMut {
        // To nobody in particular and from nobody, as workers write it: nobody reads either.
        let parts: [&[u8]; 4] = [&self.name, b"@", b"@", &self.body];
        let mut frame = BytesMut::with_capacity(RPC0_HEADER_BYTES + self.name.len() + self.body.len() + 2);
        frame.put_slice(MAGIC);
        for part in parts {
            frame.put_u32(u32::try_from(part.len()).expect("no part of what is played has 4 GiB"));
        }
        for part in parts {
            frame.put_slice(part);
        }
        frame
    }

    fn take(buffer: &mut BytesMut) -> anyhow::Result<Option<Self>> {
        let Some(mut header) = buffer.get(..RPC0_HEADER_BYTES) else { return Ok(None) };
        ensure!(header.starts_with(MAGIC), "an answer begins with {:02x?}", &header[..MAGIC.len()]);
        header.advance(MAGIC.len());
        let lengths = [(); 4].map(|()| header.get_u32() as usize);
        let whole = RPC0_HEADER_BYTES + lengths.iter().sum::<usize>();
        ensure!(whole <= FRAME_BYTES_MAX, "an answer of {whole} bytes");
        if buffer.len() < whole {
            return Ok(None);
        }
        buffer.advance(RPC0_HEADER_BYTES);
        let [name, _, _, body] = lengths.map(|bytes| buffer.split_to(bytes).freeze());
        Ok(Some(Self { name, body }))
    }
}

impl Frame for Ps {
    fn encode(&self) -> BytesMut {
        let meta = self.meta.encode_to_vec();
        let message = meta.len() + self.payload.len();
        let mut frame = BytesMut::with_capacity(PS_HEADER_BYTES + message);
        frame.put_u32_le(self.format);
        frame.put_u32_le(u32::try_from(meta.len()).expect("a meta is short"));
        frame.put_u64_le(message as u64);
        frame.put_slice(&meta);
        frame.put_slice(&self.payload);
        frame
    }

    fn take(buffer: &mut BytesMut) -> anyhow::Result<Option<Self>> {
        let Some(mut header) = buffer.get(..PS_HEADER_BYTES) else { return Ok(None) };
        let (format, meta, message) = (header.get_u32_le(), header.get_u32_le(), header.get_u64_le());
        let (meta, message) = (meta as usize, usize::try_from(message).unwrap_or(usize::MAX));
        ensure!(format <= 2 && meta <= message && message <= FRAME_BYTES_MAX, "no header of a frame");
        if buffer.len() < PS_HEADER_BYTES + message {
            return Ok(None);
        }
        buffer.advance(PS_HEADER_BYTES);
        let mut payload = buffer.split_to(message).freeze();
        let meta = MessageMeta::decode(payload.split_to(meta)).context("a meta")?;
        Ok(Some(Self { format, meta, payload }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    /// As a real node of 2.0 wrote it.
    #[test]
    fn a_heartbeat_has_the_bytes_of_a_real_node() {
        let real = bytes("01000000 04000000 0b00000000000000 0802 1001 0a05 7372762d61");
        let payload = Bytes::from_static(b"\x0a\x05srv-a");
        let frame = Ps::asking(NodeCommand::Heartbeat, 1, payload);
        assert_eq!(frame.encode(), real);
    }

    #[test]
    fn a_frame_is_read_in_any_pieces_and_two_are_told_apart() {
        let ps = Ps::asking(NodeCommand::SendEvent, 3, Bytes::from_static(b"\x08\x07"));
        let rpc0 = Rpc0 { name: Bytes::from_static(b"3"), body: Bytes::from_static(b"body") };
        pieces(&ps);
        pieces(&rpc0);
    }

    fn pieces<F: Frame + PartialEq + std::fmt::Debug>(frame: &F) {
        let one = frame.encode();
        let mut buffer = BytesMut::new();
        for byte in one.iter().chain(&one[..one.len() - 1]) {
            if buffer.len() < one.len() {
                assert_eq!(F::take(&mut buffer.clone()).unwrap(), None);
            }
            buffer.put_u8(*byte);
        }
        assert_eq!(F::take(&mut buffer).unwrap().as_ref(), Some(frame));
        assert_eq!(F::take(&mut buffer).unwrap(), None, "the second lacks a byte");
        buffer.put_u8(one[one.len() - 1]);
        assert_eq!(F::take(&mut buffer).unwrap().as_ref(), Some(frame));
        assert!(buffer.is_empty());
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert!(Rpc0::take(&mut BytesMut::from(&[b'x'; 20][..])).is_err());
        assert!(Ps::take(&mut BytesMut::from(&[9; 16][..])).is_err());
    }
}
