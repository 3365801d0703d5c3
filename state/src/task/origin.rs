//! Where the processes of tasks come from, for people who look for one of many: the registration says it, and whoever started
//! the process.

use serde::{Deserialize, Serialize};

use crate::command::{Command as AnyCommand, Reply};
use crate::ids::{FeatureLevel, Incarnation, JobId, TaskId};
use crate::job::turn::Turn;
use crate::level::Kind;
use crate::memory::{Weigh, of_list, of_text};
use crate::runtime;
use crate::snapshot::record::Piece;
use crate::task::lives::{Lives, Told};
use crate::task::{Command, Phase};

/// Bytes of a host's name or address in an [`Origin`]: of a longer one the beginning, which is what differs.
pub const ORIGIN_HOST_BYTES_MAX: usize = 128;
/// Bytes of what a client calls itself.
pub const ORIGIN_CLIENT_BYTES_MAX: usize = 64;
/// Bytes of the word for the build of an agent, and of that for a launcher.
pub const ORIGIN_WORD_BYTES_MAX: usize = 32;

/// Where the process of a task comes from, as far as it is known: what is empty or 0, nobody has said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Its name, or an address if nobody has said a name.
    pub host: String,
    /// The number of the process on its host, as whoever started it says.
    pub pid: u32,
    /// What the client calls itself: its library, with a version.
    pub client: String,
    /// The build of the agent by which it came.
    pub agent: String,
    /// Who started it, and as which of its own: `slurm 5`.
    pub launcher: String,
}

impl Origin {
    /// What whoever started a process says of it: the host as it is, of which a legal length is asked when it is noted, and no
    /// more of the rest than is kept.
    #[must_use]
    pub fn started(host: String, pid: u32, launcher: String) -> Self {
        Self { host, ..Self { pid, launcher, ..Self::default() }.bounded() }
    }

    /// Whether nobody has said anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same with no more of each text than is kept. What is for people alone is shortened, and never refused.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        shorten(&mut self.host, ORIGIN_HOST_BYTES_MAX);
        shorten(&mut self.client, ORIGIN_CLIENT_BYTES_MAX);
        shorten(&mut self.agent, ORIGIN_WORD_BYTES_MAX);
        shorten(&mut self.launcher, ORIGIN_WORD_BYTES_MAX);
        self
    }

    fn is_bounded(&self) -> bool {
        self.host.len() <= ORIGIN_HOST_BYTES_MAX
            && self.client.len() <= ORIGIN_CLIENT_BYTES_MAX
            && self.agent.len() <= ORIGIN_WORD_BYTES_MAX
            && self.launcher.len() <= ORIGIN_WORD_BYTES_MAX
    }

    /// What `newer` says, and what it does not say as it was.
    fn with(self, newer: Self) -> Self {
        let text = |newer: String, before: String| if newer.is_empty() { before } else { newer };
        Self {
            host: text(newer.host, self.host),
            pid: if newer.pid == 0 { self.pid } else { newer.pid },
            client: text(newer.client, self.client),
            agent: text(newer.agent, self.agent),
            launcher: text(newer.launcher, self.launcher),
        }
    }
}

fn shorten(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
    text.shrink_to_fit();
}

/// The origins of a job's tasks. One that says nothing is not kept.
pub(crate) type Origins = Lives<Box<Origin>>;

impl Origins {
    /// Something is said of this life. What was known of an earlier one is forgotten.
    pub(crate) fn add(&mut self, task: TaskId, incarnation: Incarnation, origin: Origin) {
        let known = self.take(task, incarnation).map(|known| *known).unwrap_or_default();
        let origin = known.with(origin.bounded());
        if !origin.is_empty() {
            self.keep(task, incarnation, Box::new(origin));
        }
    }
}

impl Weigh for Box<Origin> {
    fn outside(&self) -> u64 {
        let Origin { host, pid: _, client, agent, launcher } = &**self;
        let texts = [host, client, agent, launcher];
        let texts = texts.iter().fold(0, |sum: u64, text| sum.saturating_add(of_text(text.len())));
        of_list::<Origin>(1).saturating_add(texts)
    }
}

impl Told for Box<Origin> {
    const KEPT_SINCE: FeatureLevel = Kind::TASK_REGISTER_FROM.needs;

    fn is_legal(&self) -> bool {
        self.is_bounded() && !self.is_empty()
    }

