//! What a frame of the parameter server is about.

use tripod_proto::mindspore::ps_core::NodeCommand;

/// A command, known or not: an answer has the same one as its request, whatever that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Known(NodeCommand),
    Unknown(i32),
}

impl From<i32> for Command {
    fn from(number: i32) -> Self {
        NodeCommand::try_from(number).map_or(Self::Unknown(number), Self::Known)
    }
}

impl From<Command> for i32 {
    fn from(command: Command) -> Self {
        match command {
            Command::Known(command) => command.into(),
            Command::Unknown(number) => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_0_to_25_are_known_and_others_are_kept() {
        for number in [-1, 0, 12, 25, 26, i32::MAX] {
            let command = Command::from(number);
            assert_eq!(i32::from(command), number);
            assert_eq!(matches!(command, Command::Known(_)), (0..=25).contains(&number), "{number}");
        }
    }
}
