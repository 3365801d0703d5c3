//! Why a command failed, and the exit code that says so. Exit codes are a contract: 0 done, 1 failed,
//! 2 wrong usage, 3 nobody could be reached, 141 nobody reads on. So are error codes; every failure has one, and a
//! page `docs/errors/Tnnnn.md`.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use tripod_client::Phase;
use tripod_gateway::Outage;
use tripod_proto::code::Code;

use crate::logging;
use crate::output::{self, Format};

/// What a process ends with that SIGPIPE has ended, as a shell tells it. Signals are left as Rust has set them, so that
/// a write to a closed pipe is an error here and the signal never comes.
const BY_SIGPIPE: u8 = 128 + 13;

/// How the secret half of a pair of keys of age begins. Who gives it where the public one belongs must not find it in a log.
const SECRET_KEY: &str = "AGE-SECRET-KEY-1";

/// A failure as one clear line, which begins with its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    code: Code,
    text: String,
    /// Whoever read the output has closed it, which needs no words: `head` has what it wanted.
    unread: bool,
}

/// A failure for programs. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct FailureView<'a> {
    /// What a person reads, without the code in front of it.
    error: &'a str,
    code: String,
    slug: &'static str,
    exit_code: u8,
}

/// What the process ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command was understood and tried.
    Failed = 1,
    /// The command line, or what it names, is wrong.
    Usage = 2,
    /// No node could answer.
    Unreachable = 3,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: without_secret_keys(text.into()), unread: false }
    }

    /// What a library says: the code in its text goes to the front; if it has none, it is this one.
    pub(crate) fn told(otherwise: Code, text: impl Into<String>) -> Self {
        let text = text.into();
        match Code::find(&text) {
            Some(code) => Self::new(code, text.replacen(&format!("{code}: "), "", 1)),
            None => Self::new(otherwise, text),
        }
    }

    /// The same failure, said of what a configuration file holds, if the usage is wrong.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        if self.exit() != Exit::Usage {
            return self;
        }
        Self { text: format!("--config {}: {}", file.display(), self.text), ..self }
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// The same call, given that nobody leads: `why`, and what to do `next`.
    pub(crate) fn without_a_leader(self, why: &str, next: &str) -> Self {
        let tried = self.text.split("; next: ").next().unwrap_or_default();
        Self::new(Code::NoLeader, format!("{why} ({tried}); next: {next}"))
    }

    /// Tells the log that a process ends of this, if it is one whose log somebody reads. What is wrong with a
    /// command line is told to who typed it.
    pub(crate) fn log_the_end(&self) {
        if self.exit() != Exit::Usage {
            tracing::error!(code = logging::number(self.code), reason = self.text, "this process ends");
        }
    }

    /// Tells whoever looks on, or the program that asked for data as JSON. That nobody reads on is told to nobody.
    pub(crate) fn tell(&self, format: Format) {
        match format {
            _ if self.unread => {}
            Format::Table => output::note(&format!("error: {self}")),
            Format::Json => output::note_json(&self.view()),
        }
    }

    fn view(&self) -> FailureView<'_> {
        FailureView {
            error: &self.text,
            code: format!("T{:04}", self.code.number()),
            slug: self.code.slug(),
            exit_code: self.exit() as u8,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        exit(self.code)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.unread { BY_SIGPIPE } else { self.exit() as u8 })
    }
}

