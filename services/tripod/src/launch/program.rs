//! The program itself: started, told of signals, and waited for.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tripod_client::wire;
use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::launch::host::Running;
use crate::launch::signals::{Signals, asks_for_an_end, terminal_tells_all};
use crate::launch::witness::{Before, Tail};
use crate::view::time;

/// Exit statuses of processes that a signal ended begin here, as in a shell.
const SIGNALLED: u8 = 128;

/// How long the rest of what an ended program wrote may take to be read.
const PIPE_TIMEOUT: Duration = Duration::from_secs(1);

/// Where a program's standard error goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stderr {
    /// Where that of this process goes.
    Inherited,
    /// Through this process, which keeps its end. The program cannot write any more when this process has been killed.
    Piped,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    status: ExitStatus,
    /// Somebody wanted it to.
    asked: bool,
    /// By this machine's clock.
    at_ms: u64,
    /// The kernel has ended processes beside it meanwhile, for want of memory.
    out_of_memory: bool,
    /// The last that it wrote to its standard error, if that is known.
    tail: String,
}

impl Ended {
    /// Whether the end needs no explanation: it went well, or somebody asked for it.
    pub(crate) fn is_plain(&self) -> bool {
        self.status.success() || self.asked
    }

    /// The same, and somebody wants no other program in its place.
    pub(crate) fn and_no_more(self) -> Self {
        Self { asked: true, ..self }
    }

    /// Whether the program failed, so that it may be begun again: it was not asked to end, neither by us nor by somebody else
    /// who told it in the usual way.
    pub(crate) fn is_failure(&self) -> bool {
        let asked_it = self.status.signal().and_then(|signal| Signal::try_from(signal).ok());
        !self.is_plain() && !asked_it.is_some_and(asks_for_an_end)
    }

    /// For the job. `with_tail`: its last words, too.
    pub(crate) fn to_wire(&self, with_tail: bool) -> wire::ProcessEnd {
        let signal = self.status.signal();
        wire::ProcessEnd {
            exit_code: self.status.code(),
            signal,
            core_dumped: self.status.core_dumped(),
            out_of_memory: self.out_of_memory && signal == Some(Signal::SIGKILL as i32),
            at_ms: self.at_ms,
            tail: if with_tail { self.tail.clone() } else { String::new() },
        }
    }

    /// The last line that it wrote to its standard error, if that is known.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.tail.lines().rev().map(str::trim).find(|line| !line.is_empty())
    }

    /// The same status for this process.
    pub(crate) fn exit_code(&self) -> ExitCode {
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
                let memory = if self.to_wire(false).out_of_memory { ", out of memory" } else { "" };
                let core = if self.status.core_dumped() { ", core dumped" } else { "" };
                write!(f, "was ended by {name}{memory}{core} (exit status {})", after_signal(signal))
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
    stderr: Stderr,
    (running, signals): (&Running, &mut Signals),
) -> Result<Ended, Failure> {
    let (program, arguments) = line.split_first().expect("the command line has a program");
    let before = Before::look();
    let mut command = Command::new(program);
    command.args(arguments).envs(variables).kill_on_drop(true);
    if stderr == Stderr::Piped {
        command.stderr(Stdio::piped());
    }
    let started = command.spawn();
    let mut process = started.map_err(|error| {
        let program = program.display();
        Failure::new(
            Code::ProgramFailed,
            format!("cannot start `{program}`: {error}; check what stands behind `--`"),
        )
    })?;
    running.began(process.id());
    let following = process.stderr.take().map(|pipe| {
        let tail = Tail::default();
        (tail.clone(), tokio::spawn(tail.follow(pipe)))
    });
    let (status, asked) = wait(&mut process, signals).await?;
    running.ended();
    let at_ms = time::now_ms();
    let tail = match following {
        Some((tail, following)) => {
            // What the program started itself may hold the pipe open.
            let _ = timeout(PIPE_TIMEOUT, following).await;
            tail.words()
        }
        None => before.last_words(),
    };
    Ok(Ended { status, asked, at_ms, out_of_memory: before.ran_out_of_memory(), tail })
}

/// Waits for the end of the program and passes signals on. Gives whether somebody asked it to end.
async fn wait(process: &mut Child, signals: &mut Signals) -> Result<(ExitStatus, bool), Failure> {
    let mut asked = false;
    let mut interrupted = false;
    loop {
        tokio::select! {
            status = process.wait() => {
                let status = status.map_err(|error| {
                    Failure::new(Code::ProgramFailed, format!("cannot tell how the program ended: {error}"))
                })?;
                return Ok((status, asked));
            }
            signal = signals.next() => {
                asked |= asks_for_an_end(signal);
                match signal {
                    Signal::SIGINT if interrupted => pass_on(process, Signal::SIGKILL),
                    Signal::SIGINT if terminal_tells_all() => {}
                    _ => pass_on(process, signal),
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

    fn ended(raw: i32, asked: bool) -> Ended {
        let (status, tail) = (ExitStatus::from_raw(raw), "Traceback\nboom\n\n".to_owned());
        Ended { status, asked, at_ms: 5, out_of_memory: true, tail }
    }

    fn told(raw: i32) -> String {
        Ended { out_of_memory: false, ..ended(raw, false) }.to_string()
    }

    #[test]
    fn an_end_is_told_as_shells_do() {
        assert_eq!(told(3 << 8), "ended with exit status 3");
        assert_eq!(told(6), "was ended by SIGABRT (exit status 134)");
        assert_eq!(told(6 | 0x80), "was ended by SIGABRT, core dumped (exit status 134)");
        assert_eq!(told(9), "was ended by SIGKILL (exit status 137)");
        assert_eq!(ended(9, false).to_string(), "was ended by SIGKILL, out of memory (exit status 137)");
        assert_eq!(ended(15, false).to_string(), "was ended by SIGTERM (exit status 143)");
    }

    #[test]
    fn the_job_is_told_how_a_program_ended_and_its_last_words_only_if_they_may_be() {
        let exited = wire::ProcessEnd { exit_code: Some(3), at_ms: 5, ..Default::default() };
        assert_eq!(ended(3 << 8, false).to_wire(false), exited);
        let killed = ended(9, false).to_wire(true);
        assert_eq!((killed.signal, killed.out_of_memory, killed.exit_code), (Some(9), true, None));
        assert_eq!(killed.tail, "Traceback\nboom\n\n");
        assert_eq!(ended(9, false).last_line(), Some("boom"));
    }

    #[test]
    fn an_end_that_was_asked_for_needs_no_explanation() {
        assert!(ended(15, true).is_plain() && !ended(15, false).is_plain());
    }

    #[test]
    fn what_failed_is_begun_again_and_what_somebody_ended_is_not() {
        let failed = |raw| ended(raw, false).is_failure();
        assert!(failed(3 << 8) && failed(9) && failed(6) && failed(11));
        assert!(!failed(0) && !failed(15) && !failed(2) && !failed(1), "success, SIGTERM, SIGINT, SIGHUP");
        assert!(!ended(9, true).is_failure());
    }
}
