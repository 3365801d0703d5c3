//! When the leader last heard each task of a job: asked by any node, for people who look. It is in the leader's memory
//! only, so after a change of leaders nobody knows it until the task is heard again.

use std::collections::BTreeMap;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tripod_state::ids::{DurationMs, FeatureLevel, Incarnation, JobId, TaskId};
use tripod_state::limits::JOB_TASKS_MAX;

/// From this feature level on whoever leads answers.
pub(crate) const SINCE: FeatureLevel = FeatureLevel(11);
/// Bytes of a question, and of each task in an answer.
const QUESTION_BYTES: usize = 8 + 4;
const TASK_BYTES: usize = 4 + 8 + 8;

/// How long ago the leader heard each task, with the life that it heard; those that it has not heard since it leads are
/// not there.
pub type HeartbeatAges = BTreeMap<TaskId, (Incarnation, DurationMs)>;

/// The tasks `0..tasks` of a job are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) job: JobId,
    pub(crate) tasks: u32,
}

impl Question {
    pub(crate) fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(QUESTION_BYTES);
        bytes.put_u64(self.job.0);
        bytes.put_u32(self.tasks);
        bytes.freeze()
    }

    /// # Errors
    /// It is no such question.
    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self, String> {
        if bytes.len() != QUESTION_BYTES {
            return Err(format!("a question of {} bytes for heartbeats", bytes.len()));
        }
        let (job, tasks) = (JobId(bytes.get_u64()), bytes.get_u32().min(JOB_TASKS_MAX));
        Ok(Self { job, tasks })
    }
}

pub(crate) fn encode(ages: impl Iterator<Item = (TaskId, Incarnation, DurationMs)>) -> Bytes {
    let mut bytes = BytesMut::new();
    for (task, incarnation, age) in ages {
        bytes.put_i32(task.0);
        bytes.put_u64(incarnation.0);
        bytes.put_u64(age.0);
    }
    bytes.freeze()
}

/// # Errors
/// It is no such answer.
pub(crate) fn decode(mut bytes: Bytes) -> Result<HeartbeatAges, String> {
    if !bytes.len().is_multiple_of(TASK_BYTES) || bytes.len() / TASK_BYTES > JOB_TASKS_MAX as usize {
        return Err(format!("an answer of {} bytes about heartbeats", bytes.len()));
    }
    let mut ages = HeartbeatAges::new();
    while bytes.has_remaining() {
        let task = TaskId(bytes.get_i32());
        ages.insert(task, (Incarnation(bytes.get_u64()), DurationMs(bytes.get_u64())));
    }
    Ok(ages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_and_answered_is_read_as_it_was_written_and_nothing_else_is() {
        let question = Question { job: JobId(300), tasks: 2 };
        assert_eq!(Question::decode(question.encode()), Ok(question));
        let greedy = Question { job: JobId(1), tasks: u32::MAX };
        assert_eq!(Question::decode(greedy.encode()).map(|read| read.tasks), Ok(JOB_TASKS_MAX));
        assert!(Question::decode(Bytes::from_static(b"short")).is_err());
        let told =
            [(TaskId(0), Incarnation(7), DurationMs(400)), (TaskId(3), Incarnation(u64::MAX), DurationMs(0))];
        let read = decode(encode(told.into_iter())).expect("as written");
        let expected = told.map(|(task, incarnation, age)| (task, (incarnation, age)));
        assert_eq!(read, HeartbeatAges::from(expected));
        assert!(decode(Bytes::from_static(&[0; TASK_BYTES + 1])).is_err());
        assert_eq!(decode(Bytes::new()), Ok(HeartbeatAges::new()));
    }
}
