//! The protocol between an object store and processes of its machine.

use crate::source::Source;
use crate::target::Target;
use crate::{message, mutate, pieces, runtime};

/// What a process says to its store.
pub(crate) const FRAMES: Target = Target {
    name: "store-frames",
    what: "requests of processes to the object store of their machine",
    generate: |source| generate(source, "tripod.v1.LocalRequest"),
    run: |input| runtime::run(tripod_objstore::fuzzing::converse(&joined(input))),
};

/// What a store says to a process.
pub(crate) const REPLIES: Target = Target {
    name: "store-replies",
    what: "replies of an object store, as a process of its machine reads them",
    generate: |source| generate(source, "tripod.v1.LocalReply"),
    run: |input| runtime::run(tripod_objstore::fuzzing::read_replies(&joined(input))),
};

fn generate(source: &mut Source, name: &str) -> Vec<u8> {
    let mut frames = Vec::new();
    if name.ends_with("Request") && !source.one_in(8) {
        // A hello: nothing is answered before one.
        frames.push(framed(&[0x08, 1, 0x12, 2, 0x08, 1]));
    }
    for _ in 0..1 + source.below(12) {
        let mut message = message::message(source, name);
        if source.one_in(8) {
            mutate::mutate(source, &mut message);
        }
        frames.push(framed(&message));
    }
    if source.one_in(8) {
        let at = source.below(frames.len());
        mutate::mutate(source, &mut frames[at]);
    }
    pieces::join(0, &frames)
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("small").to_le_bytes();
    [&length[..], message].concat()
}

fn joined(input: &[u8]) -> Vec<u8> {
    pieces::split(input).1.concat()
}
