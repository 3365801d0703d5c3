//! One process of the program, with the `tripod run` that begins it again.

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tripod_tests::python::Script;

use super::history::{History, Kill, Moment, now};

/// A process in all of its lives, as far as they have been looked at.
pub(super) struct Process {
    pub(super) number: usize,
    pub(super) script: Script,
    pub(super) history: History,
    /// How much of its output has been looked at, in bytes.
    read: u64,
    kills: usize,
}

impl Process {
    pub(super) fn of(number: usize, script: Script) -> Self {
        Self { number, script, history: History::default(), read: 0, kills: 0 }
    }

    /// Looks at what it has written since it was looked at last.
    ///
    /// # Errors
    /// It cannot be understood.
    pub(super) fn look(&mut self) -> Result<&History> {
        let bytes = self.script.output_from(self.read);
        // The last line may not be whole yet.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in String::from_utf8_lossy(&bytes[..whole]).lines() {
            self.history.note(line)?;
        }
        self.read += u64::try_from(whole)?;
        Ok(&self.history)
    }

    /// Kills the life that runs, and not what began it; when that was.
    ///
    /// # Errors
    /// It has not begun, or cannot be killed.
    pub(super) fn kill(&mut self) -> Result<Moment> {
        self.look()?;
        let number = self.number;
        let life =
            self.history.lives.last_mut().with_context(|| format!("process {number} has not begun"))?;
        ensure!(life.killed.is_none(), "process {number} is dead and has not come back");
        let before = now()?;
        kill(Pid::from_raw(life.pid), Signal::SIGKILL)
            .with_context(|| format!("cannot kill {}", life.pid))?;
        life.killed = Some(Kill { before, after: now()? });
        self.kills += 1;
        Ok(before)
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn terminate(&self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.script.pid())?);
        kill(pid, Signal::SIGTERM).with_context(|| format!("cannot end process {}", self.number))
    }

    /// Whether it has come back as often as it was killed.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub(super) fn is_back(&mut self) -> Result<bool> {
        let kills = self.kills;
        Ok(self.look()?.lives.len() > kills)
    }

    /// Checks that it died of nothing but these tests: whatever else ended it would have been hidden by the next life.
    ///
    /// # Errors
    /// Says how often it began, and how often it was killed.
    pub(super) fn died_of_nothing_else(&mut self) -> Result<()> {
        let (number, kills) = (self.number, self.kills);
        self.look()?;
        let (lives, restarts) = (self.history.lives.len(), self.history.restarts);
        ensure!(
            restarts == kills && lives == kills + 1,
            "process {number} was killed {kills} times, begun again {restarts} times, and had {lives} lives:\n{}",
            self.tail()
        );
        Ok(())
    }

    /// The end of what it has written.
    pub(super) fn tail(&self) -> String {
        let output = self.script.output();
        let lines: Vec<&str> = output.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}
