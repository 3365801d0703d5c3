//! What this node says that it supports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tonic::Status;
use tripod_proto::tripod::peer::v1::LevelAnswer;
use tripod_state::ids::FeatureLevel;
use tripod_state::{State, level};

use super::BUILD;
use crate::apply::state_machine::StateMachine;

/// Builds of lower levels take nothing but commands of the first in a batch.
const BATCHED_FROM: FeatureLevel = FeatureLevel(8);

/// This node's word. Clones say the same.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) machine: StateMachine,
    /// The highest level that this build supports.
    pub(crate) build_max: FeatureLevel,
    /// The level that the data directory says it needs; 0 until it says anything.
    pub(crate) marked: Arc<AtomicU32>,
}

impl Own {
    /// The level in force, as far as this node has applied the log.
    pub(crate) fn level(&self) -> FeatureLevel {
        self.machine.read(State::level)
    }

    /// The level above which this node is not to say that it supports anything.
    fn pin(&self) -> Option<FeatureLevel> {
        self.machine.levels(|levels| levels.pin)
    }

    /// The highest level that this node says that it supports.
    pub(crate) fn max(&self) -> FeatureLevel {
        self.pin().map_or(self.build_max, |pin| pin.min(self.build_max))
    }

    /// The lowest level whose builds can be started on the data directory now.
    fn back_to(&self) -> FeatureLevel {
        self.machine.data_level().max(FeatureLevel(self.marked.load(Ordering::Relaxed)))
    }

    /// Whether this build, when it leads, takes commands of every level in a batch.
    pub(crate) fn takes_newer(&self) -> bool {
        self.build_max >= BATCHED_FROM
    }

    /// What a peer is told.
    pub(crate) fn word(&self) -> LevelAnswer {
        LevelAnswer {
            min: level::FIRST.0,
            max: self.build_max.0,
            pinned: self.pin().map_or(0, |pin| pin.0),
            back_to: self.back_to().0,
            build: BUILD.to_owned(),
            level: self.level().0,
        }
    }

    /// [`Self::word`], unless this build is to be one that knows no such question.
    pub(crate) fn answer(&self) -> Result<LevelAnswer, Status> {
        if self.build_max == level::FIRST {
            return Err(Status::unimplemented(""));
        }
        Ok(self.word())
    }
}
