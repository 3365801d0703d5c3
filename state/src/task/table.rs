//! All tasks of a job.

use imbl::OrdSet;

use crate::fault::Fault;
use crate::ids::{TaskId, TaskVersion};
use crate::memory::{Edit, Weigh, Weighed, of_list, of_set, of_shared, of_text};
use crate::task::Phase;
use crate::task::record::{ABSENT, Life, Task};

/// The tasks `0..size`. Only those that somebody has heard of have a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    size: u32,
    version: TaskVersion,
    records: Weighed<TaskId, Task>,
    // Derived from the records.
    connected: u32,
    in_error: OrdSet<TaskId>,
    device_bytes: u64,
}

impl Table {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            size,
            version: TaskVersion(0),
            records: Weighed::default(),
            connected: 0,
            in_error: OrdSet::new(),
            device_bytes: 0,
        }
    }

    pub(crate) fn contains(&self, task: TaskId) -> bool {
        u32::try_from(task.0).is_ok_and(|id| id < self.size)
    }

    pub(crate) fn get(&self, task: TaskId) -> &Task {
        self.records.get(&task).unwrap_or(&ABSENT)
    }

    /// The ids of all tasks, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0..self.size).map_while(|id| i32::try_from(id).ok()).map(TaskId)
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = (&TaskId, &Task)> {
        self.records.iter()
    }

    pub(crate) fn record_count(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn version(&self) -> TaskVersion {
        self.version
    }

    pub(crate) fn connected(&self) -> u32 {
        self.connected
    }

    pub(crate) fn in_error(&self) -> &OrdSet<TaskId> {
        &self.in_error
    }

    pub(crate) fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// The tasks that are connected or in error, ascending.
    pub(crate) fn not_disconnected(&self) -> Vec<TaskId> {
        let present = self.records.iter().filter(|(_, task)| task.phase() != Phase::Disconnected);
        present.map(|(id, _)| *id).collect()
    }

    pub(crate) fn bump_version(&mut self) {
        self.version.0 += 1;
    }

    /// Changes a task's record. Its life and its devices change by the methods below.
    pub(crate) fn edit(&mut self, task: TaskId) -> Edit<'_, Task> {
        assert!(self.contains(task), "the caller checked that the job has this task");
        if !self.records.contains_key(&task) {
            self.records.insert(task, ABSENT.clone());
        }
        self.records.edit(&task).expect("it is there by now")
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.around().saturating_add(self.records.bytes())
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.around().saturating_add(self.records.recounted())
    }

    /// What is beside their records.
    fn around(&self) -> u64 {
        self.device_bytes.saturating_add(of_set::<TaskId>(self.in_error.len()))
    }

    pub(crate) fn set_life(&mut self, id: TaskId, life: Life) {
        let mut task = self.edit(id);
        let before = task.phase();
        task.life = life;
        let after = task.phase();
        drop(task);
        self.count(id, before, after);
    }

    /// Keeps a task's devices, unless it has handed in some before.
    pub(crate) fn set_devices(&mut self, id: TaskId, devices: Vec<bytes::Bytes>) {
        let size: u64 = devices.iter().map(|device| device.len() as u64).sum();
        let mut task = self.edit(id);
        let first = task.devices.is_none();
        if first {
            task.devices = Some(std::sync::Arc::new(devices));
        }
        drop(task);
        if first {
            self.device_bytes += size;
        }
    }

    /// Puts back a task of a snapshot; `false` unless it belongs here and comes after all others.
    pub(crate) fn restore(&mut self, id: TaskId, task: Task) -> bool {
        if !self.contains(id) || self.records.get_max().is_some_and(|(last, _)| *last >= id) {
            return false;
        }
        let devices = task.devices.iter().flat_map(|devices| devices.iter());
        self.device_bytes += devices.map(|device| device.len() as u64).sum::<u64>();
        self.count(id, Phase::Disconnected, task.phase());
        self.records.insert(id, task);
        true
    }

    pub(crate) fn restore_version(&mut self, version: TaskVersion) {
        self.version = version;
    }

    fn count(&mut self, id: TaskId, before: Phase, after: Phase) {
        match before {
            Phase::Connected => self.connected -= 1,
            Phase::Error => {
                self.in_error.remove(&id);
            }
            Phase::Disconnected => {}
        }
        match after {
            Phase::Connected => self.connected += 1,
            Phase::Error => {
                self.in_error.insert(id);
            }
            Phase::Disconnected => {}
        }
    }
}

impl Weigh for Task {
    /// Without the bytes of its devices, which the table counts.
    fn outside(&self) -> u64 {
        let of_error = match &self.life {
            // The others, of which every task of a job may be told, are shared.
            Life::Error(fault) => match fault.as_ref() {
                Fault::Reported { message, .. } => {
                    of_shared::<Fault>().saturating_add(of_text(message.len()))
                }
                _ => 0,
            },
            Life::Disconnected { .. } | Life::Connected => 0,
        };
        let of_devices = self.devices.as_ref().map_or(0, |devices| of_list::<bytes::Bytes>(devices.len()));
        of_error.saturating_add(of_devices)
    }
}
