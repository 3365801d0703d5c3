//! `tripod snapshot`: backups of the whole state.

mod progress;
mod restore;
mod save;
mod target;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tripod_proto::code::Code;
use tripod_raft::backup::{self, Contents, Pace};

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::sealed::{self, Identities, Outer};
use crate::view::backup::{ContentsView, SealedFileView};

use progress::Ticker;
pub(crate) use target::{Target, cannot_write};

const EXAMPLES: &str = "\
Examples:
  tripod snapshot save backup.snap                 while the cluster serves, through any node
  tripod snapshot verify backup.snap               anywhere, without a cluster
  tripod snapshot save backup.snap.age --recipient age1...
                                                   sealed: who has the identity of age reads it, nobody else
  tripod snapshot restore backup.snap --name prod-2 --node 1 --data /var/lib/tripod-2 \\
      --members 1=10.0.0.1:7800,2=10.0.0.2:7800,3=10.0.0.3:7800
                                                   on each node of a new cluster, with its own --node";

const VERIFY_EXAMPLES: &str = "\
Examples:
  tripod snapshot verify backup.snap
  tripod snapshot verify backup.snap.age --identity key.txt     one that was sealed
  tripod snapshot verify backup.snap.age --hash 0123456789abcdef
                                                                whether it is the file that was saved

Reads every byte: all checksums, the hash of the whole file, every record, and the digest of the state that
they make. It holds the state in memory for that. Exit code 0 means that the file can be restored with this
version of the program. Without an identity a sealed file cannot be read; --hash compares its bytes with
what was printed when it was saved, in the line `sealed` (of a file that is not sealed: `file`).";

const HASH_DIGITS: usize = 16;

/// What to do with snapshots.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SnapshotCommand {
    /// Save the state of a running cluster to a file
    Save(save::SaveArgs),
    /// Check a file: hash, versions, every record
    Verify(VerifyArgs),
    /// Make the data directory of one node of a new cluster from a file
    Restore(restore::RestoreArgs),
}

/// Flags of `snapshot verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// A file that `tripod snapshot save` wrote
    file: PathBuf,

    /// A file of identities of age that opens FILE, if that is sealed
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,

    /// The hash that was printed when FILE was saved; another one is refused
    #[arg(long, value_name = "HEX", value_parser = hash)]
    hash: Option<u64>,
}

/// A hash as it is printed.
fn hash(text: &str) -> Result<u64, String> {
    let digits = text.len() == HASH_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let parsed = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
    parsed.ok_or_else(|| format!("not {HASH_DIGITS} hexadecimal digits"))
}

pub(crate) async fn run(command: SnapshotCommand, global: &Global) -> Result<(), Failure> {
    match command {
        SnapshotCommand::Save(args) => save::run(&args, global).await,
        SnapshotCommand::Verify(args) => verify(args, global.format()).await,
        SnapshotCommand::Restore(args) => restore::run(args, global.format()).await,
    }
}

async fn verify(args: VerifyArgs, format: Format) -> Result<(), Failure> {
    let identities = args.identity.as_deref().map(Identities::read).transpose()?;
    let _ticker = Ticker::start("snapshot verify", &args.file);
    let (file, expected) = (args.file.clone(), args.hash);
    match aside(move || examine(&file, identities.as_ref(), expected)).await? {
        Examined::Whole(contents, outer) => {
            print("whole", &ContentsView::of(&args.file, &contents).sealed(outer), format)
        }
        Examined::Same(outer) => print_same(&SealedFileView::of(&args.file, outer), format),
    }
}

/// What became known of a file.
enum Examined {
    /// All of it; what it is to those who cannot open it, if it is sealed.
    Whole(Box<Contents>, Option<Outer>),
    /// That its bytes are those that were saved, and no more.
    Same(Outer),
}

/// Reads a file as far as the identities go. Blocks.
fn examine(file: &Path, identities: Option<&Identities>, expected: Option<u64>) -> Result<Examined, Failure> {
    if !sealed::is_sealed(file) {
        let contents = backup::verify(file).map_err(refused)?;
        check_hash(file, contents.file_hash, expected)?;
        return Ok(Examined::Whole(Box::new(contents), None));
    }
    let outer = Outer::of(file).map_err(|error| sealed::unreadable(file, &error))?;
    check_hash(file, outer.hash, expected)?;
    match (identities, expected) {
        (Some(identities), _) => {
            let content = sealed::open(file, identities)?;
            let contents = backup::verify_content(file, content, Pace::unlimited()).map_err(refused)?;
            Ok(Examined::Whole(Box::new(contents), Some(outer)))
        }
        (None, Some(_)) => Ok(Examined::Same(outer)),
        (None, None) => Err(needs_identity(file, "tripod snapshot verify")),
    }
}

fn check_hash(file: &Path, found: u64, expected: Option<u64>) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected != found => Err(Failure::new(
            Code::BackupDamaged,
            format!(
                "{} is not what was saved: its hash is {found:016x}, and --hash says {expected:016x}. Do not use it: take \
                 another copy of it, or an older snapshot",
                file.display()
            ),
        )),
        _ => Ok(()),
    }
}

/// Who cannot open a sealed file is told what opens it.
fn needs_identity(file: &Path, command: &str) -> Failure {
    let file = file.display();
    Failure::new(
        Code::BackupSealed,
        format!("{file} is sealed, so nothing of it was read; next: `{command} {file} --identity FILE`"),
    )
}

/// Says what is in a file.
fn print(verdict: &str, view: &ContentsView, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&view.render(verdict))?,
    }
    Ok(())
}

/// Says that a file is the one that was saved.
fn print_same(view: &SealedFileView, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}

/// Does what blocks.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(Code::Defect, format!("reading the snapshot panicked: {error}")))?
}

/// What is said of a file by those who read it.
fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::told(Code::BackupIo, error.to_string())
}
