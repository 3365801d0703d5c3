//! The one way to change the state.

use crate::command::{Command, Effect, Envelope, Reply};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::identity::Taken;
use crate::planted::{Bug, is_planted};
use crate::session::table::Verdict;
use crate::state::{Outcome, State};

impl State {
    /// Applies one command. Total: never panics on input, never fails; a refusal is a reply.
    pub fn apply(&mut self, context: &ApplyContext, envelope: Envelope) -> Outcome {
        self.now_ms = self.now_ms.max(context.now_ms);
        let context = ApplyContext { now_ms: self.now_ms, ..*context };
        let mut effects = Vec::new();
        self.follow_term(&context);
        // Before the session is looked at: it must not remember what an older build cannot read.
        if let Some(refusal) = self.too_early(&envelope.command) {
            return Outcome { reply: Err(refusal.into()), effects };
        }
        let Envelope { stamp, command } = envelope;
        let stamp = stamp.filter(|_| !command.is_about_level());
        let taken = command.taken_apart();
        let Some(stamp) = stamp else {
            let reply = self.execute(&context, taken, &mut effects);
            return Outcome { reply, effects };
        };
        // Before anything is acknowledged or told: a stamp means something from who opened its session, and from nobody else.
        if self.sessions.is_of_another(stamp.session, taken.by.as_ref(), self.wants_identities()) {
            return Outcome { reply: Err(Fault::SessionExpired), effects };
        }
        let (level, now) = (self.level(), self.now_ms);
        let reply = match self.sessions.admit(level, stamp, &taken.command, now) {
            Verdict::Reply(Ok(_)) if is_planted(Bug::DoubleApply) => {
                self.execute(&context, taken, &mut effects)
            }
            Verdict::Reply(reply) => reply,
            Verdict::Execute(mark) => {
                let reply = self.execute(&context, taken, &mut effects);
                self.sessions.remember(stamp, mark, &reply);
                reply
            }
        };
        Outcome { reply, effects }
    }

    fn execute(&mut self, context: &ApplyContext, taken: Taken, effects: &mut Vec<Effect>) -> Reply {
        let Taken { command, retried, by } = taken;
        match &by {
            Some(by) => self.authorise(by, &command)?,
            None => self.check_unproved(&command)?,
        }
        let (level, by) = (self.level(), by.as_ref());
        match command {
            Command::Retried(_) | Command::By(_) => unreachable!("what stood around it was taken off"),
            Command::Job(command) => self.apply_job(context, command, effects),
            Command::Task(command) => self
                .jobs
                .turn(command.scope(), (level, context), effects, |turn| turn.task(command, retried, by)),
            Command::Kv(command) => {
                self.jobs.turn(command.scope(), (level, context), effects, |turn| turn.kv(command, retried))
            }
            Command::Barrier(command) => {
                self.jobs.turn(command.scope(), (level, context), effects, |turn| turn.barrier(command))
            }
            Command::Runtime(command) => {
                self.jobs.turn(command.scope(), (level, context), effects, |turn| turn.runtime(command))
            }
            Command::Ray(command) => self.jobs.turn(command.scope(), (level, context), effects, |turn| {
                let reply = turn.ray(command);
                turn.settle_graphs();
                reply
            }),
            Command::Mars(command) => {
                self.jobs.turn(command.scope(), (level, context), effects, |turn| turn.mars(command))
            }
            Command::Mindspore(command) => {
                self.jobs.turn(command.scope(), (level, context), effects, |turn| turn.mindspore(command))
            }
            Command::Session(command) => self.sessions.apply(level, context, &command, by),
            Command::Member(command) => self.apply_member(context, command, effects),
            Command::Level(command) => {
                let reply = self.apply_level(&command, effects);
                self.level_event(context, level);
                reply
            }
            Command::Token(command) => self.apply_token(context, command, effects),
            Command::Identity(command) => self.apply_identity(context, command, by, effects),
        }
    }
}
