//! What a node tells of the backups that it makes by itself.

use serde::Serialize;
use tripod_client::wire;

use crate::view::time::since;

/// Field names are a contract. Times are by the node's clock, in milliseconds since the Unix epoch.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScheduledView {
    directory: String,
    every_ms: u64,
    /// How many are kept at most, and how many there are.
    keep: u32,
    kept: u32,
    /// `null`: there is none yet.
    newest_file: Option<String>,
    newest_index: Option<u64>,
    saved_ms: Option<u64>,
    /// When it was read from its beginning to its end.
    verified_ms: Option<u64>,
    /// Why the last attempt made none.
    failure: Option<String>,
}

impl ScheduledView {
    pub(crate) fn of(told: &wire::Backups) -> Self {
        let there = !told.newest_file.is_empty();
        Self {
            directory: told.directory.clone(),
            every_ms: told.every_ms,
            keep: told.keep,
            kept: told.kept,
            newest_file: there.then(|| told.newest_file.clone()),
            newest_index: there.then_some(told.newest_index),
            saved_ms: there.then_some(told.saved_ms),
            verified_ms: there.then_some(told.verified_ms),
            failure: Some(told.failure.clone()).filter(|failure| !failure.is_empty()),
        }
    }

    /// One line for people: how old the newest one is, at `now_ms`. `shown` says an index.
    pub(crate) fn line(&self, now_ms: u64, shown: impl Fn(u64) -> String) -> String {
        let Self { directory, kept, keep, .. } = self;
        let newest = match (self.newest_index, self.saved_ms) {
            (Some(index), Some(saved_ms)) => {
                let verified = if self.verified_ms.is_some() { "verified" } else { "not verified" };
                format!("the newest of index {}, {} old, {verified}", shown(index), since(saved_ms, now_ms))
            }
            _ => "none yet".to_owned(),
        };
        format!("{newest}; {kept} of {keep} kept in {directory}")
    }

    /// What is wrong with it, if something is.
    pub(crate) fn trouble(&self, now_ms: u64) -> Option<String> {
        if let Some(failure) = &self.failure {
            return Some(format!("no backup is made: {failure}"));
        }
        let age_ms = now_ms.saturating_sub(self.saved_ms?);
        let late = age_ms > self.every_ms.saturating_mul(3);
        late.then(|| format!("the newest backup in {} is {} s old", self.directory, age_ms / 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> wire::Backups {
        wire::Backups {
            directory: "/mnt".to_owned(),
            every_ms: 10_000,
            keep: 24,
            kept: 1,
            newest_file: "f.snap".to_owned(),
            newest_index: 7,
            saved_ms: 1_000_000,
            verified_ms: 1_000_500,
            failure: String::new(),
        }
    }

    #[test]
    fn a_backup_that_is_late_or_failed_is_trouble() {
        let view = ScheduledView::of(&told());
        assert_eq!(view.trouble(1_030_000), None);
        assert_eq!(view.trouble(1_031_000).as_deref(), Some("the newest backup in /mnt is 31 s old"));
        let failed = ScheduledView::of(&wire::Backups { failure: "no room".to_owned(), ..told() });
        assert_eq!(failed.trouble(1_000_000).as_deref(), Some("no backup is made: no room"));
    }

    #[test]
    fn before_the_first_one_nothing_is_told_of_it() {
        let none = ScheduledView::of(&wire::Backups { newest_file: String::new(), ..told() });
        assert_eq!((none.newest_index, none.saved_ms, none.trouble(u64::MAX)), (None, None, None));
        assert_eq!(none.line(u64::MAX, |index| index.to_string()), "none yet; 1 of 24 kept in /mnt");
    }
}
