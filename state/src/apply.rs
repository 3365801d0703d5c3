//! The one way to change the state.

use crate::command::{Command, Effect, Envelope, Reply};
use crate::context::ApplyContext;
use crate::planted::{Bug, is_planted};
use crate::session::table::Verdict;
use crate::state::{Outcome, State};

impl State {
    /// Applies one command. Total: never panics on input, never fails; a refusal is a reply.
    pub fn apply(&mut self, context: &ApplyContext, envelope: Envelope) -> Outcome {
        self.now_ms = self.now_ms.max(context.now_ms);
        let context = ApplyContext { now_ms: self.now_ms, ..*context };
        let mut effects = Vec::new();
        // Before the session is looked at: it must not remember what an older build cannot read.
        if let Some(refusal) = self.too_early(&envelope.command) {
            return Outcome { reply: Err(refusal.into()), effects };
        }
        let stamp = envelope.stamp.filter(|_| !envelope.command.is_about_level());
        let Some(stamp) = stamp else {
            let reply = self.execute(&context, envelope.command, &mut effects);
            return Outcome { reply, effects };
        };
        let (level, now) = (self.level(), self.now_ms);
        let reply = match self.sessions.admit(level, stamp, &envelope.command, now) {
            Verdict::Reply(Ok(_)) if is_planted(Bug::DoubleApply) => {
                self.execute(&context, envelope.command, &mut effects)
            }
            Verdict::Reply(reply) => reply,
            Verdict::Execute(mark) => {
                let reply = self.execute(&context, envelope.command, &mut effects);
                self.sessions.remember(stamp, mark, &reply);
                reply
            }
        };
        Outcome { reply, effects }
    }

    fn execute(&mut self, context: &ApplyContext, command: Command, effects: &mut Vec<Effect>) -> Reply {
        let (command, retried) = command.unmarked();
        let level = self.level();
        match command {
            Command::Retried(_) => unreachable!("the mark was taken off"),
            Command::Job(command) => self.apply_job(context, command, effects),
            Command::Task(command) => {
                self.jobs.turn(command.scope(), (level, context), effects, |turn| turn.task(command, retried))
            }
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
            Command::Session(command) => self.sessions.apply(level, context, &command),
            Command::Member(command) => self.apply_member(context, command, effects),
            Command::Level(command) => self.apply_level(&command, effects),
            Command::Token(command) => self.apply_token(context, command, effects),
        }
    }
}
