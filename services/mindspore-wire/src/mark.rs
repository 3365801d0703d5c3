//! What an agent says with the frames that it passes on, and what a node says to agents alone.
//!
//! Neither protocol has a place for it, so it stands where clients say nothing that anybody reads: in a frame of dynamic
//! clusters the address that it comes from, in one of the parameter server a field of its meta with a high number. To a
//! marked frame there is always one answer: where the protocol has none, or cannot tell what has happened, that is a word.

use std::fmt;

/// What every mark begins with; the number is that of this form.
const BEGINNING: &str = "tripod/1";

/// A command's place in a session of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub session: u128,
    pub sequence: u64,
    /// The agent has the answers to everything before this place.
    pub acknowledged_below: u64,
}

/// Says that an agent passes a frame on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Of what changes something: all attempts have the same one.
    pub stamp: Option<Stamp>,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BEGINNING)?;
        match self.stamp {
            Some(Stamp { session, sequence, acknowledged_below }) => {
                write!(f, ":{session}.{sequence}.{acknowledged_below}")
            }
            None => Ok(()),
        }
    }
}

impl Mark {
    /// What is written there. `None`: no mark, and the frame is like one of any client.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let rest = std::str::from_utf8(text).ok()?.strip_prefix(BEGINNING)?;
        if rest.is_empty() {
            return Some(Self { stamp: None });
        }
        let mut numbers = rest.strip_prefix(':')?.split('.');
        let stamp = Stamp {
            session: numbers.next()?.parse().ok()?,
            sequence: numbers.next()?.parse().ok()?,
            acknowledged_below: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(Self { stamp: Some(stamp) })
    }
}

/// What a node answers to a marked frame where the protocol has no word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The client is to hear nothing; what the frame asked for is durable, or was refused.
    Silent,
    /// The session of the stamp is not known; this attempt was not executed.
    SessionGone,
    /// Whether the command took effect cannot be told any more.
    Unknown,
    /// The connection of a client that says this ends, and would each time.
    Refused,
}

impl Word {
    const ALL: [Self; 4] = [Self::Silent, Self::SessionGone, Self::Unknown, Self::Refused];

    /// As it is written. No message of upstream is called so.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Silent => "tripod-silent",
            Self::SessionGone => "tripod-session-gone",
            Self::Unknown => "tripod-unknown",
            Self::Refused => "tripod-refused",
        }
    }

    /// The word that is written so.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.text().as_bytes() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let stamp = Stamp { session: u128::MAX, sequence: 12, acknowledged_below: 9 };
        for mark in [Mark { stamp: None }, Mark { stamp: Some(stamp) }] {
            assert_eq!(Mark::read(mark.to_string().as_bytes()), Some(mark));
        }
        assert_eq!(Mark { stamp: Some(Stamp { session: 7, ..stamp }) }.to_string(), "tripod/1:7.12.9");
    }

    #[test]
    fn what_is_no_mark_is_none() {
        for text in
            ["", "@", "tripod", "tripod/2", "tripod/1:", "tripod/1:7", "tripod/1:7.12", "tripod/1:7.12.9.1"]
        {
            assert_eq!(Mark::read(text.as_bytes()), None, "{text}");
        }
        for text in ["tripod/1:7.x.9", "tripod/1:-7.12.9", "tripod/1 7.12.9", "tripod/17.12.9"] {
            assert_eq!(Mark::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Mark::read(b"tripod/1\xff"), None);
    }

    #[test]
    fn every_word_is_read_as_it_was_written() {
        for word in Word::ALL {
            assert_eq!(Word::read(word.text().as_bytes()), Some(word));
        }
        assert_eq!(Word::read(b"3"), None);
    }
}
