//! Takes what an operator asks about the level.

use std::fmt;

use tripod_state::Fault;
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::level::{Command, Refusal};

use super::{LevelGate, Own, Survey, survey};
use crate::base::error::ProposeError;
use crate::lead::leadership::LeadershipWatch;
use crate::lead::submit::Submitter;

/// What can be asked about the level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LevelRequest {
    /// What it is, and what every member supports. Any node answers.
    Show,
    /// Lower it, or leave it, and keep it from being raised. Only the leader takes it.
    Pin { level: FeatureLevel, by: String },
    /// Let it be raised again. Only the leader takes it.
    Unpin { by: String },
}

/// The level, and who supports what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// In force, as far as the node that answers has applied the log.
    pub level: FeatureLevel,
    /// In ascending order of id.
    pub members: Vec<MemberLevel>,
}

/// What a member said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberLevel {
    pub node: NodeId,
    /// The lowest level and the highest of its build; `None` if it did not say.
    pub supports: Option<(FeatureLevel, FeatureLevel)>,
    /// Its version, for people.
    pub build: String,
    /// The level above which it is not to be counted as supporting anything.
    pub pinned: Option<FeatureLevel>,
    /// The lowest level whose builds can read what is in its data directory now.
    pub back_to: Option<FeatureLevel>,
    /// Why it did not say anything.
    pub silent: String,
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LevelError {
    /// Ask that node.
    NotLeader { leader: Option<NodeId> },
    /// The state refused.
    Refused(Refusal),
    /// A member does not support what was asked; in words.
    Unsupported(String),
    /// It may have been done.
    Unknown(String),
    /// It was not done.
    Unavailable(String),
}

/// Answers, and changes the level on the leader. Clones are the same.
#[derive(Clone)]
pub(crate) struct LevelHandler {
    pub(super) own: Own,
    pub(super) survey: Survey,
    pub(super) gate: LevelGate,
    submitter: Submitter,
    pub(super) leadership: LeadershipWatch,
}

impl LevelHandler {
    pub(crate) fn new(
        survey: Survey,
        gate: LevelGate,
        submitter: Submitter,
        leadership: LeadershipWatch,
    ) -> Self {
        Self { own: survey.own.clone(), survey, gate, submitter, leadership }
    }

    pub(crate) fn gate(&self) -> &LevelGate {
        &self.gate
    }

    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    pub(crate) async fn ask(&self, request: LevelRequest) -> Result<Levels, LevelError> {
        match request {
            LevelRequest::Show => {}
            LevelRequest::Pin { level, by } => self.change(level, Command::Pin { level, by }).await?,
            LevelRequest::Unpin { by } => self.change(self.own.level(), Command::Unpin { by }).await?,
        }
        let members = self.survey.ask().await;
        self.gate.note(&members);
        Ok(Levels { level: self.own.level(), members })
    }

    /// Has a command replicated that leaves the level at `level`. All members must support that, and understand
    /// the command.
    async fn change(&self, level: FeatureLevel, command: Command) -> Result<(), LevelError> {
        self.check_leads()?;
        let said = self.survey.ask().await;
        self.gate.note(&said);
        let command = tripod_state::Command::Level(command);
        if let Some(why) = survey::objection(&said, level, command.needs()) {
            return Err(LevelError::Unsupported(why));
        }
        let closed = self.gate.close().await;
        // Whoever asked may stop waiting, and what was submitted is appended all the same: until its outcome is known
        // nothing may pass that could come behind it.
        let level_handler = self.clone();
        let changing = tokio::spawn(async move {
            let done = level_handler.submit(command).await;
            drop(closed);
            done
        });
        changing.await.unwrap_or_else(|_| Err(LevelError::Unknown("this node stopped".to_owned())))
    }

    /// The gate must be closed.
    pub(super) async fn submit(&self, command: tripod_state::Command) -> Result<(), LevelError> {
        self.check_leads()?;
        match self.submitter.propose(command).await.map(|applied| applied.reply) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Fault::Level(refusal))) => Err(LevelError::Refused(refusal)),
            Ok(Err(fault)) => Err(LevelError::Unknown(format!("the state answered {fault:?}"))),
            Err(ProposeError::Unknown(why)) => Err(LevelError::Unknown(why)),
            Err(error) => Err(LevelError::Unavailable(error.to_string())),
        }
    }

    fn check_leads(&self) -> Result<(), LevelError> {
        if self.gate.check_leads().is_ok() {
            return Ok(());
        }
        let leader = self.leadership.get().leader.filter(|leader| leader.0 != self.leadership.node());
        Err(LevelError::NotLeader { leader })
    }
}

impl fmt::Debug for LevelHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelHandler").field("node", &self.leadership.node()).finish_non_exhaustive()
    }
}
