//! Mistakes in the way of a scheduler's commands.

use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::{Answer, Command, Decision, Origin, Peer, Request};
use tripod_state::{Scope, State};

/// The reports of a store, and nothing else: the answer that they are taken.
pub(super) fn taken(command: &Command) -> Option<Answer> {
    let Command::Ask { request: Request::Batch(requests), .. } = command else { return None };
    let reports = requests.iter().all(|request| matches!(request, Request::Ready { .. }));
    reports.then(|| Answer::Batch(requests.iter().map(|_| Ok(Answer::Done)).collect()))
}

/// Tasks that a worker gives back, and nothing else: the answer that they are taken.
pub(super) fn given_back(command: &Command) -> Option<Answer> {
    let Command::Ask { request: Request::Batch(requests), .. } = command else { return None };
    let all = requests.iter().all(|request| matches!(request, Request::GiveBack { .. }));
    all.then(|| Answer::Batch(requests.iter().map(|_| Ok(Answer::Done)).collect()))
}

/// A later version of an exported function, as nobody's: its place in its client's session is over when it comes late.
pub(super) fn exported_again(command: &Command) -> Option<Command> {
    match command {
        Command::Ask { scope, request: request @ Request::ExportFunction { body }, .. }
            if !body.ends_with(b":1") =>
        {
            Some(ask(*scope, request.clone()))
        }
        _ => None,
    }
}

/// The same command, in which no task that is submitted belongs to a running one.
pub(super) fn without_parents(command: &mut Command) {
    let Command::Ask { request: Request::Batch(requests), .. } = command else { return };
    for request in requests {
        if let Request::Submit { child, .. } = request {
            *child = None;
        }
    }
}

/// A command that gives to nobody what the workers owned that are given up: it is as if that were never reclaimed.
pub(super) fn keep_forever(state: &State, command: &Command) -> Option<Command> {
    let Command::Lead { scope, decision: Decision::Expire { peers } } = command else { return None };
    let ray = state.ray(scope.job)?;
    let mut objects: Vec<ObjectId> = Vec::new();
    for peer in peers {
        let Peer::Worker(worker) = peer else { continue };
        let running = ray.worker(*worker).map(|worker| worker.running).unwrap_or_default();
        let executions = running.into_iter().filter_map(|run| ray.execution(run));
        objects.extend(executions.flat_map(|execution| execution.results));
    }
    let request = Request::AddReferences { objects };
    Some(ask(*scope, request))
}

fn ask(scope: Scope, request: Request) -> Command {
    Command::Ask { scope, origin: Origin::default(), request }
}

/// A decision that takes the tasks back that another one gives out.
pub(super) fn take_back(command: &Command) -> Option<Command> {
    let Command::Lead { scope, decision: Decision::Assign(given) } = command else { return None };
    let run = |assignment: &tripod_state::ray::Assignment| tripod_state::ray::Run {
        operation: assignment.operation,
        attempt: assignment.attempt,
    };
    let runs = given.iter().map(run).collect();
    Some(Command::Lead { scope: *scope, decision: Decision::Undelivered { runs } })
}
