//! One graph by itself: what it came to, and whether it was there as long as it should.

use super::course;
use super::seen::{Graph, Submit};
use crate::check::Violation;
use crate::history::{Content, GraphName, GraphState, Operation, Refusal, Reply};

/// `deadly`: workers or stores ended meanwhile.
pub(super) fn check(name: &GraphName, graph: &Graph<'_>, deadly: bool) -> Vec<Violation> {
    let subject = format!("graph {name}");
    let mut violations = Vec::new();
    if !graph.may_be_two() {
        violations.extend(course::check(&subject, graph));
    }
    violations.extend(bytes(&subject, graph));
    violations.extend(end(&subject, graph, deadly));
    violations.extend(value(&subject, graph));
    violations.extend(lost(&subject, graph));
    violations.extend(undead(&subject, graph));
    violations.extend(no_end(&subject, graph));
    violations
}

fn acknowledged<'a, 'b>(graph: &'b Graph<'a>) -> impl Iterator<Item = &'b Submit<'a>> {
    graph.submits.iter().filter(|submit| submit.operation.acknowledged())
}

/// What it was made of, if that is known for sure.
fn content<'b>(graph: &'b Graph<'_>) -> Option<&'b Submit<'b>> {
    let may = graph.submits.iter().filter(|submit| submit.operation.outcome.may_have_effect());
    let first = acknowledged(graph).next()?;
    let contents: Vec<Content> = may.map(|submit| submit.content).collect();
    contents.iter().all(|content| *content == first.content).then_some(first)
}

/// The same bytes are the same graph, and others are refused.
fn bytes(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    if !graph.deletes.is_empty() || graph.submits.iter().any(|submit| submit.expires) {
        // Another one of that name may have been made, or may be made, by what is still under way.
        return None;
    }
    let first = acknowledged(graph).next()?;
    if let Some(other) = acknowledged(graph).find(|other| other.content != first.content) {
        let text = format!("content {} was taken, and then content {}", first.content, other.content);
        let shown = [first.operation, other.operation];
        return Some(Violation::new("other-bytes-taken", subject, text, &shown));
    }
    let known = content(graph)?;
    let refused = graph.submits.iter().find(|submit| {
        let exists = matches!(submit.operation.reply(), Some(Reply::Refused(Refusal::Exists)));
        exists && submit.content == known.content
    })?;
    let text = "it was refused as another one, and it is the same".to_owned();
    Some(Violation::new("same-bytes-refused", subject, text, &[known.operation, refused.operation]))
}

fn ended<'a>(graph: &Graph<'a>) -> Option<(&'a Operation, GraphState)> {
    let found = graph.found.iter().map(|(operation, seen)| (*operation, seen.state));
    let heard = graph.heard.iter().map(|(operation, _, seen)| (*operation, seen.state));
    found.chain(heard).find(|(_, state)| state.is_end())
}

/// It ends as it must, or as somebody wanted.
fn end(subject: &str, graph: &Graph<'_>, deadly: bool) -> Option<Violation> {
    let (operation, state) = ended(graph)?;
    let told = |rule: &str, text: &str, shown: &[&Operation]| {
        Some(Violation::new(rule, subject, text.to_owned(), shown))
    };
    match state {
        GraphState::Cancelled if graph.stops.is_empty() => {
            told("cancelled-by-nobody", "it was cancelled, and nobody had stopped it", &[operation])
        }
        GraphState::Succeeded => {
            let submit = content(graph).filter(|submit| submit.makes.is_none())?;
            told(
                "failure-succeeded",
                "it fails on purpose, and has succeeded",
                &[submit.operation, operation],
            )
        }
        GraphState::Failed if !deadly => {
            let submit = content(graph).filter(|submit| submit.makes.is_some())?;
            let text = "it failed, and no worker and no store had died";
            told("failed-for-nothing", text, &[submit.operation, operation])
        }
        _ => None,
    }
}

fn value(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    let submit = content(graph)?;
    let (read, _) = graph.values.iter().find(|(_, value)| *value != submit.makes)?;
    let text = "what was read of it is not what it makes".to_owned();
    Some(Violation::new("wrong-value", subject, text, &[submit.operation, *read]))
}

/// What was acknowledged is there until it is deleted.
fn lost(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    // What expires may be gone at any time after its end.
    if graph.submits.iter().any(|submit| submit.expires) {
        return None;
    }
    let submit = acknowledged(graph).min_by_key(|submit| submit.operation.completed)?;
    let missed = graph.missed.iter().find(|missed| {
        let deleted = graph.deletes.iter().any(|delete| delete.invoked < missed.completed);
        missed.invoked > submit.operation.completed && !deleted
    })?;
    let text = "it was accepted, nobody has deleted it, and it is not there".to_owned();
    Some(Violation::new("graph-lost", subject, text, &[submit.operation, *missed]))
}

/// What was deleted is gone.
fn undead(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    let delete = graph.deletes.iter().find(|delete| delete.acknowledged())?;
    let (there, _) = graph.found.iter().find(|(found, _)| found.invoked > delete.completed)?;
    let text = "it was deleted, and is there".to_owned();
    (!graph.may_be_two()).then(|| Violation::new("deleted-is-there", subject, text, &[*delete, *there]))
}

/// What was accepted comes to an end.
fn no_end(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    let submit = acknowledged(graph).next()?;
    let may_be_gone = !graph.deletes.is_empty() || graph.submits.iter().any(|submit| submit.expires);
    if may_be_gone || ended(graph).is_some() {
        return None;
    }
    let mut shown = vec![submit.operation];
    shown.extend(graph.found.last().map(|(operation, _)| *operation));
    let text = "it was accepted, and nobody ever saw its end".to_owned();
    Some(Violation::new("no-end", subject, text, &shown))
}