    fn record(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Piece {
        Piece::Origin { job, task, incarnation, origin: self.clone() }
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Origin { job, .. } = record else { return None };
        Some(*job)
    }

    fn of_record(record: Piece) -> Option<(TaskId, Incarnation, Self)> {
        let Piece::Origin { task, incarnation, origin, .. } = record else { return None };
        Some((task, incarnation, origin))
    }
}

impl AnyCommand {
    /// A registration that says where it comes from, by whatever protocol; any other command as it is.
    #[must_use]
    pub fn with_origin(self, origin: impl FnOnce() -> Origin) -> Self {
        match self {
            Self::Task(command @ Command::Register { .. }) => Self::Task(command.with_origin(origin())),
            Self::Runtime(command @ runtime::Command::Connect { .. }) => {
                Self::Runtime(command.with_origin(origin()))
            }
            command => command,
        }
    }
}

impl Command {
    /// A registration that says where it comes from; any other command as it is.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        match self {
            Self::Register { scope, task, incarnation, recoverable, protocol } if !origin.is_empty() => {
                let origin = Box::new(origin);
                Self::RegisterFrom { scope, task, incarnation, recoverable, protocol, origin }
            }
            command => command,
        }
    }

    /// The same as it is sent where nobody can say that.
    pub(crate) fn without_origin(self) -> Self {
        match self {
            Self::RegisterFrom { scope, task, incarnation, recoverable, protocol, origin: _ } => {
                Self::Register { scope, task, incarnation, recoverable, protocol }
            }
            Self::NoteOrigin { scope, task, incarnation, origin } => {
                Self::NoteHost { scope, task, incarnation, host: origin.host }
            }
            command => command,
        }
    }
}

impl Turn<'_> {
    /// A registration was not refused: this is where it comes from.
    pub(crate) fn registered_from(&mut self, task: TaskId, incarnation: Incarnation, origin: Origin) {
        self.job.domains.origins.add(task, incarnation, origin);
    }

    /// What whoever started the process says of it, with its host for those who ask for that alone.
    pub(crate) fn note_origin(&mut self, task: TaskId, incarnation: Incarnation, origin: Origin) -> Reply {
        let reply = self.note_host(task, incarnation, &origin.host)?;
        let record = self.job.tasks.get(task);
        let is_another = record.phase() == Phase::Connected && record.incarnation != incarnation;
        if !is_another {
            self.job.domains.origins.add(task, incarnation, origin);
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::domains::Domain;

    fn of(origins: &Origins, task: TaskId, incarnation: Incarnation) -> Option<&Origin> {
        origins.of(task, incarnation).map(|origin| &**origin)
    }

    #[test]
    fn long_texts_are_shortened_between_letters_and_what_is_kept_is_256_bytes_at_most() {
        let text = "\u{e4}".repeat(200);
        let origin =
            Origin { host: text.clone(), pid: 7, client: text.clone(), agent: text.clone(), launcher: text };
        let kept = origin.bounded();
        let lengths = [&kept.host, &kept.client, &kept.agent, &kept.launcher].map(String::len);
        assert_eq!(lengths, [128, 64, 32, 32]);
        assert_eq!(lengths.iter().sum::<usize>(), 256);
        assert!(kept.is_bounded());
        let odd = Origin { client: format!("a{}", "\u{e4}".repeat(200)), ..Origin::default() }.bounded();
        assert_eq!((odd.client.len(), odd.client.ends_with('\u{e4}')), (63, true));
    }

    #[test]
    fn whoever_started_a_process_says_no_more_than_is_kept_and_a_host_that_is_judged_later() {
        let started = Origin::started("h".repeat(300), 7, "l".repeat(1 << 20));
        assert_eq!(
            (started.host.len(), started.pid, started.launcher.len()),
            (300, 7, ORIGIN_WORD_BYTES_MAX)
        );
    }

    #[test]
    fn what_is_said_later_of_the_same_life_is_added_and_of_another_one_replaces_it() {
        let (mut origins, task) = (Origins::default(), TaskId(3));
        let client = Origin { host: "10.0.0.7".into(), client: "grpc".into(), ..Origin::default() };
        let started = Origin { host: "a3-7".into(), pid: 4711, ..Origin::default() };
        origins.add(task, Incarnation(7), client.clone());
        origins.add(task, Incarnation(7), started.clone());
        let both = Origin { client: "grpc".into(), ..started.clone() };
        assert_eq!(of(&origins, task, Incarnation(7)), Some(&both));
        assert_eq!(origins.of(task, Incarnation(8)), None);
        origins.add(task, Incarnation(8), client.clone());
        assert_eq!(of(&origins, task, Incarnation(8)), Some(&client));
        assert_eq!(origins.bytes(), origins.recounted());
        origins.add(task, Incarnation(9), Origin::default());
        assert!(origins.is_empty(), "nothing is said of that life");
        assert_eq!(origins.bytes(), 0);
    }
}
