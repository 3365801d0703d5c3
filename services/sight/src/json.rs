//! For programs. A contract: fields may be added, never renamed.

use serde_json::{Map, Value, json};

use crate::facts::{Call, CallKind, Facts, HeldState, Origin, Outcome, Said};
use crate::finding::{Diagnosis, Finding};

/// Tasks that are told one by one; all are in `findings[].tasks`.
const MISSING_MAX: usize = 256;

impl Diagnosis<'_> {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let facts = self.facts;
        let missing = self.findings.first().map_or(&[][..], |first| &first.tasks);
        let next: Vec<&String> = self.findings.iter().flat_map(|finding| &finding.next).collect();
        let memory = facts
            .memory
            .as_ref()
            .map(|memory| json!({ "index": memory.index, "at_ms": memory.at_ms, "why": memory.why }));
        let value = json!({
            "job": facts.job.name,
            "tasks": facts.tasks.len(),
            "at_ms": facts.now_ms,
            "told_by": facts.cluster.told_by,
            "from_memory": memory,
            "verdict": self.findings.first().map(|finding| finding.json(facts)),
            "missing_count": missing.len(),
            "missing": missing.iter().take(MISSING_MAX).map(|task| task_json(facts, *task)).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(|finding| finding.json(facts)).collect::<Vec<_>>(),
            "cluster": {
                "tolerance": self.safety.tolerance,
                "change_safe": self.safety.change_safe,
                "why": self.safety.why,
                "silent": facts.cluster.nodes.iter().filter(|node| !matches!(node.said, Said::Word(_)))
                    .map(|node| node.node).collect::<Vec<_>>(),
            },
            "places_left_out": facts.places_left_out,
            "calls_of_nobody": facts.of_nobody,
            "calls_not_entered": facts.not_entered,
            "next": next,
        });
        value.to_string()
    }
}

impl Finding {
    fn json(&self, facts: &Facts) -> Value {
        let parties: Map<String, Value> = self
            .parties
            .iter()
            .filter(|(_, tasks)| !tasks.is_empty())
            .map(|(name, tasks)| (name.clone(), json!(tasks)))
            .collect();
        json!({
            "code": self.code.number(),
            "slug": self.code.slug(),
            "where": self.place.word(),
            "sure": self.sure.word(),
            "text": self.text,
            "since_ms": self.since_ago_ms.map(|ago| facts.now_ms.saturating_sub(ago)),
            "tasks": self.tasks,
            "parties": parties,
        })
    }
}

fn task_json(facts: &Facts, task: i32) -> Value {
    let found = facts.task(task);
    json!({
        "task": task,
        "state": found.map_or("never-came", |found| found.standing.word()),
        "host": found.map(|found| found.host.as_str()).filter(|host| !host.is_empty()),
        "pid": found.map(|found| found.origin.pid).filter(|pid| *pid != 0),
        "origin": found.map(|found| &found.origin).filter(|origin| **origin != Origin::default()).map(|origin| json!({
            "client": said(&origin.client), "agent": said(&origin.agent), "launcher": said(&origin.launcher),
        })),
        "incarnation": found.map(|found| found.incarnation.to_string()),
        "beat_age_ms": found.and_then(|found| found.beat_age_ms),
        "held": found.and_then(|found| found.held.as_ref()).map(|held| json!({
            "state": match held.state { HeldState::Stopped => "stopped", HeldState::Disk => "disk" },
            "waits_in": said(&held.waits_in), "since_ms": facts.now_ms.saturating_sub(held.since_ago_ms),
        })),
        "call": facts.open(task).first().map(|call| call_json(facts, call)),
        "last_call": facts.last(task).first().map(|call| call_json(facts, call)),
        "end": found.and_then(|found| found.end.as_ref()).map(|end| json!({
            "how": end.how, "at_ms": end.at_ms, "out_of_memory": end.out_of_memory, "last_line": end.last_line,
        })),
        "error": found.and_then(|found| found.error.as_ref()).map(|error| json!({
            "text": error.text, "own": error.is_own,
        })),
        "source": if facts.calls.contains_key(&task) { "state, node" } else { "state" },
    })
}

/// Nothing rather than an empty text.
fn said(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn call_json(facts: &Facts, call: &Call) -> Value {
    let kind = match call.kind {
        CallKind::Registration => "registration",
        CallKind::Barrier => "barrier",
        CallKind::Shutdown => "shutdown",
        CallKind::Devices => "devices",
        CallKind::Key => "key",
        CallKind::Alive => "alive",
        CallKind::Tasks => "tasks",
    };
    let outcome = call.ended.map(|(outcome, _)| match outcome {
        Outcome::Passed => "passed",
        Outcome::Refused => "refused",
        Outcome::HungUp => "given-up",
    });
    json!({
        "kind": kind,
        "subject": call.subject,
        "since_ms": facts.now_ms.saturating_sub(call.since_ago_ms),
        "node": call.node,
        "outcome": outcome,
        "ended_ms": call.ended.map(|(_, ago)| facts.now_ms.saturating_sub(ago)),
    })
}
