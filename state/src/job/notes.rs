//! What people write about a job, for other people. Part of feature level 2, so it does not lie in the job's own
//! record, which older builds read: it stands beside the jobs, and a state without notes is as it was before.

use crate::command::{Answer, Effect, Reply};
use crate::context::ApplyContext;
use crate::events::{self, What};
use crate::fault::Fault;
use crate::ids::{JobId, JobName};
use crate::job::{Command, spec};
use crate::limits::{JOB_NOTE_BYTES_MAX, within};
use crate::state::State;

impl State {
    /// What somebody wrote about a job.
    #[must_use]
    pub fn job_note(&self, job: JobId) -> Option<&str> {
        self.notes.get(&job).map(String::as_str)
    }

    pub(crate) fn apply_job(
        &mut self,
        context: &ApplyContext,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        match command {
            Command::Note { name, note } => self.write_note(context, &name, note),
            Command::Delete { name } => {
                let id = self.jobs.named(&name);
                if let Some(id) = id {
                    self.bury_events(context, id);
                }
                let reply = self.jobs.delete(&name, effects);
                if let Some(id) = id {
                    self.notes.remove(&id);
                }
                reply
            }
            Command::Create { name, spec, service } => {
                let tasks = spec.tasks;
                let reply = self.jobs.create(context, (&name, spec, service), effects);
                if reply.is_ok() {
                    let created = What::JobCreated { name: name.as_str().into(), tasks };
                    self.job_event(context, JobId(context.index.0), created);
                }
                reply
            }
        }
    }

    fn write_note(&mut self, context: &ApplyContext, name: &str, note: String) -> Reply {
        within("bytes of a job's note", note.len() as u64, JOB_NOTE_BYTES_MAX as u64)?;
        let Some(id) = self.jobs.named(name) else {
            return Err(Fault::JobUnknown { name: Some(JobName::from(spec::shown(name).as_str())) });
        };
        if self.job_note(id).unwrap_or_default() != note {
            self.job_event(context, id, What::JobNoted { note: events::text(&note) });
        }
        if note.is_empty() {
            self.notes.remove(&id);
        } else {
            self.notes.insert(id, note);
        }
        Ok(Answer::Done)
    }
}
