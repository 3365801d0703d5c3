//! The program itself: started, told of signals, and waited for.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::launch::signals::{Signals, asks_for_an_end, terminal_tells_all};

/// Exit statuses of processes that a signal ended begin here, as in a shell.
const SIGNALLED: u8 = 128;

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    status: ExitStatus,
    /// Somebody wanted it to.
    asked: bool,
}

impl Ended {
    /// Whether the end needs no explanation: it went well, or somebody asked for it.
    pub(crate) fn is_plain(self) -> bool {
        self.status.success() || self.asked
    }

    /// The same, and somebody wants no other program in its place.
    pub(crate) fn and_no_more(self) -> Self {
        Self { asked: true, ..self }
    }

    /// Whether the program failed, so that it may be begun again: it was not asked to end, neither by us nor by somebody else
    /// who told it in the usual way.
    pub(crate) fn is_failure(self) -> bool {
        let asked_it = self.status.signal().and_then(|signal| Signal::try_from(signal).ok());
        !self.is_plain() && !asked_it.is_some_and(asks_for_an_end)
    }

    /// The same status for this process.
    pub(crate) fn exit_code(self) -> ExitCode {
        let code = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
            (None, Some(signal)) => after_signal(signal),
            (None, None) => u8::MAX,
        };
        ExitCode::from(code)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status.signal() {
            Some(signal) => {
                let name =
                    Signal::try_from(signal).map_or_else(|_| signal.to_string(), |name| name.to_string());
                write!(f, "was ended by {name} (exit status {})", after_signal(signal))
            }
            None => write!(f, "ended with exit status {}", self.status.code().unwrap_or_default()),
        }
    }
}

/// The exit status that stands for a signal.
pub(crate) fn after_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| SIGNALLED.saturating_add(signal))
}

/// Runs the program to its end.
///
/// # Errors
/// It cannot be started.
pub(crate) async fn run(
    line: &[OsString],
    variables: Vec<(&'static str, String)>,
    signals: &mut Signals,
) -> Result<Ended, Failure> {
    let (program, arguments) = line.split_first().expect("the command line has a program");
    let started = Command::new(program).args(arguments).envs(variables).kill_on_drop(true).spawn();
    let mut process = started.map_err(|error| {
        let program = program.display();
        Failure::new(
            Code::ProgramFailed,
            format!("cannot start `{program}`: {error}; check what stands behind `--`"),
        )
    })?;
    let mut asked = false;
    let mut interrupted = false;
    loop {
        tokio::select! {
            status = process.wait() => {
                let status = status.map_err(|error| {
                    Failure::new(Code::ProgramFailed, format!("cannot tell how the program ended: {error}"))
                })?;
                return Ok(Ended { status, asked });
            }
            signal = signals.next() => {
                asked |= asks_for_an_end(signal);
                match signal {
                    Signal::SIGINT if interrupted => pass_on(&process, Signal::SIGKILL),
                    Signal::SIGINT if terminal_tells_all() => {}
                    _ => pass_on(&process, signal),
                }
                interrupted |= signal == Signal::SIGINT;
            }
        }
    }
}

fn pass_on(process: &Child, signal: Signal) {
    // Without an id the process has ended, and the id may be another one's by now.
    let Some(pid) = process.id() else { return };
    let pid = Pid::from_raw(i32::try_from(pid).expect("process ids are below 2^22 on Linux"));
    if let Err(error) = kill(pid, signal) {
        tracing::warn!(%signal, %error, "signal could not be passed on");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(raw: i32) -> String {
        Ended { status: ExitStatus::from_raw(raw), asked: false }.to_string()
    }

    #[test]
    fn an_end_is_told_as_shells_do() {
        assert_eq!(told(3 << 8), "ended with exit status 3");
        assert_eq!(told(6), "was ended by SIGABRT (exit status 134)");
        assert_eq!(told(9), "was ended by SIGKILL (exit status 137)");
    }

    #[test]
    fn an_end_that_was_asked_for_needs_no_explanation() {
        let ended = |asked| Ended { status: ExitStatus::from_raw(15), asked };
        assert!(ended(true).is_plain() && !ended(false).is_plain());
    }

    #[test]
    fn what_failed_is_begun_again_and_what_somebody_ended_is_not() {
        let failed = |raw| Ended { status: ExitStatus::from_raw(raw), asked: false }.is_failure();
        assert!(failed(3 << 8) && failed(9) && failed(6) && failed(11));
        assert!(!failed(0) && !failed(15) && !failed(2) && !failed(1), "success, SIGTERM, SIGINT, SIGHUP");
        assert!(!Ended { status: ExitStatus::from_raw(9), asked: true }.is_failure());
    }
}
