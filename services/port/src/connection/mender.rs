//! The state machine that reads a client's half of a connection.

use bytes::BytesMut;

use super::block::{Malformed, Rewriter};
use super::frame::{
    CONTINUATION, END_HEADERS, END_STREAM, HEAD_BYTES, HEADERS, Head, PAYLOAD_BYTES_MAX, PREFACE, fragment,
    put_block,
};

/// Bytes of one header block with its frame heads. h2 takes far less.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Where in the connection the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Preface,
    /// At the head of a frame.
    Head,
    /// In a frame that goes through as it is.
    Payload {
        left: usize,
    },
    /// Nothing is looked at any more.
    Passing,
}

/// A header block whose end has not come yet.
struct OpenBlock {
    stream: u32,
    end_stream: bool,
    /// The frames as they came.
    frames: BytesMut,
    /// Their fragments, put together.
    block: BytesMut,
}

/// Reads bytes and writes the bytes that h2 is to see.
pub(super) struct Mender {
    stage: Stage,
    open: Option<OpenBlock>,
    /// Set once the first block has shown that this connection must be rewritten.
    rewriter: Option<Rewriter>,
}

impl Mender {
    pub(super) fn new() -> Self {
        Self { stage: Stage::Preface, open: None, rewriter: None }
    }

    /// Whether all further bytes go through untouched.
    pub(super) fn is_passing(&self) -> bool {
        self.stage == Stage::Passing
    }

    /// Whether the client has begun to speak.
    pub(super) fn has_preface(&self) -> bool {
        self.stage != Stage::Preface
    }

    /// Whether its first call has come.
    pub(super) fn has_call(&self) -> bool {
        self.is_passing() || self.rewriter.is_some()
    }

    /// Moves as much of `input` to `out` as can be judged.
    pub(super) fn feed(&mut self, input: &mut BytesMut, out: &mut BytesMut) -> Result<(), Malformed> {
        loop {
            let moved = match self.stage {
                Stage::Preface => self.preface(input, out),
                Stage::Head => self.frame(input, out)?,
                Stage::Payload { left } => self.payload(left, input, out),
                Stage::Passing => {
                    out.unsplit(input.split());
                    return Ok(());
                }
            };
            if !moved {
                return Ok(());
            }
        }
    }

    /// The client sends no more: whatever is held back goes to h2, which knows what to say of it.
    pub(super) fn end(&mut self, input: &mut BytesMut, out: &mut BytesMut) {
        if self.rewriter.is_none() {
            self.pass(out);
            out.unsplit(input.split());
        }
    }

    fn preface(&mut self, input: &mut BytesMut, out: &mut BytesMut) -> bool {
        let seen = input.len().min(PREFACE.len());
        if input[..seen] != PREFACE[..seen] {
            self.stage = Stage::Passing;
            return true;
        }
        if seen < PREFACE.len() {
            return false;
        }
        out.unsplit(input.split_to(PREFACE.len()));
        self.stage = Stage::Head;
        true
    }

    fn payload(&mut self, left: usize, input: &mut BytesMut, out: &mut BytesMut) -> bool {
        let here = left.min(input.len());
        out.unsplit(input.split_to(here));
        self.stage = if here == left { Stage::Head } else { Stage::Payload { left: left - here } };
        here > 0 || left == 0
    }

    fn frame(&mut self, input: &mut BytesMut, out: &mut BytesMut) -> Result<bool, Malformed> {
        let Some(head) = Head::peek(input) else {
            return Ok(false);
        };
        let expected = match &self.open {
            Some(open) => head.kind == CONTINUATION && head.stream == open.stream,
            None => head.kind != CONTINUATION,
        };
        if !expected {
            return self.give_up("a frame that does not continue it", out);
        }
        if head.kind != HEADERS && head.kind != CONTINUATION {
            out.unsplit(input.split_to(HEAD_BYTES));
            self.stage = Stage::Payload { left: head.payload_bytes };
            return Ok(true);
        }
        if head.payload_bytes > PAYLOAD_BYTES_MAX {
            return self.give_up("a frame larger than agreed", out);
        }
        if input.len() < HEAD_BYTES + head.payload_bytes {
            return Ok(false);
        }
        let frame = input.split_to(HEAD_BYTES + head.payload_bytes);
        self.header_frame(head, frame, out)
    }

    fn header_frame(&mut self, head: Head, frame: BytesMut, out: &mut BytesMut) -> Result<bool, Malformed> {
        let open = self.open.get_or_insert_with(|| OpenBlock {
            stream: head.stream,
            end_stream: head.has(END_STREAM),
            frames: BytesMut::new(),
            block: BytesMut::new(),
        });
        let fits = match fragment(head, &frame[HEAD_BYTES..]) {
            Some(fragment) => {
                open.block.extend_from_slice(fragment);
                true
            }
            None => false,
        };
        open.frames.unsplit(frame);
        if !fits {
            return self.give_up("padding beyond the frame", out);
        }
        if open.frames.len() > BLOCK_BYTES_MAX {
            return self.give_up("too large", out);
        }
        if head.has(END_HEADERS) {
            self.close_block(out)?;
        }
        Ok(true)
    }

    fn close_block(&mut self, out: &mut BytesMut) -> Result<(), Malformed> {
        let open = self.open.take().expect("a block ends in the frame that was just added to it");
        if let Some(rewriter) = &mut self.rewriter {
            let rewritten = rewriter.rewrite(&open.block)?;
            put_block(open.stream, open.end_stream, &rewritten.block, out);
            return Ok(());
        }
        let mut rewriter = Rewriter::new();
        match rewriter.rewrite(&open.block) {
            Ok(rewritten) if rewritten.mended => {
                put_block(open.stream, open.end_stream, &rewritten.block, out);
                self.rewriter = Some(rewriter);
            }
            // What cannot be decoded is for h2 to refuse: it tells the client why.
            Ok(_) | Err(_) => {
                self.open = Some(open);
                self.pass(out);
            }
        }
        Ok(())
    }

    /// Something is wrong with the connection. As long as nothing was rewritten h2 may judge; after
    /// that its view and the client's differ, and the connection must end.
    fn give_up(&mut self, problem: &str, out: &mut BytesMut) -> Result<bool, Malformed> {
        if self.rewriter.is_some() {
            return Err(Malformed(problem.to_owned()));
        }
        self.pass(out);
        Ok(true)
    }

    fn pass(&mut self, out: &mut BytesMut) {
        if let Some(open) = self.open.take() {
            out.unsplit(open.frames);
        }
        self.stage = Stage::Passing;
    }
}

#[cfg(test)]
#[path = "mender_test.rs"]
mod tests;
