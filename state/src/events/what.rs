//! The kinds of events, and what each of them tells.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::events::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::ids::{BarrierCounter, DurationMs, FeatureLevel, NodeId, TaskId, Term};

/// What happened. Texts are [`TEXT_BYTES_MAX`] bytes at most and names [`NAME_BYTES_MAX`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum What {
    /// The job came into being, for that many tasks.
    JobCreated {
        name: Arc<str>,
        tasks: u32,
    },
    /// Somebody wrote a note about it; empty: took it away.
    JobNoted {
        note: Arc<str>,
    },
    JobDeleted,
    /// Tasks wait for the others to register.
    Registered,
    /// Another life of tasks that were there before.
    NewLife,
    /// Tasks take part.
    Connected,
    /// Tasks left as they should.
    Left,
    /// The processes of tasks ended, and whoever started them said how: of the first one in words.
    Ended {
        how: Arc<str>,
    },
    /// The leader had not heard tasks for too long.
    GivenUp,
    /// Tasks failed for a reason of their own: that of the first one.
    Failed {
        text: Arc<str>,
    },
    /// Tasks were ended because of others.
    EndedByOthers {
        text: Arc<str>,
    },
    /// The error that tasks are told from now on.
    ErrorLatched {
        text: Arc<str>,
    },
    /// A first task waits at a barrier.
    BarrierOpened {
        barrier: Arc<str>,
        counter: BarrierCounter,
        first: TaskId,
        timeout: DurationMs,
    },
    /// All have arrived, the last one so long after the first one.
    BarrierPassed {
        barrier: Arc<str>,
        counter: BarrierCounter,
        last: TaskId,
        after: DurationMs,
        tasks: u32,
    },
    /// The first one of those that failed, and why.
    BarrierFailed {
        barrier: Arc<str>,
        counter: BarrierCounter,
        text: Arc<str>,
    },
    /// An entry of another term than those before: another leader, or the same one elected again.
    TermChanged {
        term: Term,
    },
    /// A change of the members began or ended, in words.
    MembersChanged {
        text: Arc<str>,
    },
    /// A node is to have neither leadership nor clients, or is to have both again.
    Drained {
        node: NodeId,
        drained: bool,
    },
    LevelChanged {
        from: FeatureLevel,
        to: FeatureLevel,
    },
    /// The scheduler has lost a worker: the first one of them.
    WorkerLost {
        worker: Arc<str>,
        text: Arc<str>,
    },
    /// A task of the scheduler failed: the first one of them.
    SchedulerTaskFailed {
        function: Arc<str>,
        text: Arc<str>,
    },
    /// Results of a task of the scheduler were lost, so it runs again.
    ObjectRebuilt {
        function: Arc<str>,
    },
}

impl What {
    /// The kinds, in the order of the variants.
    pub const KINDS: [&'static str; 22] = [
        "job-created",
        "job-noted",
        "job-deleted",
        "registered",
        "new-life",
        "connected",
        "left",
        "ended",
        "given-up",
        "failed",
        "ended-by-others",
        "error-latched",
        "barrier-opened",
        "barrier-passed",
        "barrier-failed",
        "term-changed",
        "members-changed",
        "drained",
        "level-changed",
        "worker-lost",
        "scheduler-task-failed",
        "object-rebuilt",
    ];

    fn number(&self) -> usize {
        match self {
            Self::JobCreated { .. } => 0,
            Self::JobNoted { .. } => 1,
            Self::JobDeleted => 2,
            Self::Registered => 3,
            Self::NewLife => 4,
            Self::Connected => 5,
            Self::Left => 6,
            Self::Ended { .. } => 7,
            Self::GivenUp => 8,
            Self::Failed { .. } => 9,
            Self::EndedByOthers { .. } => 10,
            Self::ErrorLatched { .. } => 11,
            Self::BarrierOpened { .. } => 12,
            Self::BarrierPassed { .. } => 13,
            Self::BarrierFailed { .. } => 14,
            Self::TermChanged { .. } => 15,
            Self::MembersChanged { .. } => 16,
            Self::Drained { .. } => 17,
            Self::LevelChanged { .. } => 18,
            Self::WorkerLost { .. } => 19,
            Self::SchedulerTaskFailed { .. } => 20,
            Self::ObjectRebuilt { .. } => 21,
        }
    }

