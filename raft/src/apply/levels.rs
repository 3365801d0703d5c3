//! What the log has meant for the levels of the node that applied it. Not a part of the state: at a low level that
//! has no room for it.

use std::collections::BTreeMap;

use tripod_state::ids::FeatureLevel;
use tripod_state::level::{self, Command as Change};
use tripod_state::{Command, Reply};

/// Changes together with the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct AppliedLevels {
    /// The last entry that needs each level above the first, of those applied since the state was read from a
    /// snapshot.
    newest: BTreeMap<FeatureLevel, u64>,
    /// This node is to be counted as supporting no more.
    pub(crate) pin: Option<FeatureLevel>,
    /// A snapshot has taken the place of a part of the log, in which a pin may have been, and no command about pins
    /// has come since.
    skipped: bool,
}

/// What of a command concerns the levels of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Note {
    needs: FeatureLevel,
    /// The pin that it wants, if it is about that.
    pin: Option<Option<FeatureLevel>>,
}

impl Note {
    /// `level`: at which it is applied.
    pub(crate) fn of(command: &Command, level: FeatureLevel) -> Self {
        let pin = match command {
            Command::Level(Change::Pin { level, .. }) => Some(Some(*level)),
            Command::Level(Change::Unpin { .. }) => Some(None),
            _ => None,
        };
        Self { needs: command.needs_at(level), pin }
    }
}

impl AppliedLevels {
    /// Of a node that has applied nothing, and was pinned before.
    pub(crate) fn pinned(pin: Option<FeatureLevel>) -> Self {
        Self { pin, ..Self::default() }
    }

    /// Of a node whose state was replaced by that of a snapshot.
    pub(crate) fn behind_snapshot(pin: Option<FeatureLevel>) -> Self {
        Self { pin, skipped: true, ..Self::default() }
    }

    /// Whether there may be a pin that this node does not know.
    pub(crate) fn may_lack_pin(&self) -> bool {
        self.skipped && self.pin.is_none()
    }

    /// Takes another node's word on the pin, unless this one knows better by now. Whether it is pinned by that.
    pub(crate) fn inherit(&mut self, pin: Option<FeatureLevel>) -> bool {
        if !self.may_lack_pin() {
            return false;
        }
        (self.pin, self.skipped) = (pin, false);
        pin.is_some()
    }

    /// Takes in the command at `index`, of which this was noted before it was applied.
    pub(crate) fn take(&mut self, note: Note, index: u64, reply: &Reply) {
        if note.needs > level::FIRST {
            self.newest.insert(note.needs, index);
        }
        if let (Some(pin), Ok(_)) = (note.pin, reply) {
            (self.pin, self.skipped) = (pin, false);
        }
    }

    /// The last entry that needs more than `level`; 0: none.
    pub(crate) fn newest_above(&self, level: FeatureLevel) -> u64 {
        self.newest.iter().filter(|(needs, _)| **needs > level).map(|(_, index)| *index).max().unwrap_or(0)
    }

    /// The lowest level whose builds can read everything behind a snapshot that reaches to `saved`, if the state
    /// is at `level`.
    pub(crate) fn needed_behind(&self, saved: Option<u64>, level: FeatureLevel) -> FeatureLevel {
        let unsaved = self.newest.iter().filter(|(_, index)| saved.is_none_or(|saved| saved < **index));
        unsaved.map(|(needs, _)| *needs).chain([level]).max().expect("there is one")
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::Answer;

    use super::*;

    #[test]
    fn a_pin_is_inherited_only_behind_a_snapshot_and_when_no_command_said_otherwise() {
        let (one, done) = (Some(level::FIRST), Ok(Answer::Done));
        assert!(!AppliedLevels::default().inherit(one), "it has seen the whole log");
        let mut levels = AppliedLevels::behind_snapshot(None);
        assert!(levels.inherit(one) && levels.pin == one && !levels.may_lack_pin());
        let mut lifted = AppliedLevels::behind_snapshot(None);
        lifted.take(Note::of(&Command::Level(Change::Unpin { by: String::new() }), level::FIRST), 9, &done);
        assert!(!lifted.inherit(one) && lifted.pin.is_none());
        let mut free = AppliedLevels::behind_snapshot(None);
        assert!(!free.inherit(None) && !free.may_lack_pin(), "it has asked");
        assert!(!AppliedLevels::behind_snapshot(one).may_lack_pin());
    }

    /// What was applied by the rules of a level is not for builds that do not know them, whatever it is.
    #[test]
    fn an_older_build_may_have_the_directory_when_a_snapshot_covers_what_was_applied_at_the_level() {
        let mut levels = AppliedLevels::default();
        let ([three, four], done) = ([3, 4].map(FeatureLevel), Ok(Answer::Done));
        let open = Command::Session(tripod_state::session::Command::Open);
        let raise = Command::Level(Change::Raise { to: four, heard: Vec::new() });
        let pin = Command::Level(Change::Pin { level: three, by: String::new() });
        for (index, command, level) in
            [(5, &open, three), (6, &raise, three), (7, &open, four), (8, &pin, four)]
        {
            levels.take(Note::of(command, level), index, &done);
        }
        levels.take(Note::of(&open, three), 9, &done);
        assert_eq!(levels.newest_above(three), 8);
        assert_eq!(levels.needed_behind(Some(7), three), four);
        assert_eq!(levels.needed_behind(Some(8), three), three);
    }

    #[test]
    fn an_older_build_may_have_the_directory_when_a_snapshot_covers_the_pin() {
        let mut levels = AppliedLevels::default();
        let (two, done) = (FeatureLevel(2), Ok(Answer::Done));
        let pin = Command::Level(Change::Pin { level: level::FIRST, by: String::new() });
        levels.take(Note::of(&pin, two), 7, &done);
        assert_eq!((levels.pin, levels.newest_above(level::FIRST)), (Some(level::FIRST), 7));
        assert_eq!(levels.needed_behind(None, level::FIRST), two);
        assert_eq!(levels.needed_behind(Some(6), level::FIRST), two);
        assert_eq!(levels.needed_behind(Some(7), level::FIRST), level::FIRST);
        assert_eq!(levels.needed_behind(Some(7), two), two);
        let unpin = Note::of(&Command::Level(Change::Unpin { by: String::new() }), level::FIRST);
        levels.take(unpin, 8, &Err(level::Refusal::NotAbove { asked: two, level: two }.into()));
        assert_eq!(levels.pin, Some(level::FIRST), "it was refused");
        levels.take(unpin, 9, &done);
        assert_eq!(levels.pin, None);
    }
}
