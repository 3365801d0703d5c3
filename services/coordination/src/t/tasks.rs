//! The tasks that a message of dialect T names. The domain knows tasks by their numbers in the job, so every
//! message is translated before it is decoded.

use tripod_proto::tensorflow as pb;

use crate::names::Names;

/// A message that names tasks.
pub(super) trait NamesTasks {
    /// All of them; the sender first.
    fn tasks_mut(&mut self) -> Vec<&mut pb::CoordinatedTask>;
}

/// Puts each task's number in the job in place of its name.
pub(super) fn number(message: &mut impl NamesTasks, names: &mut Names) {
    for task in message.tasks_mut() {
        task.task_id = names.number(&task.job_name, task.task_id).0;
    }
}

/// A task without a number is absent: proto3 does not send zeroes.
fn sender(source: &mut Option<pb::CoordinatedTask>) -> &mut pb::CoordinatedTask {
    source.get_or_insert_default()
}

macro_rules! names_its_sender {
    ($($message:ident.$field:ident)*) => {$(
        impl NamesTasks for pb::$message {
            fn tasks_mut(&mut self) -> Vec<&mut pb::CoordinatedTask> {
                vec![sender(&mut self.$field)]
            }
        }
    )*};
}

names_its_sender! {
    CancelBarrierRequest.source_task
    HeartbeatRequest.source_task
    PollForErrorRequest.source_task
    RegisterTaskRequest.source_task
    ReportErrorToServiceRequest.error_origin
    ResetTaskRequest.source_task
    ShutdownTaskRequest.source_task
    WaitForAllTasksRequest.source_task
}

impl NamesTasks for pb::BarrierRequest {
    fn tasks_mut(&mut self) -> Vec<&mut pb::CoordinatedTask> {
        std::iter::once(sender(&mut self.source_task)).chain(&mut self.tasks).collect()
    }
}

impl NamesTasks for pb::GetAliveTasksRequest {
    fn tasks_mut(&mut self) -> Vec<&mut pb::CoordinatedTask> {
        std::iter::once(sender(&mut self.requesting_task)).chain(&mut self.tasks).collect()
    }
}

impl NamesTasks for pb::GetTaskStateRequest {
    fn tasks_mut(&mut self) -> Vec<&mut pb::CoordinatedTask> {
        self.source_task.iter_mut().collect()
    }
}

/// It names a group, not a task.
impl NamesTasks for pb::WatchJobStateRequest {
    fn tasks_mut(&mut self) -> Vec<&mut pb::CoordinatedTask> {
        Vec::new()
    }
}
