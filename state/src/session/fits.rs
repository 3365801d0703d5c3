//! Which commands an answer can belong to.
//!
//! A session of before feature level 5 does not compare commands: whoever uses a number for a second one is given the
//! reply of the first. What is of another kind than the command can have is told from it here, and not in apply, which
//! means the same at each level for ever.

use crate::command::{Answer, Command};
use crate::wait::Ticket;
use crate::{barrier, kv, runtime, task};

impl Command {
    /// Whether the command can have been answered so. Only those are looked at to which clients have given numbers since
    /// before level 5: others are in sessions that compare.
    #[must_use]
    pub fn fits(&self, answer: &Answer) -> bool {
        match self {
            Self::Retried(command) => command.fits(answer),
            Self::By(by) => by.command.fits(answer),
            Self::Task(command) => of_task(command, answer),
            Self::Kv(kv::Command::Delete { .. }) => matches!(answer, Answer::Deleted { .. }),
            Self::Kv(_) => matches!(answer, Answer::Value { .. }),
            Self::Barrier(barrier::Command::Arrive { .. }) => {
                matches!(answer, Answer::BarrierPassed { .. } | Answer::Waiting(Ticket::Barrier { .. }))
            }
            Self::Barrier(barrier::Command::Cancel { .. }) => matches!(answer, Answer::Done),
            Self::Runtime(command) => of_runtime(command, answer),
            _ => true,
        }
    }
}

fn of_task(command: &task::Command, answer: &Answer) -> bool {
    match command {
        task::Command::Register { .. } | task::Command::RegisterFrom { .. } => {
            matches!(answer, Answer::Registered { .. } | Answer::Waiting(Ticket::Register { .. }))
        }
        task::Command::Shutdown { .. } => {
            matches!(answer, Answer::Done | Answer::Waiting(Ticket::Shutdown { .. }))
        }
        task::Command::Reset { .. } | task::Command::ReportError { .. } => matches!(answer, Answer::Done),
        task::Command::Poll { .. } => matches!(answer, Answer::Waiting(Ticket::Poll { .. })),
        task::Command::Alive { .. } => matches!(answer, Answer::Waiting(Ticket::Alive { .. })),
        task::Command::ExchangeDevices { .. } => {
            matches!(answer, Answer::Waiting(Ticket::Devices { .. }))
        }
        _ => true,
    }
}

fn of_runtime(command: &runtime::Command, answer: &Answer) -> bool {
    match command {
        runtime::Command::Connect { .. } | runtime::Command::ConnectFrom { .. } => {
            matches!(answer, Answer::Registered { .. } | Answer::Waiting(Ticket::Runtime { .. }))
        }
        runtime::Command::Enumerate { .. } => matches!(answer, Answer::Waiting(Ticket::Runtime { .. })),
        runtime::Command::Arrive { .. } | runtime::Command::Shutdown { .. } => {
            matches!(answer, Answer::Done | Answer::Waiting(Ticket::Runtime { .. }))
        }
        runtime::Command::Put { .. } => matches!(answer, Answer::Value { .. }),
        _ => true,
    }
}
