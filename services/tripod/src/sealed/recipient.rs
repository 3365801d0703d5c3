//! For whom a backup is sealed.

use std::str::FromStr;

use tripod_proto::code::Code;

use crate::failure::Failure;

/// More are refused: each has a part of its own at the head of every file.
pub(crate) const RECIPIENTS_MAX: usize = 16;

/// Points of small order, one for each value. Of what is sealed for one of them there is no secret, so anybody could open it;
/// and the library takes them for a broken source of random bits, and panics.
pub(super) const NOBODYS: [&str; 5] = [
    "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z",
    "age1qyqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqj7vrya",
    "age1ur4h5lpmgxu2u9jku0a0r87ydtdqnr0tnsetrlvxvgz3vh6fhqqqzyt4v9",
    "age1t7wft09r2zxzfvwsk92eeql0tvzyghxytqwgapkcyf8dm5ylz9ts6wm9s8",
    "age1anlllllllllllllllllllllllllllllllllllllllllllllllals4n2t7m",
];

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
        let refused = |why: &str| {
            format!("no recipient of age (`age1` and 58 letters and digits): {why}; `age-keygen` makes one")
        };
        let parsed: age::x25519::Recipient = text.parse().map_err(refused)?;
        // Equal is what has the same value, however it is written.
        let is_parsed =
            |text: &str| text.parse::<age::x25519::Recipient>().is_ok_and(|known| known == parsed);
        if NOBODYS.into_iter().any(is_parsed) {
            return Err(refused("it belongs to no identity"));
        }
        Ok(Self(parsed))
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
