//! What must be known of a frame to pass it on.

use std::time::Duration;

use bytes::Bytes;
use tripod_mindspore_wire::{Broken, Command, Frame, Mark, Name, Word, ps, rpc0};
use tripod_port::LEFT_TIME;
use tripod_proto::mindspore::ps_core::NodeCommand;

use crate::calls::Repeat;

/// A frame of either protocol, as an agent sees it.
pub(super) trait Passed: Frame + Send + Sync {
    /// How it may be sent again when it was sent and not answered.
    ///
    /// # Errors
    /// A node could not read it.
    fn repeat(&self) -> Result<Repeat, Broken>;

    /// Whether it is given up a while after its client has gone: it changes an entry that nodes leave for each other, or takes a
    /// place of the cluster.
    fn ends_with_client(&self) -> bool;

    /// How long after its client has gone it is given up; `None`: never. What changes something is finished, as a node would
    /// that has it already. What a client only wanted to know is not, nor a registration or a change of an entry: the process
    /// that comes in its place may have registered or written since.
    ///
    /// # Errors
    /// A node could not read it.
    fn patience(&self) -> Result<Option<Duration>, Broken> {
        Ok(match self.repeat()? {
            _ if self.ends_with_client() => Some(LEFT_TIME),
            Repeat::Free => Some(Duration::ZERO),
            Repeat::Stamped | Repeat::Recognised => None,
        })
    }

    /// Its bytes on the way to a node.
    ///
    /// # Errors
    /// A node could not read it.
    fn attempt(&self, mark: Mark) -> Result<Bytes, Broken>;

    /// What a node says to the agent alone.
    fn told(&self) -> Option<Word>;

    /// Its bytes on the way to a client.
    fn bytes(&self) -> Bytes;
}

impl Passed for rpc0::Frame {
    /// A node that registers again is known by its id. A late copy of a write must not overwrite what was written since.
    fn repeat(&self) -> Result<Repeat, Broken> {
        Ok(match Name::asked(&self.name) {
            Some(Name::Registration) => Repeat::Recognised,
            Some(Name::Unregistration | Name::WriteMetadata | Name::DeleteMetadata) => Repeat::Stamped,
            _ => Repeat::Free,
        })
    }

    fn ends_with_client(&self) -> bool {
        let name = Name::asked(&self.name);
        matches!(name, Some(Name::Registration | Name::WriteMetadata | Name::DeleteMetadata))
    }

    fn attempt(&self, mark: Mark) -> Result<Bytes, Broken> {
        Ok(self.marked(mark).encode())
    }

    fn told(&self) -> Option<Word> {
        self.word()
    }

    fn bytes(&self) -> Bytes {
        self.encode()
    }
}

impl Passed for ps::Parts {
    /// A node that registers again is the same one: it is known by its id and where it listens. An event would reach all
    /// twice, and a report that comes late would count for the next scaling.
    fn repeat(&self) -> Result<Repeat, Broken> {
        Ok(match self.command()? {
            Command::Known(NodeCommand::Register) => Repeat::Recognised,
            Command::Known(
                NodeCommand::Finish
                | NodeCommand::ScaleOutDone
                | NodeCommand::ScaleInDone
                | NodeCommand::SendEvent,
            ) => Repeat::Stamped,
            Command::Known(_) | Command::Unknown(_) => Repeat::Free,
        })
    }

    fn ends_with_client(&self) -> bool {
        matches!(self.command(), Ok(Command::Known(NodeCommand::Register)))
    }

    fn attempt(&self, mark: Mark) -> Result<Bytes, Broken> {
        Ok(self.marked(mark)?.encode())
    }

    fn told(&self) -> Option<Word> {
        self.word()
    }

    fn bytes(&self) -> Bytes {
        self.encode()
    }
}

#[cfg(test)]
mod tests {
    use tripod_mindspore_wire::ps::Format;

    use super::*;

    #[test]
    fn what_changes_something_is_stamped_and_what_looks_is_free() {
        let frame = |name: &'static str| {
            let none = Bytes::new;
            rpc0::Frame { name: name.into(), to: none(), from: none(), body: none() }
        };
        for (name, repeat) in [
            ("0", Repeat::Recognised),
            ("1", Repeat::Stamped),
            ("2", Repeat::Free),
            ("6", Repeat::Stamped),
            ("7", Repeat::Free),
            ("8", Repeat::Stamped),
            ("9", Repeat::Free),
            ("a_user's", Repeat::Free),
        ] {
            assert_eq!(frame(name).repeat(), Ok(repeat), "{name}");
            assert_eq!(frame(name).ends_with_client(), ["0", "6", "8"].contains(&name), "{name}");
            let patience = match name {
                "0" | "6" | "8" => Some(LEFT_TIME),
                "1" => None,
                _ => Some(Duration::ZERO),
            };
            assert_eq!(frame(name).patience(), Ok(patience), "{name}");
        }
        // Field 1, a number below 128.
        let commanded = |command: u8| {
            let meta = Bytes::from(vec![8, command]);
            ps::Parts { format: Format::Raw, meta, payload: Bytes::new() }
        };
        for (command, repeat) in [
            (1, Repeat::Recognised),
            (2, Repeat::Free),
            (4, Repeat::Free),
            (5, Repeat::Stamped),
            (10, Repeat::Stamped),
            (11, Repeat::Stamped),
            (12, Repeat::Stamped),
            (77, Repeat::Free),
        ] {
            assert_eq!(commanded(command).repeat(), Ok(repeat), "{command}");
            assert_eq!(commanded(command).ends_with_client(), command == 1, "{command}");
        }
    }
}
