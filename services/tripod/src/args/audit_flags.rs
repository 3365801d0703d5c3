//! Where a node writes down what is done, as flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use tripod_audit::{Limits, Sinks};
use tripod_proto::code::Code;

use crate::failure::Failure;

/// Flags of the audit log.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AuditFlags {
    /// Directory for the audit log: a line for each change of members, level and tokens, each deleted job, each start and stop,
    /// new certificates, and connections that were refused; at most 16 files of 64 MiB. `tripod audit --help` reads it
    /// [default: none is written]
    #[arg(long, value_name = "DIR")]
    audit_dir: Option<PathBuf>,

    /// Write these lines to standard error, too, or instead
    // With a value, as a file of settings has it.
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_name = "true|false",
        hide_default_value = true,
        hide_possible_values = true
    )]
    audit_stderr: bool,

    /// What becomes of such a call when no line of it can be written within 100 ms: best-effort (it goes on, and the loss is
    /// counted and logged) or required (it is refused) [default: best-effort]
    #[arg(long, value_enum, value_name = "MODE")]
    audit: Option<AuditMode>,
}

/// Whether calls go on of which no line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditMode {
    BestEffort,
    Required,
}

/// Where lines go, and whether calls need them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditPlan {
    pub(crate) sinks: Sinks,
    pub(crate) is_required: bool,
}

impl AuditFlags {
    /// # Errors
    /// Wrong usage: lines are required, and nothing says where they go.
    pub(crate) fn plan(&self) -> Result<Option<AuditPlan>, Failure> {
        let is_required = self.audit == Some(AuditMode::Required);
        if self.audit_dir.is_none() && !self.audit_stderr {
            if is_required {
                let text = "--audit required says that there must be a line, and --audit-dir where: give that, or --audit-stderr";
                return Err(Failure::new(Code::FlagsConflict, text));
            }
            return Ok(None);
        }
        let (directory, stderr) = (self.audit_dir.clone(), self.audit_stderr);
        Ok(Some(AuditPlan { sinks: Sinks { directory, limits: Limits::default(), stderr }, is_required }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        audit: AuditFlags,
    }

    fn plan(flags: &[&str]) -> Result<Option<AuditPlan>, Failure> {
        Line::try_parse_from(["node"].iter().chain(flags)).expect("well-formed").audit.plan()
    }

    #[test]
    fn lines_are_required_only_where_they_go_somewhere() {
        assert_eq!(plan(&[]), Ok(None));
        assert_eq!(plan(&["--audit=required"]).expect_err("refused").code(), Code::FlagsConflict);
        let plan = |flags| plan(flags).expect("legal").expect("there is one");
        assert!(!plan(&["--audit-dir=a"]).is_required);
        let both = plan(&["--audit-stderr", "--audit=required"]);
        assert!(both.is_required && both.sinks.stderr && both.sinks.directory.is_none());
        assert_eq!(plan(&["--audit-dir=a"]).sinks.limits.files, 16);
    }
}
