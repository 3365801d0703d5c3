//! What a maker of frames remembers of a job's barriers: how their members came, and those that it saw end. It is this
//! node's memory, and begins when somebody looks.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tripod_state::barrier::{Gathering, Report};
use tripod_state::ids::TaskId;

use crate::ui::facts::barriers::name_of;
use crate::ui::facts::ranges;

/// Points of a curve: when it is full, every second one goes.
const POINTS_MAX: usize = 40;
/// Barriers that are remembered after their end.
const PAST_MAX: usize = 50;
/// Ranges of those who came last.
const LAST_RANGES_MAX: usize = 4;

#[derive(Debug)]
struct Curve {
    opened_ms: u64,
    members: u32,
    /// Log times, and how many had come by then.
    points: Vec<(u64, u32)>,
    missing: Vec<TaskId>,
}

/// Of one job.
#[derive(Debug, Default)]
pub(crate) struct Past {
    open: BTreeMap<(String, i64), Curve>,
    ended: VecDeque<Value>,
}

impl Past {
    /// Notes who waits at `now_ms` of the log's time, and what has ended since the last look. `failed`: those of which the
    /// state says so. `all`: `gatherings` are all that are open; else one that is not among them may be open still, and is
    /// forgotten.
    pub(crate) fn note(&mut self, now_ms: u64, gatherings: &[Gathering], all: bool, failed: &[Report]) {
        let key = |report: &Report| (name_of(&report.what), report.counter.0);
        let still: BTreeMap<_, _> = gatherings.iter().map(|one| (key(&one.report), one)).collect();
        let has_failed = |key_: &(String, i64)| failed.iter().any(|report| key(report) == *key_);
        let gone: Vec<_> = self.open.keys().filter(|key| !still.contains_key(*key)).cloned().collect();
        for key in gone {
            let curve = self.open.remove(&key).expect("it is there");
            let failed = has_failed(&key);
            if all || failed {
                self.ended.push_front(curve.ended(&key, now_ms, failed));
                self.ended.truncate(PAST_MAX);
            }
        }
        for (key, gathering) in still {
            let report = &gathering.report;
            let curve = self.open.entry(key).or_insert_with(|| Curve {
                opened_ms: report.opened.map_or(now_ms, |at| at.0),
                members: report.arrived.count + report.missing.count,
                points: Vec::new(),
                missing: Vec::new(),
            });
            curve.point(now_ms, report.arrived.count);
            curve.missing.clone_from(&gathering.missing);
        }
    }

    /// The curves of open barriers, in the order of `gatherings`.
    pub(crate) fn curves(&self, gatherings: &[Gathering]) -> Value {
        let of = |one: &Gathering| self.open.get(&(name_of(&one.report.what), one.report.counter.0));
        json!(gatherings.iter().map(|one| of(one).map(|curve| &curve.points)).collect::<Vec<_>>())
    }

    /// Those that ended, the newest first.
    pub(crate) fn ended(&self) -> Value {
        json!(self.ended)
    }
}

impl Curve {
    fn point(&mut self, now_ms: u64, arrived: u32) {
        if self.points.last().is_some_and(|(_, last)| *last == arrived) {
            return;
        }
        if self.points.len() == POINTS_MAX {
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        self.points.push((now_ms, arrived));
    }

    fn ended(&self, (name, instance): &(String, i64), now_ms: u64, failed: bool) -> Value {
        let (last, more) = ranges(self.missing.iter().copied(), LAST_RANGES_MAX);
        json!({
            "name": name,
            "instance": instance,
            "opened_ms": self.opened_ms,
            "ended_ms": now_ms,
            "failed": failed,
            "members": self.members,
            // Who had not come when this node last looked.
            "last": last,
            "last_unnamed": more,
        })
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::barrier::{Party, What};
    use tripod_state::ids::{BarrierCounter, BarrierName, TimeMs};

    use super::*;

    fn gathering(arrived: &[i32], missing: &[i32]) -> Gathering {
        let tasks = |ids: &[i32]| ids.iter().copied().map(TaskId).collect::<Vec<_>>();
        let party = |ids: &[i32]| Party { count: ids.len() as u32, first: tasks(ids) };
        let report = Report {
            what: What::Called(BarrierName::from("s")),
            counter: BarrierCounter(1),
            opened: Some(TimeMs(100)),
            timeout: None,
            arrived: party(arrived),
            missing: party(missing),
            failure: None,
        };
        Gathering { report, arrived: tasks(arrived), missing: tasks(missing) }
    }

    #[test]
    fn arrivals_make_a_curve_and_the_end_says_who_was_waited_for() {
        let mut past = Past::default();
        let open = [gathering(&[0], &[1, 2])];
        past.note(100, &open, true, &[]);
        past.note(150, &open, true, &[]);
        let later = [gathering(&[0, 1], &[2])];
        past.note(400, &later, true, &[]);
        assert_eq!(past.curves(&later), json!([[[100, 1], [400, 2]]]));
        past.note(900, &[], true, &[]);
        let ended = json!([{
            "name": "barrier `s`", "instance": 1, "opened_ms": 100, "ended_ms": 900, "failed": false,
            "members": 3, "last": "2", "last_unnamed": 0,
        }]);
        assert_eq!(past.ended(), ended);
    }

    #[test]
    fn a_barrier_that_failed_is_told_from_one_that_passed_and_memory_is_bounded() {
        let mut past = Past::default();
        let open = [gathering(&[0], &[1])];
        for _ in 0..=PAST_MAX {
            past.note(1, &open, true, &[]);
            past.note(2, &[], true, std::slice::from_ref(&open[0].report));
        }
        let ended = past.ended();
        assert_eq!((ended.as_array().map(Vec::len), &ended[0]["failed"]), (Some(PAST_MAX), &true.into()));
        let all: Vec<i32> = (0..1_000).collect();
        for come in 0..1_000 {
            past.note(come as u64, &[gathering(&all[..come], &all[come..])], true, &[]);
        }
        let points = past.open.values().next().expect("it is open").points.len();
        assert!(points <= POINTS_MAX, "{points}");
    }
    #[test]
    fn a_barrier_that_is_only_not_shown_any_more_has_not_ended() {
        let named = |name: &str| {
            let mut one = gathering(&[0], &[1]);
            one.report.what = What::Called(BarrierName::from(name));
            one
        };
        let mut past = Past::default();
        past.note(1, &[named("a"), named("z")], true, &[]);
        past.note(2, &[named("a"), named("b")], false, &[]);
        assert_eq!(past.ended(), json!([]), "z may be open still");
        past.note(3, &[named("b"), named("c")], false, &[named("a").report]);
        let ended = past.ended();
        assert_eq!((ended.as_array().map(Vec::len), &ended[0]["failed"]), (Some(1), &true.into()), "{ended}");
        past.note(4, &[named("c")], true, &[]);
        assert_eq!(past.ended()[0]["name"], "barrier `b`");
    }
}
