//! Writing a snapshot file.

use std::io::{self, BufWriter, Write};

use tripod_state::State;
use xxhash_rust::xxh3::Xxh3;

use super::stream::BlobStream;
use super::{
    FRAME_BYTES, Header, KIND_HEADER, KIND_RECORDS, KIND_TRAILER, MAGIC, TRAILER_BYTES, frame_checksum,
};
use crate::base::codec;
use crate::disk::Files;

/// Writes a snapshot durably: complete under `name`, or not there at all. Blocks, also on the disk.
pub(super) fn write(files: &dyn Files, name: &str, header: &Header, state: &State) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let written = write_unnamed(files, &temporary, header, state);
    let written = written.and_then(|()| put_in_place(files, &temporary, name));
    if written.is_err() {
        // On a full disk what is left of it would keep the next attempt from succeeding.
        let _ = files.remove(&temporary);
    }
    written
}

fn write_unnamed(files: &dyn Files, temporary: &str, header: &Header, state: &State) -> io::Result<()> {
    let blob = BlobStream::new(files.create(temporary)?);
    write_frames(blob, header, state)?.blob().sync_data()
}

/// Writes all frames of a snapshot. Blocks.
pub(super) fn write_frames<W: Write>(out: W, header: &Header, state: &State) -> io::Result<W> {
    let mut out = FrameWriter::new(BufWriter::with_capacity(FRAME_BYTES, out));
    out.raw(MAGIC)?;
    out.raw(&header.layout().to_le_bytes())?;
    out.frame(KIND_HEADER, &header.encode())?;
    let mut body = Vec::with_capacity(FRAME_BYTES);
    for record in state.records() {
        let start = body.len();
        body.extend_from_slice(&[0; 4]);
        codec::encode_onto(&mut body, &record);
        let length = u32::try_from(body.len() - start - 4).expect("a record is below 4 GiB");
        body[start..start + 4].copy_from_slice(&length.to_le_bytes());
        if body.len() >= FRAME_BYTES {
            out.frame(KIND_RECORDS, &body)?;
            body.clear();
        }
    }
    if !body.is_empty() {
        out.frame(KIND_RECORDS, &body)?;
    }
    out.finish()
}

/// [`write_frames`] with these bodies of records in the place of a state's.
pub(super) fn write_bodies<W: Write>(out: W, header: &Header, bodies: &[&[u8]]) -> io::Result<W> {
    let mut out = FrameWriter::new(BufWriter::with_capacity(FRAME_BYTES, out));
    out.raw(MAGIC)?;
    out.raw(&header.layout().to_le_bytes())?;
    out.frame(KIND_HEADER, &header.encode())?;
    bodies.iter().try_for_each(|body| out.frame(KIND_RECORDS, body))?;
    out.finish()
}

/// Gives a complete, synced file its final name, durably.
pub(super) fn put_in_place(files: &dyn Files, from: &str, to: &str) -> io::Result<()> {
    files.rename(from, to)?;
    files.sync_dir()
}

/// Counts and hashes what passes.
struct FrameWriter<W: Write> {
    out: BufWriter<W>,
    hash: Xxh3,
    bytes: u64,
    frames: u64,
}

impl<W: Write> FrameWriter<W> {
    fn new(out: BufWriter<W>) -> Self {
        Self { out, hash: Xxh3::new(), bytes: 0, frames: 0 }
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).expect("a frame is below 4 GiB").to_le_bytes();
        self.raw(&[kind])?;
        self.raw(&length)?;
        self.raw(&frame_checksum(kind, length, body).to_le_bytes())?;
        self.raw(body)?;
        self.frames += 1;
        Ok(())
    }

    fn finish(mut self) -> io::Result<W> {
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        for number in [self.frames, self.bytes, self.hash.digest()] {
            trailer.extend_from_slice(&number.to_le_bytes());
        }
        self.frame(KIND_TRAILER, &trailer)?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
