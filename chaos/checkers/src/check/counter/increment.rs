//! One increment: a call, or all calls that bear the same stamp.

use std::collections::BTreeMap;

use crate::check::Violation;
use crate::history::{Call, Key, Micros, Operation, Outcome, Reply, Stamp};

/// An increment and what is known of it.
pub(super) struct Increment<'a> {
    pub(super) counter: &'a Key,
    pub(super) by: i64,
    pub(super) calls: Vec<&'a Operation>,
    /// It cannot have taken effect earlier.
    pub(super) from: Micros,
    /// It has taken effect by then for sure; `None`: perhaps never.
    pub(super) sure: Option<Micros>,
    /// How often it may have taken effect: more than once only if it has no stamp and was sent more often.
    pub(super) times_max: i64,
}

/// Why the calls of a run make no increments.
pub(super) struct Misuse {
    pub(super) reason: String,
}

/// Puts together what belongs together.
pub(super) fn group<'a>(calls: &[&'a Operation]) -> Result<Vec<Increment<'a>>, Misuse> {
    let mut stamped: BTreeMap<Stamp, Vec<&'a Operation>> = BTreeMap::new();
    let mut increments = Vec::new();
    for operation in calls {
        match &operation.call {
            Call::Increment { stamp: Some(stamp), .. } => stamped.entry(*stamp).or_default().push(operation),
            Call::Increment { .. } => increments.push(vec![*operation]),
            _ => {}
        }
    }
    for (stamp, calls) in &stamped {
        if let Some(other) = calls.iter().find(|call| call.call != calls[0].call) {
            let reason = format!("operations {} and {} both bear {stamp}", calls[0].id, other.id);
            return Err(Misuse { reason });
        }
    }
    increments.extend(stamped.into_values());
    Ok(increments.into_iter().filter_map(Increment::of).collect())
}

impl<'a> Increment<'a> {
    fn of(calls: Vec<&'a Operation>) -> Option<Self> {
        let Call::Increment { counter, by, stamp } = &calls[0].call else { return None };
        let effective = calls.iter().filter(|call| call.outcome.may_have_effect());
        let times_max = match stamp {
            _ if effective.clone().next().is_none() => 0,
            Some(_) => 1,
            None => i64::from(calls[0].attempts),
        };
        let acknowledged = calls.iter().filter(|call| call.acknowledged());
        Some(Self {
            counter,
            by: *by,
            from: calls.iter().map(|call| call.invoked).min()?,
            sure: acknowledged.map(|call| call.completed).min(),
            times_max,
            calls,
        })
    }

    /// The first call that told the value right after it.
    pub(super) fn told(&self) -> Option<(&'a Operation, i64)> {
        self.calls.iter().find_map(|call| match call.outcome {
            Outcome::Ok(Reply::Count(value)) => Some((*call, value)),
            _ => None,
        })
    }

    /// A repetition is told what the first attempt was told.
    pub(super) fn one_answer(&self, key: &Key) -> Option<Violation> {
        let (first, value) = self.told()?;
        let other = self
            .calls
            .iter()
            .find(|call| matches!(call.outcome, Outcome::Ok(Reply::Count(other)) if other != value))?;
        let text = format!(
            "operations {} and {} bear the same stamp and were told different values: both counted",
            first.id, other.id
        );
        Some(Violation::new("double-count", key, text, &[first, other]))
    }
}
