//! What a line says.

use serde::{Deserialize, Deserializer, Serialize};

/// The longest text in a record, in bytes. A longer one is cut, as it may be anybody's.
pub const TEXT_BYTES_MAX: usize = 512;

/// One thing that somebody did, or tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When, in milliseconds since 1970 by the clock of the node.
    pub at_ms: u64,
    /// The node that wrote it down.
    pub node: Text,
    /// Who: the path of an identity behind its cluster, or a word.
    pub who: Text,
    /// As what.
    pub kind: Text,
    /// By what that was proved.
    pub how: How,
    /// The address from where it was done.
    pub from: Text,
    /// The RPC, as its path; empty if it was none.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub rpc: Text,
    /// The job, if it is about one.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub job: Text,
    /// What else it is about.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub resource: Text,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it was refused or failed: a word.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub reason: Text,
    /// The index of the log at which it took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// What it is, if it is no call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// By what it was proved who somebody is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// By nothing.
    #[default]
    Nothing,
    /// By a certificate.
    Cert,
    /// By a token.
    Token,
    /// By the port that was connected to.
    Listener,
    /// By the user id of the process at the other end.
    Uid,
}

/// What became of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    #[default]
    Done,
    /// It was refused.
    Refused,
    /// It was done, and would be refused if refusals were enforced.
    WouldRefuse,
    /// It failed.
    Failed,
    /// Nobody knows.
    Unknown,
    /// It begins; what became of it is said by a line behind this one.
    Begun,
}

/// What happened to a process or its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The log was opened. `resource` says what was cut off, if anything was.
    Opened,
    /// The process stops.
    Stopped,
    /// Settings or certificates were read anew.
    Reloaded,
    /// Another mode is in force.
    Mode,
}

/// A text of at most [`TEXT_BYTES_MAX`] bytes without signs of control: what is longer is cut, and other signs stand for those.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// As much of a text as a record holds.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut kept = String::new();
        for sign in text.chars() {
            let sign = if sign.is_control() { char::REPLACEMENT_CHARACTER } else { sign };
            if kept.len() + sign.len_utf8() > TEXT_BYTES_MAX {
                break;
            }
            kept.push(sign);
        }
        Self(kept)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How a user of this machine is called, by the number.
#[must_use]
pub fn user(uid: u32) -> String {
    format!("user/{uid}")
}

/// As what somebody acts whose path this is: `operator` of `operator/ann`, `agent` of `job/train/agent`. A word is its own kind.
#[must_use]
pub fn kind_of(who: &str) -> &str {
    let mut parts = who.split('/');
    let first = parts.next().unwrap_or_default();
    if first == "job" { parts.nth(1).unwrap_or(first) } else { first }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::of(text)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::of(&String::deserialize(from)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_signs_and_has_none_of_control() {
        let long = Text::of(&"ü".repeat(TEXT_BYTES_MAX));
        assert_eq!(long.as_str().chars().count(), TEXT_BYTES_MAX / 2);
        let odd = Text::of(&format!("a{}", "ü".repeat(TEXT_BYTES_MAX)));
        assert_eq!(odd.as_str().len(), TEXT_BYTES_MAX - 1);
        assert_eq!(Text::of("a\u{1b}[2Jb\n\u{9b}").as_str(), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_kind_is_what_somebody_is_within_a_job_and_not_that_there_is_one() {
        for (who, kind) in [
            ("operator/ann", "operator"),
            ("job/train/agent", "agent"),
            ("job/train/task/3", "task"),
            ("job/train", "job"),
            ("anonymous", "anonymous"),
            ("", ""),
        ] {
            assert_eq!(kind_of(who), kind, "{who:?}");
        }
    }
}
