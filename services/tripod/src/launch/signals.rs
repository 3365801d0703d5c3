//! Signals that are meant for the program.

use std::fs::File;

use nix::sys::signal::Signal;
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tripod_proto::code::Code;

use crate::failure::Failure;

/// Those that are passed on.
const FORWARDED: [Signal; 5] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];
/// Signals that may wait to be passed on; more of the same say nothing new.
const WAITING_MAX: usize = 16;

/// The signals that this process is sent.
pub(crate) struct Signals {
    received: mpsc::Receiver<Signal>,
}

impl Signals {
    /// From now on these signals no longer end this process. Those that it was started to ignore (as by
    /// `nohup`) are left alone, so that the program ignores them too.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (sender, received) = mpsc::channel(WAITING_MAX);
        let ignored = ignored();
        for kind in FORWARDED.into_iter().filter(|kind| ignored & bit(*kind) == 0) {
            let mut arrivals = signal(SignalKind::from_raw(kind as i32)).map_err(|error| {
                Failure::new(Code::ProcessLimits, format!("cannot listen for signals: {error}"))
            })?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arrivals.recv().await.is_some() {
                    // When nobody takes them, the program has ended; when too many wait, one more is no news.
                    let _ = sender.try_send(kind);
                }
            });
        }
        Ok(Self { received })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.received.recv().await {
            Some(signal) => signal,
            // All are ignored.
            None => std::future::pending().await,
        }
    }

    /// The next one that asks for an end.
    pub(crate) async fn next_end(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if asks_for_an_end(signal) {
                return signal;
            }
        }
    }
}

/// Whether a process that is sent this is to end.
pub(crate) fn asks_for_an_end(signal: Signal) -> bool {
    matches!(signal, Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP)
}

/// Whether Ctrl-C reaches the program without our help: the terminal tells everybody in its foreground.
pub(crate) fn terminal_tells_all() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal) == Ok(getpgrp()))
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

/// The signals that this process ignores, as the kernel tells them; none if it does not.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_is_ignored() {
        // Rust programs ignore a broken pipe.
        assert_ne!(ignored() & bit(Signal::SIGPIPE), 0);
        assert_eq!(ignored() & bit(Signal::SIGTERM), 0);
    }
}
