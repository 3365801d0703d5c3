//! The commands about the level, and what a command is refused for that comes too early.

use imbl::OrdMap;

use crate::command::{Answer, Command as AnyCommand, Effect, Reply};
use crate::fault::Fault;
use crate::identity::{Floor, Mode};
use crate::ids::{FeatureLevel, JobName};
use crate::level::replies::read_from;
use crate::level::{Command, FIRST, Kind, Refusal, Rule};
use crate::ray::Ray;
use crate::state::State;
use crate::token::Tokens;
use crate::wait::DomainId;

/// Jobs that a refusal names.
const NAMED_MAX: usize = 3;

impl State {
    /// The level in force.
    #[must_use]
    pub fn level(&self) -> FeatureLevel {
        self.levels.level
    }

    /// Why the level in force does not allow a command, if so.
    #[must_use]
    pub fn too_early(&self, command: &AnyCommand) -> Option<Refusal> {
        let Kind { name, needs } = command.kind();
        let level = self.level();
        let early = needs > level && !command.is_about_level();
        early.then(|| Refusal::TooLow { command: name.to_owned(), needs, level })
    }

    /// What in the state a build could not read that supports no more than `level`.
    ///
    /// # Errors
    /// The first thing found.
    pub fn fits(&self, level: FeatureLevel) -> Result<(), Refusal> {
        let needs = Kind::SET_FLOOR.needs;
        if level < needs && self.floor.mode != Mode::Off {
            return Err(Refusal::Floor { needs });
        }
        // With which every scheduler begins.
        let needs = Kind::RAY_REGISTER_STORE.needs;
        if level < needs {
            let with = self.jobs.iter().filter(|job| job.domains.ray.is_some());
            let names: Vec<JobName> = with.map(|job| job.name.clone()).collect();
            if !names.is_empty() {
                let count = names.len() as u64;
                return Err(Refusal::Schedulers {
                    needs,
                    count,
                    jobs: names.into_iter().take(NAMED_MAX).collect(),
                });
            }
        }
        let needs = Kind::RAY_SUBMIT_WITH.needs;
        if level < needs {
            let with =
                self.jobs.iter().filter(|job| job.domains.ray.as_deref().is_some_and(Ray::needs_level_10));
            let names: Vec<JobName> = with.map(|job| job.name.clone()).collect();
            if !names.is_empty() {
                let count = names.len() as u64;
                return Err(Refusal::Scheduled {
                    needs,
                    count,
                    jobs: names.into_iter().take(NAMED_MAX).collect(),
                });
            }
        }
        // With which every cluster begins, but for entries that came before it.
        let needs = Kind::TOPOLOGY_REGISTER.needs.max(Kind::CLUSTER_REGISTER.needs);
        if level < needs {
            let domains = self.jobs.iter().map(|job| (&job.domains, job));
            let with = domains.filter(|(held, _)| held.topology.is_some() || held.cluster.is_some());
            let with = with.map(|(_, job)| job);
            let names: Vec<JobName> = with.map(|job| job.name.clone()).collect();
            if !names.is_empty() {
                let count = names.len() as u64;
                return Err(Refusal::Clusters {
                    needs,
                    count,
                    jobs: names.into_iter().take(NAMED_MAX).collect(),
                });
            }
        }
        // With which sessions begin.
        let needs = Kind::MARS_CREATE_SESSION.needs;
        if level < needs {
            let with = self.jobs.iter().filter(|job| job.domains.mars.is_some());
            let names: Vec<JobName> = with.map(|job| job.name.clone()).collect();
            if !names.is_empty() {
                let count = names.len() as u64;
                let jobs = names.into_iter().take(NAMED_MAX).collect();
                return Err(Refusal::Sessions { needs, count, jobs });
            }
        }
        let needs = Kind::MEMBER_DRAIN.needs;
        if level < needs && !self.drained.is_empty() {
            return Err(Refusal::Drained { needs, nodes: self.drained.iter().copied().collect() });
        }
        let needs = Kind::JOB_NOTE.needs;
        if level >= needs || self.notes.is_empty() {
            return Ok(());
        }
        let named = self.notes.keys().take(NAMED_MAX).filter_map(|job| self.jobs.get(*job));
        let jobs: Vec<JobName> = named.map(|job| job.name.clone()).collect();
        Err(Refusal::Notes { needs, count: self.notes.len() as u64, jobs })
    }

    pub(crate) fn apply_level(&mut self, command: &Command, effects: &mut Vec<Effect>) -> Reply {
        match command {
            Command::Raise { to, heard } => {
                let level = self.level();
                if *to <= level {
                    return Err(Refusal::NotAbove { asked: *to, level }.into());
                }
                if let Some((node, _)) = self.registry.nodes().find(|(node, _)| !heard.contains(node)) {
                    return Err(Refusal::NotHeard { node }.into());
                }
                self.levels.level = *to;
                if Rule::RoomBesideWaiting.holds_at(*to) {
                    // What has taken all slots may wait already, and would not say so again.
                    let changed = self.jobs.change_schedulers(Ray::make_room_beside_waiting);
                    let told = |job| Effect::DomainChanged { domain: DomainId::Ray, job };
                    effects.extend(changed.into_iter().map(told));
                }
            }
            Command::Pin { level: to, .. } => {
                let level = self.level();
                if *to > level || *to < FIRST {
                    return Err(Refusal::NoPin { asked: *to, level }.into());
                }
                self.fits(*to)?;
                self.levels.level = *to;
                if !Rule::OwnedSessions.holds_at(*to) {
                    // Their clients open others, as they do after an idle time.
                    self.sessions.close_owned();
                }
                self.jobs.forget_above(*to);
                if *to < Kind::TOKEN_CREATE.needs {
                    // Nobody who bears one is believed any more, as builds of that level believe none.
                    self.tokens = Tokens::default();
                    effects.push(Effect::TokensChanged);
                }
                if *to < Kind::BY.needs {
                    self.floor = Floor::default();
                    self.sessions.forget_openers();
                }
                // By the level that was: builds of an earlier one apply the same entry.
                if Rule::ReadableReplies.holds_at(level) {
                    self.sessions.forget_replies(|reply| read_from(reply) > *to);
                }
                if *to < Kind::MEMBER_BIND.needs && !self.names.is_empty() {
                    // Nodes say theirs again when the level is raised.
                    self.names = OrdMap::new();
                    effects.push(Effect::MemberChanged);
                }
                if !Rule::RoomBesideWaiting.holds_at(*to) {
                    self.jobs.change_schedulers(Ray::keep_within_slots);
                }
            }
            Command::Unpin { .. } => {}
        }
        Ok(Answer::Done)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Level(refusal)
    }
}
