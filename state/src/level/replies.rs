//! Which replies a build of an earlier level could not read, if a session remembered them.

use crate::command::{Answer, Reply};
use crate::fault::Fault;
use crate::ids::FeatureLevel;
use crate::level::{self, FIRST, Kind};
use crate::{member, mindspore, ray};

/// The lowest level whose builds can read it. Of a new answer the compiler asks for that; a new fault belongs into [`of_fault`].
pub(super) fn read_from(reply: &Reply) -> FeatureLevel {
    match reply {
        Ok(answer) => of_answer(answer),
        Err(fault) => of_fault(fault),
    }
}

fn of_answer(answer: &Answer) -> FeatureLevel {
    match answer {
        Answer::Ray(answer) => of_ray(answer),
        Answer::Mindspore(_) => Kind::TOPOLOGY_REGISTER.needs,
        Answer::Mars(_) => Kind::MARS_CREATE_SESSION.needs,
        Answer::Token { .. } => Kind::TOKEN_CREATE.needs,
        Answer::Done
        | Answer::Waiting(_)
        | Answer::Registered { .. }
        | Answer::BarrierPassed { .. }
        | Answer::Alive(_)
        | Answer::Devices { .. }
        | Answer::Value { .. }
        | Answer::Deleted { .. }
        | Answer::Tasks(_)
        | Answer::Session(_)
        | Answer::Job(_)
        | Answer::Change(_)
        | Answer::Node(_) => FIRST,
    }
}

/// A batch is read by builds that read everything in it.
fn of_ray(answer: &ray::Answer) -> FeatureLevel {
    let first = Kind::RAY_REGISTER_STORE.needs;
    match answer {
        ray::Answer::Cancelled { .. } => Kind::RAY_SUBMIT_WITH.needs,
        ray::Answer::Batch(answers) => answers.iter().flatten().map(of_ray).fold(first, FeatureLevel::max),
        ray::Answer::Replayed(answer) => of_ray(answer),
        ray::Answer::Done
        | ray::Answer::Store(_)
        | ray::Answer::Worker { .. }
        | ray::Answer::Submitted { .. }
        | ray::Answer::Object { .. }
        | ray::Answer::Killed(_)
        | ray::Answer::Assigned { .. } => first,
    }
}

fn of_fault(fault: &Fault) -> FeatureLevel {
    match fault {
        Fault::Member(
            member::Refusal::NameBound { .. }
            | member::Refusal::NameTaken { .. }
            | member::Refusal::NameInvalid { .. },
        ) => Kind::MEMBER_BIND.needs,
        // No session remembers them.
        Fault::Level(_) => level::NEWEST,
        Fault::StampReused => Kind::SESSION_OPEN_FOR.needs,
        Fault::Ray(_) => Kind::RAY_REGISTER_STORE.needs,
        Fault::Mindspore(mindspore::Refusal::Outdated { .. }) => Kind::CLUSTER_PLANNED.needs,
        Fault::Mindspore(_) => Kind::TOPOLOGY_REGISTER.needs,
        Fault::Mars(_) => Kind::MARS_CREATE_SESSION.needs,
        Fault::Token(_) => Kind::TOKEN_CREATE.needs,
        Fault::NotAuthorised(_) => Kind::BY.needs,
        // What came with the first level, and what it cites.
        other => other.cause().map_or(FIRST, of_fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{BarrierCounter, BarrierName, TaskId, TokenId};
    use crate::{mars, token};

    #[test]
    fn a_reply_is_read_by_builds_that_read_all_that_is_in_it() {
        let level_of = |reply: Reply| read_from(&reply).0;
        let token = || Fault::Token(token::Refusal::Unknown { token: TokenId(1) });
        assert_eq!(level_of(Ok(Answer::Done)), 1);
        assert_eq!(level_of(Ok(Answer::Ray(ray::Answer::Done))), 3);
        let cancelled = || ray::Answer::Cancelled { over: true };
        let batch = ray::Answer::Batch(vec![Err(ray::Refusal::SessionExpired), Ok(cancelled())]);
        assert_eq!(level_of(Ok(Answer::Ray(batch))), 10);
        assert_eq!(level_of(Ok(Answer::Ray(ray::Answer::Replayed(Box::new(cancelled()))))), 10);
        assert_eq!(level_of(Err(Fault::Mindspore(mindspore::Refusal::NotFormed))), 9);
        let outdated = mindspore::Refusal::Outdated { planned: 1, current: 2 };
        assert_eq!(level_of(Err(Fault::Mindspore(outdated))), 11);
        let unknown = mars::Refusal::SessionUnknown { session: "s".to_owned() };
        assert_eq!(level_of(Err(Fault::Mars(unknown))), 10);
        assert_eq!(level_of(Err(token())), 11);
        let (barrier, counter) = (BarrierName::from("b"), BarrierCounter(0));
        assert_eq!(level_of(Err(Fault::ArrivalReplaced { barrier, counter })), 1);
        let cited = Fault::PollInError { task: TaskId(0), existing: Box::new(token()) };
        assert_eq!(level_of(Err(cited)), 11);
    }
}
