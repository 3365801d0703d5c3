//! What objects are, for those who ask about one without reading it: its shape, and of what its elements are.

use serde::{Deserialize, Serialize};

use crate::memory::{Weigh, of_list};
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::{Origin, Run};
use crate::ray::ids::ObjectId;
use crate::ray::limits::{DIMENSIONS_MAX, at_most};
use crate::ray::object::Producer;
use crate::ray::operation::Stage;
use crate::ray::refusal::Refusal;
use crate::ray::register::invalid;

/// What an object is, as the worker says that made it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Description {
    /// How long it is in each dimension.
    pub shape: Vec<u64>,
    /// The number of a `mars.v1.ElementType`; 0: it is no tensor.
    pub element_type: u8,
    /// Of its elements.
    pub bytes: u64,
}

impl Weigh for Description {
    fn outside(&self) -> u64 {
        of_list::<u64>(self.shape.len())
    }
}

impl Ray {
    /// What an object is, or the one that it means, if that was said.
    #[must_use]
    pub fn description(&self, object: ObjectId) -> Option<Description> {
        self.described(object).cloned()
    }
}

impl Act<'_> {
    /// Only the run that makes the object may say it, or the process that put it. A later attempt replaces it.
    pub(crate) fn describe(
        &mut self,
        origin: Origin,
        id: ObjectId,
        run: Option<Run>,
        description: Description,
    ) -> Result<Answer, Refusal> {
        at_most("dimensions of an object", description.shape.len() as u64, DIMENSIONS_MAX)?;
        match (self.ray.object(id)?.producer, run) {
            (Producer::Task(operation), run) => {
                let entry = self.ray.entry(operation);
                let made = run.filter(|run| run.operation == operation);
                let current = entry.zip(made).is_some_and(|(entry, run)| {
                    entry.is_run(run) && !matches!(entry.stage, Stage::Queued | Stage::Cancelled)
                });
                if !current {
                    return Err(Refusal::OtherAttempt { operation });
                }
            }
            (Producer::Put { run: Some(put), .. }, Some(run)) if put == run => {}
            (Producer::Put { by, .. }, _) if origin.process == Some(by) => {}
            (Producer::Put { .. }, _) => {
                return Err(invalid("objectid", "another process put it".to_owned()));
            }
        }
        self.ray.descriptions.insert(id, description);
        Ok(Answer::Done)
    }
}
