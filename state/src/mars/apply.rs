//! The match over all commands about sessions.

use std::sync::Arc;

use crate::command::{Answer as AnyAnswer, Effect, Reply as AnyReply};
use crate::fault::Fault;
use crate::job::turn::Turn;
use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::command::{Command, Decision, Request};
use crate::mars::limits::REQUEST_ID_BYTES_MAX;
use crate::mars::record::Mars;
use crate::mars::refusal::Refusal;
use crate::mars::remember::Reply;
use crate::ray::Ray;
use crate::wait::DomainId;

/// The answer, or why it was refused.
pub(super) type Answered = Result<Answer, Fault>;

impl Turn<'_> {
    pub(crate) fn mars(&mut self, command: Command) -> AnyReply {
        let mut reply = Ok(Answer::Done);
        self.with_mars(|act| {
            reply = act.command(command);
            act.settle();
        });
        reply.map(AnyAnswer::Mars)
    }

    /// What the tasks of graphs came to that ended with a command to the scheduler.
    pub(crate) fn settle_graphs(&mut self) {
        let domains = &mut self.job.domains;
        if domains.mars.is_some() {
            // The method by itself is not general enough for all lifetimes.
            #[allow(clippy::redundant_closure_for_method_calls, reason = "it is a closure of any lifetime")]
            self.with_mars(|act| act.settle());
        } else if let Some(ray) = domains.ray.as_deref_mut() {
            // Of sessions that are gone.
            ray.take_ended();
        }
    }

    /// Both domains begin with the first command that leaves something in them.
    fn with_mars(&mut self, work: impl FnOnce(&mut Act<'_>)) {
        let (now, index, job) = (self.context.now_ms, self.context.index.0, self.job.id);
        let domains = &mut self.job.domains;
        let had_ray = domains.ray.is_some();
        let mut mars = domains.mars.take().unwrap_or_default();
        let mut ray = domains.ray.take().unwrap_or_default();
        let mut act = Act::new(&mut mars, &mut ray, now, index);
        work(&mut act);
        let (is_changed, is_ray_changed) = (act.is_changed, act.is_ray_changed);
        if *mars != Mars::default() {
            domains.mars = Some(mars);
        }
        if had_ray || *ray != Ray::default() {
            domains.ray = Some(ray);
        }
        if is_changed {
            self.effect(Effect::DomainChanged { domain: DomainId::Mars, job });
        }
        if is_ray_changed {
            self.effect(Effect::DomainChanged { domain: DomainId::Ray, job });
        }
    }
}

impl Act<'_> {
    fn command(&mut self, command: Command) -> Answered {
        match command {
            Command::Ask { scope: _, request_id, request } if request_id.is_empty() => {
                let answer = self.request(request)?;
                self.is_changed = true;
                Ok(answer)
            }
            Command::Ask { scope: _, request_id, request } => self.once(&request_id, request),
            Command::Lead { scope: _, decision } => {
                self.is_changed |= self.decide(decision);
                Ok(Answer::Done)
            }
        }
    }

    /// A request with an id: one that was answered is answered so again.
    fn once(&mut self, id: &str, request: Request) -> Answered {
        within("bytes of a request's id", id.len() as u64, REQUEST_ID_BYTES_MAX as u64)?;
        let of = request.session().unwrap_or("").to_owned();
        let fingerprint = request.fingerprint();
        if let Some(known) = self.mars.replies.get(&of, id, self.now) {
            if known.fingerprint != fingerprint {
                return Err(Refusal::RequestReused { request: id.to_owned() }.into());
            }
            return Ok(known.answer.clone());
        }
        let answer = self.request(request)?;
        self.is_changed = true;
        let (of, request) = (of.as_str().into(), id.into());
        let reply = Reply { of, request, fingerprint, at: self.now, answer: answer.clone() };
        self.mars.replies.remember(self.index, reply);
        Ok(answer)
    }

    fn request(&mut self, request: Request) -> Answered {
        match request {
            Request::CreateSession { session, is_proposed: _, if_not_exist, labels } => {
                self.create_session(&session, if_not_exist, labels)
            }
            Request::DeleteSession { session, if_exist } => self.delete_session(&session, if_exist),
            Request::Upload { graph, offset, bytes, is_last } => self.upload(&graph, offset, bytes, is_last),
            Request::Submit { graph, digest, options, targets, content } => {
                self.submit_graph(&graph, digest, options, &targets, content)
            }
            Request::Begin { graph, digest, options, targets } => {
                self.begin_graph(&graph, digest, options, &targets)
            }
            Request::Add { graph, draft, part } => self.add_to_graph(&graph, draft, part),
            Request::Commit { graph, draft } => self.commit_draft(&graph, draft),
            Request::Stop { graph } => self.stop_graph(&graph),
            Request::DeleteGraph { graph } => self.delete_graph(&graph),
            Request::Decref { session, keys, counts } => self.decref(&session, &keys, &counts),
            Request::CreateMutable { session, name, is_proposed: _, definition, if_not_exist } => {
                self.create_mutable(&session, &name, definition, if_not_exist)
            }
            Request::SealMutable { session, name, timestamp_ns } => {
                self.seal_mutable(&session, &name, timestamp_ns)
            }
            Request::DeleteMutable { session, name, if_exist } => {
                self.delete_mutable(&session, &name, if_exist)
            }
            Request::SealReported { mutable, epoch, store, chunks, failed } => {
                self.seal_reported(mutable, epoch, &store, &chunks, failed)
            }
        }
    }

    /// Whether it changed something.
    fn decide(&mut self, decision: Decision) -> bool {
        match decision {
            Decision::Advance { graph } => self.advance(graph),
            Decision::TimedOut { graph } => self.graph_timed_out(graph),
            Decision::Expired { graph } => self.graph_expired(graph),
            Decision::UploadExpired { session, kind, key } => self.upload_expired(&session, kind, &key),
            Decision::Forget => self.mars.replies.forget(self.now),
            Decision::Judge { mutable } => self.judge_mutable(mutable),
        }
    }
}

/// What a command keeps of a list that others read, too.
pub(super) fn shared<T>(list: Vec<T>) -> Arc<Vec<T>> {
    Arc::new(list)
}
