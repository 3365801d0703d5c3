//! A shell that is typed into, with its jobs and variables.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::screen;

/// Nobody waits so long for a command of a page that does what it says.
const LIMIT: Duration = Duration::from_secs(180);
/// How often a file is looked at; also how exact times are.
const LOOK: Duration = Duration::from_millis(20);
/// A pause before a command is typed again.
const AGAIN: Duration = Duration::from_millis(200);
/// Logs that are quoted when a command does not do what its page says.
const LOGS: [&str; 5] = ["dev.log", "0.log", "1.log", "2.log", "server.log"];
/// The end of each of them.
const LOG_LINES: usize = 20;

/// It ends with this value, and all that it has begun with it.
pub(super) struct Shell {
    process: Child,
    /// Where its current directory is for us.
    place: PathBuf,
    /// And for itself.
    inside: String,
    typed: usize,
}

/// What came of lines.
struct Answer {
    succeeded: bool,
    /// On standard output.
    printed: String,
    /// On standard error.
    told: String,
}

impl Shell {
    /// Begins `command`, which is a shell, in the directory that is `place` for us and `inside` for it.
    ///
    /// # Errors
    /// It does not begin.
    pub(super) fn begin(mut command: Command, place: &Path, inside: &str) -> Result<Self> {
        let typed = place.join(".typed");
        fs::create_dir(&typed).with_context(|| format!("cannot make {}", typed.display()))?;
        let process = command.stdin(Stdio::piped()).spawn().context("cannot start a shell")?;
        let mut shell = Self { process, place: place.to_owned(), inside: inside.to_owned(), typed: 0 };
        // The page is read in its directory, on a machine whose own addresses work.
        shell.shows(&[format!("cd {inside}"), "ip link set lo up".to_owned()], &[])?;
        Ok(shell)
    }

    /// Types lines, which succeed; what they print is as the page shows it, if it does.
    ///
    /// # Errors
    /// It is not so.
    pub(super) fn shows(&mut self, lines: &[String], shows: &[String]) -> Result<()> {
        let answer = self.type_lines(lines)?;
        match fault(&answer, shows) {
            None => Ok(()),
            Some(fault) => bail!("`{}`: {fault}\n{}", lines.join("; "), self.logs()),
        }
    }

    /// Types lines again and again until they succeed and print what the page shows.
    ///
    /// # Errors
    /// They never did.
    pub(super) fn shows_at_last(&mut self, lines: &[String], shows: &[String]) -> Result<()> {
        let begun = Instant::now();
        loop {
            let answer = self.type_lines(lines)?;
            let Some(fault) = fault(&answer, shows) else { return Ok(()) };
            if begun.elapsed() > LIMIT {
                bail!("`{}` for {} s: {fault}\n{}", lines.join("; "), LIMIT.as_secs(), self.logs());
            }
            thread::sleep(AGAIN);
        }
    }

    /// Waits until a file of its directory is as somebody who looks at it wants it.
    ///
    /// # Errors
    /// It never was.
    pub(super) fn watch<T>(&self, file: &str, wanted: impl Fn(&str) -> Option<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            let text = fs::read_to_string(self.place.join(file)).unwrap_or_default();
            if let Some(found) = wanted(&text) {
                return Ok(found);
            }
            if begun.elapsed() > LIMIT {
                bail!("{file} is not what the page shows:\n{text}\n{}", self.logs());
            }
            thread::sleep(LOOK);
        }
    }

    /// Lines in the shell itself, which keeps variables and jobs.
    fn type_lines(&mut self, lines: &[String]) -> Result<Answer> {
        self.typed += 1;
        let name = |end: &str| format!(".typed/{}.{end}", self.typed);
        let names = ["screen", "told", "failed", "done"].map(name);
        let [screen, told, failed, done] = names.each_ref().map(|name| format!("{}/{name}", self.inside));
        let typed = lines.iter().map(|line| {
            // A value is printed as it is: a new line behind it.
            format!("{{\n{line}\n}} < /dev/null >> {screen} 2>> {told} || : > {failed}\necho >> {screen}\n")
        });
        let script = format!("{}: > {done}\n", typed.collect::<String>());
        let input = self.process.stdin.as_mut().context("a shell that was begun has an input")?;
        input.write_all(script.as_bytes()).context("the shell has ended")?;
        let [screen, told, failed, done] = names.map(|name| self.place.join(name));
        let begun = Instant::now();
        while !done.exists() {
            if begun.elapsed() > LIMIT || self.process.try_wait()?.is_some() {
                bail!("`{}` did not end\n{}", lines.join("; "), self.logs());
            }
            thread::sleep(LOOK);
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        Ok(Answer { succeeded: !failed.exists(), printed: read(&screen), told: read(&told) })
    }

    /// The ends of the logs of its directory.
    fn logs(&self) -> String {
        let mut told = String::new();
        for name in LOGS {
            let text = fs::read_to_string(self.place.join(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            if !lines.is_empty() {
                let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
                told += &format!("--- {name}\n{}\n", last.join("\n"));
            }
        }
        told
    }
}

/// What is not as the page has it.
fn fault(answer: &Answer, shows: &[String]) -> Option<String> {
    if !answer.succeeded {
        return Some(format!("failed: {}{}", answer.printed, answer.told));
    }
    if shows.is_empty() { None } else { screen::difference(shows, &answer.printed) }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its processes are those of a namespace, which ends with the first of them. There is nobody to tell when even this
        // fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
        lines.map(str::to_owned).into()
    }

    /// A shell of this machine, for which `ip` is a function that does nothing.
    fn shell(folder: &Path) -> Shell {
        let mut command = Command::new("sh");
        command.env("ENV", "").env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        let ip = folder.join("ip");
        fs::write(&ip, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&ip, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Shell::begin(command, folder, &folder.display().to_string()).unwrap()
    }

    #[test]
    fn variables_stay_and_a_screen_is_compared_with_the_page() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = shell(folder.path());
        shell.shows(&lines(["A=1", "printf $A"]), &lines(["1"])).unwrap();
        shell.shows(&lines(["echo pid $$; echo b > 0.log"]), &lines(["pid …"])).unwrap();
        let error = shell.shows(&lines(["echo $A"]), &lines(["2"])).unwrap_err().to_string();
        assert!(error.contains("the page shows\n2") && error.contains("--- 0.log\nb"), "{error}");
        let error = shell.shows(&lines(["true", "ls missing", "true"]), &[]).unwrap_err().to_string();
        assert!(error.contains("failed: ") && error.contains("missing"), "{error}");
        let again = lines(["A=$((A + 1)); test $A -gt 2 && echo $A"]);
        shell.shows_at_last(&again, &lines(["3"])).unwrap();
        let found = shell.watch("0.log", |text| text.strip_suffix('\n').map(str::to_owned)).unwrap();
        assert_eq!(found, "b");
    }
}