/// The same without what of a key is secret.
fn without_secret_keys(mut text: String) -> String {
    let mut at = 0;
    while let Some(found) = text[at..].to_ascii_uppercase().find(SECRET_KEY) {
        at += found + SECRET_KEY.len();
        let letters = text[at..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        if letters > 0 {
            text.replace_range(at..at + letters, "...");
        }
    }
    text
}

/// What a process ends with that ends with this code.
pub(crate) fn exit(code: Code) -> Exit {
    match code {
        Code::Usage
        | Code::FlagsConflict
        | Code::EnforceOpen
        | Code::ValueIllegal
        | Code::NotConfirmed
        | Code::TaskUnnamed
        | Code::TfConfig
        | Code::CodeUnknown
        | Code::ConfigUnreadable
        | Code::ConfigSyntax
        | Code::ConfigKey
        | Code::ConfigValue
        | Code::ConfigMissing
        | Code::ConfigVariable
        | Code::PlainText
        | Code::RestorePlan
        | Code::DoctorNoData
        | Code::RecoverStranger
        | Code::TaskUnknown => Exit::Usage,
        Code::NameUnresolved | Code::TlsRefused | Code::NotConnected | Code::NoAnswer | Code::NoLeader => {
            Exit::Unreachable
        }
        _ => Exit::Failed,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

impl From<tripod_client::Error> for Failure {
    fn from(error: tripod_client::Error) -> Self {
        use tripod_client::Error;
        // What a node says may be made of what clients said: it stays one line.
        let text = output::text(&error.to_string()).into_owned();
        let code = match &error {
            Error::Config(_) => Code::ValueIllegal,
            Error::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            // A node was reached, and did not hold, or refused this side.
            Error::Unavailable { .. } if Code::find(&text) == Some(Code::TlsRefused) => {
                return Self::told(Code::TlsRefused, text);
            }
            Error::Unavailable { .. } => of_phase(error.phase()),
            Error::Refused { .. } if error.is_unknown_call() => Code::CallUnknown,
            // The node's own words may have a code.
            Error::Refused { reason, .. } => return Self::told(refused(reason), text),
        };
        Self::new(code, text)
    }
}

/// What it means that no node answered, by how far the attempt came that came furthest.
pub(crate) fn of_phase(phase: Option<Phase>) -> Code {
    match phase {
        Some(Phase::Resolve) => Code::NameUnresolved,
        Some(Phase::Connect) => Code::NotConnected,
        Some(Phase::Leader) => Code::NoLeader,
        Some(Phase::Call | Phase::Commit) | None => Code::NoAnswer,
    }
}

/// What a refusal means, by its machine-readable reason.
fn refused(reason: &str) -> Code {
    match reason {
        "job-unknown" => Code::JobUnknown,
        "job-exists" => Code::JobExists,
        "job-name-invalid" | "job-spec-invalid" => Code::JobIllegal,
        "job-slots-taken" => Code::JobPortsTaken,
        "job-replaced" => Code::JobReplaced,
        "key-exists" => Code::KeyExists,
        "key-missing" => Code::KeyUnknown,
        "version-mismatch" => Code::KeyVersion,
        "limit-exceeded" => Code::LimitExceeded,
        "session-expired" | "reply-forgotten" | "session-window" => Code::SessionEnded,
        "overloaded" => Code::Overloaded,
        "saves-full" => Code::SavesFull,
        "disk-full" => Code::DiskFull,
        "job-full" => Code::JobFull,
        "state-full" => Code::StateFull,
        "not-leader" => Code::NoLeader,
        "change-in-progress" => Code::ChangeInProgress,
        "member-unknown" | "member-not-added" => Code::MemberUnknown,
        "member-removed" => Code::NodeRemoved,
        "member-had-data" => Code::JoinLost,
        "member-name" => Code::NodeName,
        "address-taken" | "address-malformed" | "address-stranger" => Code::AddressRefused,
        "nothing-to-change" => Code::NothingToChange,
        "member-silent" => Code::MemberSilent,
        "member-lagging" => Code::MemberLagging,
        "nobody-else" => Code::NobodyElse,
        "level-too-low" => Code::LevelLow,
        "level-too-old" => Code::LevelOld,
        "level-data" => Code::LevelHeld,
        "level-not-pinned" => Code::LevelPinRange,
        "level-unsupported" => Code::LevelMember,
        "last-voter" => Code::LastVoter,
        "quorum-lost" => Code::QuorumLost,
        "change-not-open" => Code::ChangeNotOpen,
        "mindspore-not-ready" => Code::ClusterNotReady,
        "mindspore-scale" => Code::ScaleRefused,
        "mindspore-plan" => Code::PlanOutdated,
        "mindspore-nothing-to-abort" => Code::NothingToAbort,
        _ => Code::Refused,
    }
}

/// What a node says of itself when its own cluster does not answer.
impl From<Outage> for Failure {
    fn from(outage: Outage) -> Self {
        let code = match &outage {
            Outage::NoLeader { .. } => Code::NoLeader,
            Outage::Unknown(_) => Code::OutcomeUnknown,
            Outage::Overloaded(_) => Code::Overloaded,
            Outage::DiskFull(_) => Code::DiskFull,
            Outage::JobFull(_) => Code::JobFull,
            Outage::StateFull(_) => Code::StateFull,
            Outage::Level(_) => Code::LevelLow,
            Outage::Stopping => Code::NodeEnded,
        };
        Self::told(code, outage.to_string())
    }
}

impl From<tripod_agent::Error> for Failure {
    fn from(error: tripod_agent::Error) -> Self {
        let code = match error {
            tripod_agent::Error::Config(_) => Code::ValueIllegal,
            tripod_agent::Error::Listen(_) => Code::ListenFailed,
            tripod_agent::Error::Serve { .. } => Code::AgentFailed,
        };
        Self::told(code, error.to_string())
    }
}

impl From<tripod_worker::WorkerError> for Failure {
    fn from(error: tripod_worker::WorkerError) -> Self {
        use tripod_worker::{BeginError, WorkerError};
        match error {
            WorkerError::Begin(BeginError::Cluster(error)) => Self::from(error),
            error => Self::told(Code::WorkerFailed, error.to_string()),
        }
    }
}

impl From<tripod_objstore::Error> for Failure {
    fn from(error: tripod_objstore::Error) -> Self {
        let code = match error {
            tripod_objstore::Error::Config(_) => Code::ValueIllegal,
            tripod_objstore::Error::Listen { .. } => Code::ListenFailed,
            _ => Code::StoreFailed,
        };
        Self::told(code, error.to_string())
    }
}

/// Standard output is gone or full.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let unread = error.kind() == ErrorKind::BrokenPipe;
        Self { unread, ..Self::new(Code::OutputFailed, format!("cannot write the output: {error}")) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tripod_client::{Attempt, Error};

    use super::*;

    const OF_CALLS: &str = include_str!("../../native/src/status.rs");
    const OF_CLUSTERS: &str = include_str!("../../native/src/status/mindspore.rs");
    const OF_MEMBERS: &str = include_str!("../../native/src/status/member.rs");

    /// Of refusals that nodes of a cluster are told.
    const OF_NODES: [&str; 1] = ["mindspore-node"];

    /// The reason words in a table of refusals.
    fn reasons(table: &str) -> impl Iterator<Item = &str> {
        let before_tests = table.split("#[cfg(test)]").next().unwrap_or_default();
        before_tests
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|word| word.contains('-') && word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
    }

    #[test]
    fn every_reason_that_the_command_line_may_meet_has_a_code() {
        let met = [
            "job-",
            "key-",
            "version-mismatch",
            "limit-",
            "session-",
            "reply-",
            "overloaded",
            "saves-",
            "disk-full",
            "state-full",
        ];
        let of_calls = reasons(OF_CALLS).filter(|word| met.iter().any(|met| word.starts_with(met)));
        // Answers to these are told by how far the call came.
        let phases = ["no-leader", "outcome-unknown"];
        let of_members = reasons(OF_MEMBERS).filter(|word| !phases.contains(word));
        // Other words than these are for nodes, which no command is.
        let of_clusters = reasons(OF_CLUSTERS).filter(|word| !OF_NODES.contains(word));
        let mut found = 0;
        for word in of_calls.chain(of_members).chain(of_clusters) {
            assert_ne!(refused(word), Code::Refused, "{word}");
            found += 1;
        }
        assert!(found >= 25, "{found}");
        assert_eq!(refused("something-new"), Code::Refused);
    }

    #[test]
    fn a_code_stands_in_front_of_a_text_once() {
        let own = Failure::new(Code::KeyUnknown, "there is no key `x`");
        assert_eq!(own.to_string(), "T6201 key-unknown: there is no key `x`");
        let told = Failure::told(Code::NodeEnded, "node 1 cannot go on: T3102 log-io: cannot sync");
        assert_eq!(told.code(), Code::LogIo);
        assert_eq!(told.to_string(), "T3102 log-io: node 1 cannot go on: cannot sync");
        assert_eq!(Failure::told(Code::Defect, "T3104 log-locked: x").to_string(), "T3104 log-locked: x");
        let uncoded = Failure::told(Code::NodeEnded, "something");
        assert_eq!(uncoded.to_string(), "T4206 node-ended: something");
    }

    #[test]
    fn a_call_that_failed_is_told_by_how_far_it_came() {
        let failed = |phase| {
            let attempts =
                vec![Attempt { endpoint: "a:1".into(), phase, cause: "T3202 leader-stalled: x".into() }];
            Failure::from(Error::Unavailable { what: "kv get", waited: Duration::ZERO, attempts })
        };
        for (phase, code) in [
            (Phase::Resolve, Code::NameUnresolved),
            (Phase::Connect, Code::NotConnected),
            (Phase::Call, Code::NoAnswer),
            (Phase::Leader, Code::NoLeader),
        ] {
            let failure = failed(phase);
            assert_eq!((failure.code(), failure.exit()), (code, Exit::Unreachable));
            assert!(failure.to_string().starts_with(&format!("{code}: kv get: ")), "{failure}");
        }
    }

    #[test]
    fn n24_a_failure_for_programs_has_its_code_beside_its_text() {
        let failure = Failure::new(Code::KeyUnknown, "there is no key `x`");
        let json = serde_json::to_value(failure.view()).expect("JSON");
        let expected = serde_json::json!({
            "error": "there is no key `x`",
            "code": "T6201",
            "slug": "key-unknown",
            "exit_code": 1,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_secret_key_that_was_given_by_mistake_is_told_without_what_is_secret_of_it() {
        let key = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
        let text = format!("'{key}', '{}', `AGE-SECRET-KEY-1...` é", key.to_ascii_lowercase());
        let told = Failure::new(Code::Usage, text).text;
        assert_eq!(told, "'AGE-SECRET-KEY-1...', 'age-secret-key-1...', `AGE-SECRET-KEY-1...` é");
    }

    #[test]
    fn n18_only_a_closed_pipe_ends_as_by_sigpipe() {
        let ending = |kind: ErrorKind| format!("{:?}", Failure::from(io::Error::from(kind)).exit_code());
        let of = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(ending(ErrorKind::BrokenPipe), of(141));
        assert_eq!(ending(ErrorKind::StorageFull), of(1));
    }

    #[test]
    fn wrong_usage_names_the_file_that_it_may_stand_in() {
        let file = Path::new("server.toml");
        let wrong = Failure::new(Code::FlagsConflict, "x").in_file(file);
        assert_eq!(wrong.to_string(), "T1102 flags-conflict: --config server.toml: x");
        let other = Failure::new(Code::ListenFailed, "x").in_file(file);
        assert_eq!(other.to_string(), "T1401 listen-failed: x");
    }
}
