//! What nodes say to each other.

use tripod_raft::fuzzing::{self, PEER_MESSAGES};

use crate::mutate;
use crate::source::Source;
use crate::target::Target;
use crate::value::Drawn;

/// The first byte says which message it is.
pub(crate) const MESSAGES: Target = Target {
    name: "peer-messages",
    what: "appends, votes, offers of snapshots, reports and answers of other nodes",
    generate,
    run,
};

fn generate(source: &mut Source) -> Vec<u8> {
    loop {
        let kind = u8::try_from(source.below(usize::from(PEER_MESSAGES))).expect("few kinds");
        if let Some(mut message) = fuzzing::peer_message(kind, Drawn::new(source)) {
            if source.one_in(2) {
                mutate::mutate(source, &mut message);
            }
            message.insert(0, kind);
            return message;
        }
    }
}

fn run(input: &[u8]) {
    if let Some((&kind, message)) = input.split_first() {
        fuzzing::hear(kind, message);
    }
}
