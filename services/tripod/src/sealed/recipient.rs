//! For whom a backup is sealed.

use std::str::FromStr;

use tripod_proto::code::Code;

use crate::failure::Failure;

/// More are refused: each has a part of its own at the head of every file.
pub(crate) const RECIPIENTS_MAX: usize = 16;

/// The public half of a pair of keys of age: `age1` and 58 letters and digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipient(age::x25519::Recipient);

impl Recipient {
    pub(super) fn of_age(&self) -> &dyn age::Recipient {
        &self.0
    }
}

impl FromStr for Recipient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") {
            return Err(
                "that is the secret half, which opens backups; give the recipient that belongs to it, \
                        as `age-keygen -y FILE` prints it"
                    .to_owned(),
            );
        }
        let parsed = text.parse().map(Self);
        parsed.map_err(|why: &'static str| {
            format!("no recipient of age (`age1` and 58 letters and digits): {why}; `age-keygen` makes one")
        })
    }
}

/// Refuses too many. `flag` is where they come from.
pub(crate) fn check_number(flag: &str, recipients: &[Recipient]) -> Result<(), Failure> {
    if recipients.len() <= RECIPIENTS_MAX {
        return Ok(());
    }
    let text = format!("{flag} names {} recipients, and {RECIPIENTS_MAX} is the most", recipients.len());
    Err(Failure::new(Code::ValueIllegal, text))
}
