//! What servers have answered to what an operator told them all. Only the leader knows, and only of the last one of each
//! job: it is for the operator who waits, and what counts is in the log.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use parking_lot::Mutex;
use tripod_state::ids::JobId;

/// Bytes of what the servers of one job have answered. One says a few lines; what is beyond is not kept.
const ANSWERS_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
pub(crate) struct Switches {
    jobs: Mutex<HashMap<JobId, Answers>>,
}

/// Those to one switch, by the ranks of servers.
#[derive(Default)]
struct Answers {
    switch: u64,
    texts: BTreeMap<u32, Bytes>,
    bytes: usize,
}

impl Switches {
    /// A server has answered.
    pub(crate) fn note(&self, job: JobId, switch: u64, (rank, text): (u32, Bytes)) {
        let mut jobs = self.jobs.lock();
        let answers = jobs.entry(job).or_default();
        if answers.switch != switch {
            *answers = Answers { switch, ..Answers::default() };
        }
        if answers.bytes + text.len() <= ANSWERS_BYTES_MAX {
            answers.bytes += text.len();
            answers.texts.insert(rank, text);
        }
    }

    /// What there is, by rank.
    pub(super) fn of(&self, job: JobId, switch: u64) -> Vec<(u32, Bytes)> {
        let jobs = self.jobs.lock();
        let answers = jobs.get(&job).filter(|answers| answers.switch == switch);
        let texts = answers.into_iter().flat_map(|answers| &answers.texts);
        texts.map(|(rank, text)| (*rank, text.clone())).collect()
    }

    pub(super) fn end(&self, job: JobId) {
        self.jobs.lock().remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_the_last_switch_are_kept_as_far_as_there_is_room() {
        let (switches, job) = (Switches::default(), JobId(1));
        let text = |length| Bytes::from(vec![b'x'; length]);
        switches.note(job, 5, (0, text(3)));
        switches.note(job, 9, (1, text(4)));
        switches.note(job, 9, (0, text(2)));
        switches.note(job, 9, (2, text(ANSWERS_BYTES_MAX)));
        assert_eq!(switches.of(job, 9), [(0, text(2)), (1, text(4))]);
        assert_eq!((switches.of(job, 5), switches.of(JobId(2), 9)), (vec![], vec![]));
        switches.end(job);
        assert_eq!(switches.of(job, 9), []);
    }
}
