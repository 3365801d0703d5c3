//! Which backups a node makes by itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tripod_proto::code::Code;

use crate::args::seconds::Seconds;
use crate::backups::Plan;
use crate::failure::Failure;
use crate::sealed::{self, Recipient};

/// How often backups are made, and how many are kept, unless flags say otherwise: those of a day.
const EVERY: Duration = Duration::from_hours(1);
const EVERY_MIN: Duration = Duration::from_secs(1);
const KEEP: u32 = 24;

/// Flags of `server`.
#[derive(Debug, Args)]
pub(crate) struct BackupFlags {
    /// Make backups of the whole state in this directory, which several nodes may share; best one on another disk.
    /// See `tripod snapshot --help` for what they are good for
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,

    /// Time from one backup to the next [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    backup_every: Option<Seconds>,

    /// How many backups of this node are kept; an old one goes when a newer one was verified [default: 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    backup_keep: Option<u32>,

    /// Seal backups for these recipients of age (X25519, `age1...`), whose identities alone open them; the node has
    /// none of those, and cannot read its own backups
    #[arg(long = "backup-recipient", value_name = "RECIPIENT,...", value_delimiter = ',')]
    backup_recipients: Vec<Recipient>,
}

impl BackupFlags {
    /// What they ask for.
    ///
    /// # Errors
    /// They contradict each other, or ask for too much.
    pub(crate) fn plan(&self) -> Result<Option<Plan>, Failure> {
        let every = self.backup_every.map_or(EVERY, Seconds::duration);
        if every < EVERY_MIN {
            return Err(Failure::new(Code::ValueIllegal, "--backup-every: one second is the least"));
        }
        let keep = self.backup_keep.unwrap_or(KEEP);
        let recipients = self.backup_recipients.clone();
        sealed::check_number("--backup-recipient", &recipients)?;
        let how = self.backup_every.is_some() || self.backup_keep.is_some() || !recipients.is_empty();
        match &self.backup_dir {
            Some(directory) => Ok(Some(Plan { directory: directory.clone(), every, keep, recipients })),
            None if how => Err(Failure::new(
                Code::FlagsConflict,
                "--backup-every, --backup-keep and --backup-recipient say how, and --backup-dir where: give that, too",
            )),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: BackupFlags,
    }

    fn plan(flags: &[&str]) -> Result<Option<Plan>, Failure> {
        let line = [&["test"][..], flags].concat();
        Line::try_parse_from(line).expect("each is legal").flags.plan()
    }

    #[test]
    fn who_may_open_backups_is_said_only_with_where_they_are() {
        let one = age::x25519::Identity::generate().to_public().to_string();
        let recipient = format!("--backup-recipient={one},{one}");
        assert_eq!(plan(&[]).expect("none").map(|plan| plan.keep), None);
        let made = plan(&["--backup-dir=d", &recipient]).expect("legal").expect("some");
        assert_eq!(made.recipients.len(), 2);
        assert_eq!(plan(&[&recipient]).expect_err("no directory").code(), Code::FlagsConflict);

        let many = format!("--backup-recipient={}", vec![one; 17].join(","));
        let refused = plan(&["--backup-dir=d", &many]).expect_err("too many");
        assert!(refused.to_string().contains("names 17 recipients, and 16 is the most"), "{refused}");
        let key = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ";
        for wrong in ["", "age1", "age1x", "ssh-ed25519 AAAA", key] {
            let line = ["test", "--backup-dir=d", &format!("--backup-recipient={wrong}")];
            assert!(Line::try_parse_from(line).is_err(), "{wrong}");
        }
    }
}
