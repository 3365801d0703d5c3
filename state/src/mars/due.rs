//! What whoever leads is to propose.

use crate::ids::{JobId, TimeMs};
use crate::mars::advance::has_room;
use crate::mars::command::Decision;
use crate::mars::graph::GraphState;
use crate::mars::limits::{IN_FLIGHT_MAX, UPLOAD_IDLE_MS, WINDOW};
use crate::mars::record::Mars;
use crate::mars::stores::{Living, Verdict};
use crate::ray::Ray;
use crate::state::State;

/// Decisions of one kind at a time: the next ones come when these are applied.
const AT_ONCE: usize = 256;

impl State {
    /// The jobs that have sessions, by id.
    #[must_use]
    pub fn mars_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|job| job.domains.mars.is_some()).map(|job| job.id).collect()
    }

    /// What is to be proposed at that time, by the leader's clock. It may change with whatever changes sessions or the
    /// scheduler, and at [`Self::mars_next_due`]. Graphs that can go on come by priority.
    #[must_use]
    pub fn mars_due(&self, job: JobId, now_ms: TimeMs) -> Vec<Decision> {
        let Some(job) = self.jobs.get(job) else { return Vec::new() };
        let Some(mars) = job.domains.mars.as_deref() else { return Vec::new() };
        let nothing = Ray::default();
        let ray = job.domains.ray.as_deref().unwrap_or(&nothing);
        let mut due = mars.timed_out(now_ms);
        due.extend(mars.to_judge(ray, now_ms));
        due.extend(mars.to_advance(ray));
        due
    }

    /// When a time of a job's sessions runs out next.
    #[must_use]
    pub fn mars_next_due(&self, job: JobId) -> Option<TimeMs> {
        let mars = self.jobs.get(job)?.domains.mars.as_deref()?;
        let graphs = mars.expiring.get_min().map(|(time, _)| *time);
        let uploads = mars.uploads.values().map(|upload| upload.touched.plus(UPLOAD_IDLE_MS));
        let mutables = mars.mutables.values().filter_map(|mutable| mutable.next_judgement());
        graphs.into_iter().chain(mars.replies.next_due()).chain(uploads).chain(mutables).min()
    }
}

impl Mars {
    fn timed_out(&self, now: TimeMs) -> Vec<Decision> {
        let over = self.expiring.iter().take_while(|(time, _)| *time <= now).take(AT_ONCE);
        let graphs = over.filter_map(|(_, number)| {
            let graph = self.graphs.get(number)?;
            let is_late = graph.deadline().is_some_and(|deadline| deadline <= now);
            let graph = *number;
            Some(if is_late { Decision::TimedOut { graph } } else { Decision::Expired { graph } })
        });
        let mut due: Vec<Decision> = graphs.collect();
        let idle = self.uploads.iter().filter(|(_, upload)| upload.touched.plus(UPLOAD_IDLE_MS) <= now);
        due.extend(idle.take(AT_ONCE).filter_map(|((session, kind, key), _)| {
            let session = self.sessions.get(session)?.name.as_str().to_owned();
            Some(Decision::UploadExpired { session, kind: *kind, key: key.as_str().to_owned() })
        }));
        due.extend(self.replies.next_due().filter(|due| *due <= now).map(|_| Decision::Forget));
        due
    }

    fn to_judge(&self, ray: &Ray, now: TimeMs) -> Vec<Decision> {
        if self.mutables.is_empty() {
            return Vec::new();
        }
        let living = Living::of(ray);
        let due = self.mutables.iter().filter(|(_, mutable)| mutable.judge(&living, now) != Verdict::Stay);
        due.take(AT_ONCE).map(|(mutable, _)| Decision::Judge { mutable: *mutable }).collect()
    }

    /// Not before much of a window has room: a command for each subtask would be one too many.
    fn to_advance(&self, ray: &Ray) -> Vec<Decision> {
        let mut ready = Vec::new();
        for number in &self.active {
            let Some(graph) = self.graphs.get(number).filter(|graph| has_room(graph, ray)) else { continue };
            let left = graph.nodes().saturating_sub(graph.head.next);
            let room = (IN_FLIGHT_MAX as usize).saturating_sub(graph.running.len());
            if room < WINDOW.min(left) as usize || graph.head.state == GraphState::Preparing {
                continue;
            }
            ready.push((std::cmp::Reverse(graph.head.options.priority), *number));
        }
        ready.sort_unstable();
        ready.into_iter().take(AT_ONCE).map(|(_, graph)| Decision::Advance { graph }).collect()
    }
}
