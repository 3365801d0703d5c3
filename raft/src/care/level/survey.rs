//! What every member says that it supports, asked now.

use std::time::Duration;

use futures::future;
use tonic::Code;
use tripod_proto::tripod::peer::v1::{LevelAnswer, LevelQuestion};
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::level;

use super::{MemberLevel, Own};
use crate::apply::engine::{Engine as _, Raft};
use crate::peers::calls::{Destination, PeerCalls};
use crate::peers::channels::Class;

/// How long one member may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(1);

/// Asks the members.
#[derive(Clone)]
pub(crate) struct Survey {
    pub(crate) calls: PeerCalls,
    pub(crate) raft: Raft,
    pub(crate) own: Own,
}

impl Survey {
    /// The level at which another node is pinned, 0: it is not; `None` if it did not say.
    pub(super) async fn pin_of(&self, node: u64) -> Option<u32> {
        let members = self.raft.addresses();
        let answer = self.question(node, members.get(&node)?).await.ok()??;
        Some(answer.pinned)
    }

    /// What each member of the membership in force here says, this node included, in ascending order of id.
    pub(crate) async fn ask(&self) -> Vec<MemberLevel> {
        let members = self.raft.addresses();
        let asked = members.iter().map(|(node, address)| self.ask_one(*node, address));
        future::join_all(asked).await
    }

    async fn ask_one(&self, node: u64, address: &str) -> MemberLevel {
        if node == self.calls.node() {
            return heard(node, &self.own.word());
        }
        match self.question(node, address).await {
            Ok(Some(answer)) => heard(node, &answer),
            Ok(None) => MemberLevel {
                supports: Some((level::FIRST, level::FIRST)),
                build: "before levels".to_owned(),
                back_to: Some(level::FIRST),
                ..silent(node, String::new())
            },
            Err(reason) => silent(node, reason),
        }
    }

    /// `None`: it is a build that knows no levels.
    async fn question(&self, node: u64, address: &str) -> Result<Option<LevelAnswer>, String> {
        let to = Destination { node, address, class: Class::Vote, deadline: ANSWER_DEADLINE };
        let asked = self
            .calls
            .call(to, LevelQuestion {}, |mut client, request| async move { client.level(request).await });
        match asked.await {
            Ok(answer) => Ok(Some(answer)),
            Err(status) if status.code() == Code::Unimplemented => Ok(None),
            Err(status) => Err(status.message().to_owned()),
        }
    }
}

fn heard(node: u64, answer: &LevelAnswer) -> MemberLevel {
    let known = |level: u32| (level > 0).then_some(FeatureLevel(level));
    MemberLevel {
        node: NodeId(node),
        supports: Some((FeatureLevel(answer.min), FeatureLevel(answer.max))),
        build: answer.build.clone(),
        pinned: known(answer.pinned),
        back_to: known(answer.back_to),
        silent: String::new(),
    }
}

fn silent(node: u64, reason: String) -> MemberLevel {
    MemberLevel {
        node: NodeId(node),
        supports: None,
        build: String::new(),
        pinned: None,
        back_to: None,
        silent: reason,
    }
}

/// The highest level that all of them support and none of them is pinned below; `None` if one did not say.
pub(super) fn common(said: &[MemberLevel]) -> Option<FeatureLevel> {
    let each: Option<Vec<(FeatureLevel, FeatureLevel)>> = said.iter().map(|one| one.supports).collect();
    let pins = said.iter().filter_map(|one| one.pinned);
    each?.into_iter().map(|(_, max)| max).chain(pins).min()
}

/// In words, why the level cannot be left at `level` by a command that needs `needs`: who did not say what it supports,
/// does not know the command, or does not support that level any more.
pub(super) fn objection(said: &[MemberLevel], level: FeatureLevel, needs: FeatureLevel) -> Option<String> {
    said.iter().find_map(|one| match one.supports {
        None => Some(format!(
            "T4407 level-silent: node {} does not say what it supports ({}); start it, or remove it, first",
            one.node, one.silent
        )),
        Some((_, max)) if max < needs => Some(format!(
            "T4406 level-member: node {} runs a build ({}) that supports level {max} at most and does not know commands \
             about the level; there is nothing to pin while it runs, as nothing is raised",
            one.node, one.build
        )),
        Some((min, _)) if level < min => Some(format!(
            "T4406 level-member: node {} runs a build ({}) that does not support level {level} any more, its lowest is \
             {min}",
            one.node, one.build
        )),
        Some(_) => None,
    })
}

/// In words, why the level is not above `level`: who supports no more, or did not say.
pub(super) fn why_not_above(said: &[MemberLevel], level: FeatureLevel) -> String {
    let reasons = said.iter().filter_map(|one| match (one.supports, one.pinned) {
        (None, _) => Some(format!("node {} does not say what it supports ({})", one.node, one.silent)),
        (Some((_, max)), _) if max <= level => {
            Some(format!("node {} supports {max} only (build {}; upgrade it)", one.node, one.build))
        }
        (Some(_), Some(pin)) if pin <= level => {
            Some(format!("node {} is pinned at {pin} (`tripod level unpin`)", one.node))
        }
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    if said.is_empty() {
        return "this leader has not asked the members yet what they support".to_owned();
    }
    if reasons.is_empty() {
        return "all members support more, and the leader is about to raise it".to_owned();
    }
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(node: u64, max: u32, pinned: u32) -> MemberLevel {
        let answer = LevelAnswer { min: 1, max, pinned, build: "x".into(), ..LevelAnswer::default() };
        heard(node, &answer)
    }

    #[test]
    fn the_level_of_all_is_that_of_the_least_and_of_nobody_if_one_is_silent() {
        assert_eq!(common(&[says(1, 3, 0), says(2, 2, 0)]), Some(FeatureLevel(2)));
        assert_eq!(common(&[says(1, 3, 0), silent(2, "away".into())]), None);
        assert_eq!(common(&[says(1, 3, 0), says(2, 3, 1)]), Some(level::FIRST));
        assert_eq!(common(&[]), None);
    }

    #[test]
    fn a_level_is_pinned_only_where_every_member_says_that_it_supports_that() {
        let second = FeatureLevel(2);
        let objection = |said: &[MemberLevel], level| objection(said, level, second);
        assert_eq!(objection(&[says(1, 3, 0), says(2, 2, 1)], level::FIRST), None);
        let told = objection(&[says(1, 3, 0), silent(2, "away".into())], second).unwrap();
        assert!(told.starts_with("T4407 level-silent: node 2 ") && told.contains("(away)"), "{told}");
        let told = objection(&[says(1, 3, 0), says(2, 1, 0)], level::FIRST).unwrap();
        assert!(told.starts_with("T4406 level-member: node 2 ") && told.contains("nothing to pin"), "{told}");
        let newer = MemberLevel { supports: Some((second, FeatureLevel(3))), ..says(2, 3, 0) };
        let told = objection(&[says(1, 3, 0), newer], level::FIRST).unwrap();
        assert!(told.contains("does not support level 1 any more, its lowest is 2"), "{told}");
    }

    #[test]
    fn whoever_holds_the_level_down_is_named_with_what_to_do() {
        let told = why_not_above(
            &[says(1, 2, 0), says(2, 1, 0), says(3, 2, 1), silent(4, "away".into())],
            level::FIRST,
        );
        for part in ["node 2 supports 1 only", "node 3 is pinned at 1", "level unpin", "node 4 does not say"]
        {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert!(!told.contains("node 1"), "{told}");
    }
}
