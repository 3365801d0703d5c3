//! The feature level and who supports what, as a message.

use tripod_gateway::{Levels, MemberLevel};
use tripod_proto::tripod::v1 as wire;
use tripod_state::ids::FeatureLevel;

pub(crate) fn report(levels: &Levels) -> wire::LevelsReport {
    wire::LevelsReport { level: levels.level.0, members: levels.members.iter().map(member).collect() }
}

fn member(member: &MemberLevel) -> wire::MemberLevel {
    let number = |level: Option<FeatureLevel>| level.map_or(0, |level| level.0);
    wire::MemberLevel {
        node_id: member.node.0,
        min: number(member.supports.map(|(min, _)| min)),
        max: number(member.supports.map(|(_, max)| max)),
        build: member.build.clone(),
        pinned: number(member.pinned),
        back_to: number(member.back_to),
        silent: member.silent.clone(),
    }
}
