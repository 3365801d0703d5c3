//! `tripod audit`: the log of who did what.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use tripod_audit::{LINE_BYTES_MAX, Verified, files, verify};
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};

/// Between two looks for new lines.
const PAUSE: Duration = Duration::from_millis(200);
/// Lines that are shown at most of those that are there.
const SHOWN_MAX: u64 = 100_000;

const ABOUT: &str = "\
`tripod server --audit-dir DIR` writes a line of JSON for each change of members, level and tokens, each deleted job, each start
and stop, new certificates, and each refused connection that is logged. Each line has the hash of the one before.

Examples:
  tripod audit verify /var/log/tripod-audit       every line follows from the one before; else exit code 1 and which
  tripod audit tail /var/log/tripod-audit -n 20
  tripod audit tail /var/log/tripod-audit --follow | jq -r '[.at_ms, .who, .rpc, .resource, .outcome] | @tsv'

Who can write to the files can also write all lines anew from some place on. To notice that, keep the hash that `verify` prints
elsewhere, now and then: a later `verify` of the same files names the line if it has another hash.";

/// What to do with an audit log.
#[derive(Debug, Subcommand)]
#[command(after_help = ABOUT)]
pub(crate) enum AuditCommand {
    /// Check that no line is missing, added, changed or moved
    Verify {
        /// The directory of the log, or its files in their order
        #[arg(required = true, value_name = "DIR|FILE")]
        files: Vec<PathBuf>,
    },
    /// Print the last lines
    Tail {
        /// The directory of the log
        dir: PathBuf,
        /// How many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=SHOWN_MAX))]
        lines: u64,
        /// Go on with what is written from now on, until interrupted
        #[arg(short, long)]
        follow: bool,
    },
}

/// What `audit verify` prints. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct VerifiedView {
    sound: bool,
    lines: u64,
    /// Number of the first line; those before it may have gone with older files.
    first: Option<u64>,
    last: Option<u64>,
    /// Hash of the last line.
    hash: Option<String>,
    problems: Vec<ProblemView>,
}

#[derive(Debug, Serialize)]
struct ProblemView {
    file: PathBuf,
    /// Counted from 1.
    line: u64,
    problem: String,
}

pub(crate) async fn run(command: AuditCommand, global: &Global) -> Result<(), Failure> {
    match command {
        AuditCommand::Verify { files } => check(&files, global),
        AuditCommand::Tail { dir, lines, follow } => tail(&dir, lines, follow).await,
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Code::AuditFile,
        format!("{} cannot be read: {error}; name the directory of --audit-dir", path.display()),
    )
}

/// The files that are meant, in their order.
fn named(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = files(path).map_err(|error| unreadable(path, &error))?;
            if found.is_empty() {
                return Err(unreadable(path, &io::Error::other("it has no files of an audit log")));
            }
            all.extend(found.into_iter().map(|(_, file)| file));
        } else {
            all.push(path.clone());
        }
    }
    Ok(all)
}

fn check(paths: &[PathBuf], global: &Global) -> Result<(), Failure> {
    let paths = named(paths)?;
    let mut readers = Vec::new();
    for path in &paths {
        readers.push(BufReader::new(File::open(path).map_err(|error| unreadable(path, &error))?));
    }
    let verified = verify(readers).map_err(|error| unreadable(&paths[0], &error))?;
    let view = VerifiedView::of(&verified, &paths);
    match global.format() {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    match view.problems.first() {
        None => Ok(()),
        Some(ProblemView { file, line, problem }) => Err(Failure::new(
            Code::AuditBroken,
            format!("{} line {line}: {problem}; the files are not what this node wrote", file.display()),
        )),
    }
}

impl VerifiedView {
    fn of(verified: &Verified, files: &[PathBuf]) -> Self {
        let problems = verified.problems.iter().map(|problem| ProblemView {
            file: files[problem.file].clone(),
            line: problem.line,
            problem: problem.what.to_string(),
        });
        Self {
            sound: verified.is_sound(),
            lines: verified.lines,
            first: verified.first,
            last: verified.last.map(|(seq, _)| seq),
            hash: verified.last.map(|(_, hash)| hash.to_string()),
            problems: problems.collect(),
        }
    }

    fn render(&self) -> String {
        let mut text = match (self.first, self.last, &self.hash) {
            (Some(first), Some(last), Some(hash)) => {
                format!("{} lines, records {first} to {last}; the last has the hash {hash}", self.lines)
            }
            _ => "no lines".to_owned(),
        };
        for ProblemView { file, line, problem } in &self.problems {
            text.push_str(&format!("\n{} line {line}: {problem}", file.display()));
        }
        text
    }
}

async fn tail(dir: &Path, lines: u64, follow: bool) -> Result<(), Failure> {
    let paths = named(&[dir.to_owned()])?;
    let wanted = usize::try_from(lines).unwrap_or(usize::MAX);
    // The newest files first, until there is enough.
    let mut shown: Vec<String> = Vec::new();
    for path in paths.iter().rev() {
        let mut older = Place::at(path.clone()).read().map_err(|error| unreadable(path, &error))?;
        older.append(&mut shown);
        shown = older;
        if shown.len() >= wanted {
            break;
        }
    }
    for line in &shown[shown.len().saturating_sub(wanted)..] {
        output::line(line)?;
    }
    if !follow {
        return Ok(());
    }
    let newest = paths.last().expect("there is one").clone();
    let mut place = Place::at(newest.clone());
    place.read().map_err(|error| unreadable(&newest, &error))?;
    loop {
        for line in place.read().map_err(|error| unreadable(&place.path, &error))? {
            output::line(&line)?;
        }
        // A file that is full has no more lines, once a newer one is there.
        let found = files(dir).map_err(|error| unreadable(dir, &error))?;
        if let Some((_, next)) = found.into_iter().find(|(_, file)| *file > place.path) {
            for line in place.read().map_err(|error| unreadable(&place.path, &error))? {
                output::line(&line)?;
            }
            place = Place::at(next);
            continue;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How far a file was read.
struct Place {
    path: PathBuf,
    bytes: u64,
}

impl Place {
    fn at(path: PathBuf) -> Self {
        Self { path, bytes: 0 }
    }

    /// Its whole lines from there on. One that is being written stays for the next time.
    fn read(&mut self) -> io::Result<Vec<String>> {
        use std::io::{Read as _, Seek as _, SeekFrom};
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.bytes))?;
        let mut reader = BufReader::new(file);
        let mut lines = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let read = reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
            if read == 0 || bytes.last() != Some(&b'\n') {
                return Ok(lines);
            }
            self.bytes += read as u64;
            bytes.pop();
            lines.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