    /// The kind, as a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        Self::KINDS[self.number()]
    }

    /// Whether it explains an end or a change, so that traffic must not push it out. What a job can do all day is none: tasks of
    /// its scheduler fail, and a program may write its progress as a note.
    #[must_use]
    pub fn is_milestone(&self) -> bool {
        !matches!(
            self,
            Self::Registered
                | Self::Connected
                | Self::Left
                | Self::BarrierOpened { .. }
                | Self::BarrierPassed { .. }
                | Self::JobNoted { .. }
                | Self::SchedulerTaskFailed { .. }
                | Self::ObjectRebuilt { .. }
        )
    }

    /// Whether a newer one is of the same run, and one event tells both.
    pub(crate) fn takes(&self, newer: &Self) -> bool {
        match (self, newer) {
            (Self::BarrierOpened { barrier, .. }, Self::BarrierOpened { barrier: other, .. })
            | (Self::BarrierPassed { barrier, .. }, Self::BarrierPassed { barrier: other, .. })
            | (Self::ObjectRebuilt { function: barrier }, Self::ObjectRebuilt { function: other }) => {
                barrier == other
            }
            _ => newer.run() == Some(self.number()),
        }
    }

    /// The kind, if all of that kind within a second are one event whatever else they tell: what is the first one's is what
    /// explains the others.
    fn run(&self) -> Option<usize> {
        let alike = matches!(
            self,
            Self::Registered
                | Self::NewLife
                | Self::Connected
                | Self::Left
                | Self::Ended { .. }
                | Self::GivenUp
                | Self::Failed { .. }
                | Self::EndedByOthers { .. }
                | Self::ErrorLatched { .. }
                | Self::BarrierFailed { .. }
                | Self::WorkerLost { .. }
                | Self::SchedulerTaskFailed { .. }
        );
        alike.then(|| self.number())
    }

    /// Takes over of a newer one of the same run what is told of the newest: of a barrier that passes again and again.
    pub(crate) fn merge(&mut self, newer: &Self) {
        if matches!(self, Self::BarrierOpened { .. } | Self::BarrierPassed { .. }) {
            self.clone_from(newer);
        }
    }

    /// Names and texts in it.
    fn texts(&self) -> [Option<&Arc<str>>; 2] {
        match self {
            Self::JobCreated { name, .. } => [Some(name), None],
            Self::JobNoted { note } => [None, Some(note)],
            Self::Ended { how: text }
            | Self::Failed { text }
            | Self::EndedByOthers { text }
            | Self::ErrorLatched { text }
            | Self::MembersChanged { text } => [None, Some(text)],
            Self::BarrierOpened { barrier: name, .. }
            | Self::BarrierPassed { barrier: name, .. }
            | Self::ObjectRebuilt { function: name } => [Some(name), None],
            Self::BarrierFailed { barrier: name, text, .. }
            | Self::WorkerLost { worker: name, text }
            | Self::SchedulerTaskFailed { function: name, text } => [Some(name), Some(text)],
            Self::JobDeleted
            | Self::Registered
            | Self::NewLife
            | Self::Connected
            | Self::Left
            | Self::GivenUp
            | Self::TermChanged { .. }
            | Self::Drained { .. }
            | Self::LevelChanged { .. } => [None, None],
        }
    }

    /// What it is about besides tasks: a barrier, a worker, a function, a job.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.texts()[0].map(AsRef::as_ref)
    }

    /// What it says in words of somebody else: why, or how.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.texts()[1].map(AsRef::as_ref)
    }

    /// Bytes of names and texts.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.texts().into_iter().flatten().map(|text| text.len() as u64).sum()
    }

    /// Whether names and texts are within their bounds.
    pub(crate) fn is_legal(&self) -> bool {
        let [name, text] = self.texts();
        name.is_none_or(|name| name.len() <= NAME_BYTES_MAX)
            && text.is_none_or(|text| text.len() <= TEXT_BYTES_MAX)
    }
}

/// A name, or its beginning if it is too long.
pub(crate) fn name(name: &str) -> Arc<str> {
    cut(name, NAME_BYTES_MAX)
}

/// The same of a text.
pub(crate) fn text(text: &str) -> Arc<str> {
    cut(text, TEXT_BYTES_MAX)
}

/// A name that is shared already, if it is short enough.
pub(crate) fn shared(name: &Arc<str>) -> Arc<str> {
    if name.len() <= NAME_BYTES_MAX { Arc::clone(name) } else { cut(name, NAME_BYTES_MAX) }
}

fn cut(text: &str, most: usize) -> Arc<str> {
    text[..text.floor_char_boundary(most)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_words_of_their_own() {
        let mut words = What::KINDS.to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), What::KINDS.len());
        assert_eq!((What::JobDeleted.kind(), What::GivenUp.kind()), ("job-deleted", "given-up"));
        assert_eq!(What::ObjectRebuilt { function: "f".into() }.kind(), "object-rebuilt");
    }

    #[test]
    fn texts_end_at_a_letter_and_within_their_bounds() {
        let long = "\u{e4}".repeat(TEXT_BYTES_MAX);
        assert_eq!(
            (name(&long).len(), text(&long).len(), text("x").len()),
            (NAME_BYTES_MAX, TEXT_BYTES_MAX, 1)
        );
        assert!(
            What::Failed { text: text(&long) }.is_legal() && !What::Failed { text: long.into() }.is_legal()
        );
    }

    #[test]
    fn failures_of_a_second_are_one_event_and_barriers_only_by_name() {
        let failed = |text: &str| What::Failed { text: text.into() };
        assert!(failed("a").takes(&failed("b")) && !failed("a").takes(&What::GivenUp));
        let passed = |barrier: &str| What::BarrierPassed {
            barrier: barrier.into(),
            counter: BarrierCounter(0),
            last: TaskId(0),
            after: DurationMs(1),
            tasks: 2,
        };
        assert!(passed("a").takes(&passed("a")) && !passed("a").takes(&passed("b")));
        assert!(!What::JobDeleted.takes(&What::JobDeleted));
    }

    #[test]
    fn what_can_go_on_all_day_is_no_milestone() {
        let failed = What::SchedulerTaskFailed { function: "f".into(), text: "no".into() };
        let lost = What::WorkerLost { worker: "w".into(), text: "gone".into() };
        assert!(!failed.is_milestone() && lost.is_milestone());
        assert!(!What::JobNoted { note: "step 7".into() }.is_milestone() && What::JobDeleted.is_milestone());
    }
}
