//! Every bound of a scheduler, with its unit and its reason. Beyond one of them a request is refused with
//! [`Refusal::Full`] and the state is unchanged.

use crate::ray::refusal::Refusal;

/// Objects that something refers to.
pub const OBJECTS_MAX: u64 = 10_000_000;
/// Tasks that wait for a worker or for arguments.
pub const QUEUE_MAX: u64 = 1_000_000;
/// Orders that nobody has carried out. Only what makes more of them is refused, not what ends something.
pub const ORDERS_MAX: u64 = 2_000_000;
/// Gets that wait for their objects.
pub const GETS_MAX: u64 = 1_000_000;
/// Living workers and drivers, and stores.
pub const PEERS_MAX: u64 = 50_000;
/// Functions.
pub const FUNCTIONS_MAX: u64 = 100_000;
/// Bytes of a function's or a variable's name.
pub const NAME_BYTES_MAX: u64 = 4 << 10;
/// Results of one task: whoever looks for what is left of them goes through all.
pub const RESULTS_MAX: u64 = 1_000;
/// Arguments of one task with the ids nested in them.
pub const ARGUMENTS_MAX: u64 = 100_000;
/// Bytes of one task's arguments.
pub const TASK_BYTES_MAX: u64 = 1 << 20;
/// Exports, and bytes of all of them: every worker that comes is sent all.
pub const EXPORTS_MAX: u64 = 100_000;
/// See [`EXPORTS_MAX`].
pub const EXPORT_BYTES_MAX: u64 = 512 << 20;
/// Exports that were replaced and are dropped by one command, at most: a cluster that comes to the level at which they
/// are may have very many.
pub(crate) const EXPORTS_DROPPED_AT_ONCE: usize = 1_000;
/// Ids in one object.
pub const CONTAINED_MAX: u64 = 1_000_000;
/// Ids in one request that adds or drops references.
pub const REFERENCES_MAX: u64 = 1_000_000;
/// References to one object, per owner: sums over all owners stay far from overflow.
pub const COUNT_MAX: u64 = 1 << 40;
/// Requests in one batch.
pub const BATCH_MAX: u64 = 100_000;
/// Ids in all requests of one batch together.
pub const BATCH_IDS_MAX: u64 = 2_000_000;
/// Tasks that one worker may have at a time.
pub const SLOTS_MAX: u32 = 4_096;
/// Tasks that a worker with as many slots is given at first: it is given more with every report.
pub(crate) const WINDOW_FIRST: u32 = 2;
/// Tasks that one worker may have at a time, those included that wait for others: each of them is a thread there.
pub const HELD_MAX: u32 = 8_192;
/// Tasks that are not over and submitted each other, one within the other. One that goes on without an end is told so.
pub const NESTED_MAX: u64 = 1_000;
/// Calls of one task that are recognised when the task runs again.
pub const CHILDREN_MAX: usize = 100_000;
/// Bytes of an error text that is remembered.
pub const ERROR_BYTES_MAX: usize = 16 << 10;
/// Failed tasks that are told about.
pub const FAILED_KEPT: usize = 10_000;
/// Bytes of finished tasks that are remembered because they could make an object again.
pub const LINEAGE_BYTES_MAX: u64 = 256 << 20;
/// Finished operations that are shown in the computation graph without being needed.
pub const FINISHED_KEPT: usize = 10_000;
/// Deallocated objects of which it is remembered what they meant.
pub const GONE_KEPT: usize = 10_000;
/// Dead workers, and dead stores, that are shown.
pub const DEAD_KEPT: usize = 1_000;
/// Entries of the positional lists that are shown at a time.
pub const SHOWN_MAX: u64 = 1_000_000;
/// Ends of attempts that are told of one task, the last ones.
pub const HISTORY_KEPT: usize = 16;
/// Workers that may die with one task before it is not tried any more, if it may be tried without limit.
pub const POISON_DEATHS: u32 = 3;
/// Client sessions of one job.
pub const SESSIONS_MAX: u64 = 100_000;
/// Requests of one session that may be unacknowledged at a time.
pub const SESSION_WINDOW: u64 = 4_096;
/// Bytes of the answers that all sessions remember.
pub const SESSION_BYTES_MAX: u64 = 256 << 20;
/// How long a worker to which a task could not be handed is given none, in milliseconds.
pub const SUSPECT_MS: u64 = 1_000;
/// The longest time between two attempts, in milliseconds. The first retry is at once, the second after a second,
/// and each one after that waits twice as long as the one before.
pub const BACK_OFF_MS_MAX: u64 = 30_000;
/// Different things, by their names, that one task needs or one worker has: each is compared for each class of tasks
/// that wait.
pub const RESOURCES_MAX: u64 = 32;
/// Bytes of such a name.
pub const RESOURCE_NAME_BYTES_MAX: usize = 64;
/// Of one thing, in thousandths: sums stay far from overflow.
pub const RESOURCE_MILLI_MAX: u64 = 1_000_000_000;
/// Different needs of the tasks of one job that are remembered: a plan looks at each of them for each idle worker.
pub const CLASSES_MAX: u64 = 1_000;
/// How long a worker may be given to end a task that is cancelled, in milliseconds: it holds what others may need.
pub const GRACE_MS_MAX: u64 = 10 * 60 * 1_000;
/// How long after that nobody need have heard of the end, in milliseconds: the order and the report take their time.
pub const OVERDUE_AFTER_MS: u64 = 5_000;
/// Dimensions of an object that is described, as many as an array of NumPy can have.
pub const DIMENSIONS_MAX: u64 = 64;
/// Ports that workers are given, from the first one on, as upstream numbered them.
pub const FIRST_PORT: u16 = 40_000;
/// How many ports there are for the workers of a host.
pub const PORTS: u16 = 20_000;

/// Refuses what is beyond a limit. `what` says what was counted.
pub(crate) fn at_most(what: &str, actual: u64, limit: u64) -> Result<(), Refusal> {
    if actual <= limit { Ok(()) } else { Err(Refusal::Full { what: what.to_owned(), limit }) }
}
