//! The feature level and who supports what, as it is printed.

use serde::Serialize;
use tripod_client::wire;

use crate::output::Table;

/// What `level show`, `pin` and `unpin` print. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LevelsView {
    /// In force.
    level: u32,
    members: Vec<MemberView>,
    /// One line: what keeps the level from being raised, and what to do next; `null`: it is as high as it can be.
    next: Option<String>,
}

/// What a member says.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct MemberView {
    id: u64,
    build: String,
    /// The lowest and the highest level that its build supports; `null`: it does not say.
    supports: Option<[u32; 2]>,
    /// The level that it is pinned at.
    pinned: Option<u32>,
    /// The lowest level whose builds can be started on its data as it is now.
    back_to: Option<u32>,
    /// Why it does not say anything.
    #[serde(skip_serializing_if = "String::is_empty")]
    silent: String,
}

impl LevelsView {
    pub(crate) fn of(report: &wire::LevelsReport) -> Self {
        let members: Vec<MemberView> = report.members.iter().map(MemberView::of).collect();
        let next = next(report.level, &members);
        Self { level: report.level, members, next }
    }

    pub(crate) fn render(&self) -> String {
        let mut table = Table::new(&["NODE", "BUILD", "SUPPORTS", "PINNED", "BACK TO"]);
        let number = |level: Option<u32>| level.map_or_else(|| "-".to_owned(), |level| level.to_string());
        for member in &self.members {
            let supports = match member.supports {
                Some([min, max]) if min == max => max.to_string(),
                Some([min, max]) => format!("{min}-{max}"),
                None => "?".to_owned(),
            };
            let build = if member.supports.is_some() { &member.build } else { &member.silent };
            table.row(vec![
                member.id.to_string(),
                build.clone(),
                supports,
                number(member.pinned),
                number(member.back_to),
            ]);
        }
        let mut text = format!("feature level {}\n{}", self.level, table.render());
        if let Some(next) = &self.next {
            text.push_str(&format!("\n\nnext: {next}"));
        }
        text
    }
}

impl MemberView {
    fn of(member: &wire::MemberLevel) -> Self {
        let known = |level: u32| (level > 0).then_some(level);
        Self {
            id: member.node_id,
            build: member.build.clone(),
            supports: known(member.max).map(|max| [member.min, max]),
            pinned: known(member.pinned),
            back_to: known(member.back_to),
            silent: member.silent.clone(),
        }
    }
}

/// The nodes that are not pinned at `level` yet, or cannot be started with a build of it now.
pub(crate) fn not_back(report: &wire::LevelsReport, level: u32) -> Vec<u64> {
    nodes(report, |member| member.pinned != level || member.back_to == 0 || member.back_to > level)
}

/// The nodes that are still pinned.
pub(crate) fn still_pinned(report: &wire::LevelsReport) -> Vec<u64> {
    nodes(report, |member| member.pinned != 0)
}

fn nodes(report: &wire::LevelsReport, is_one: impl Fn(&wire::MemberLevel) -> bool) -> Vec<u64> {
    report.members.iter().filter(|member| is_one(member)).map(|member| member.node_id).collect()
}

fn next(level: u32, members: &[MemberView]) -> Option<String> {
    let of = |named: Vec<u64>| named.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let which = |is_so: &dyn Fn(&MemberView) -> bool| -> Vec<u64> {
        members.iter().filter(|member| is_so(member)).map(|member| member.id).collect()
    };
    let silent = which(&|member| member.supports.is_none());
    if !silent.is_empty() {
        return Some(format!("start node {}: until it says what it supports the level stays", of(silent)));
    }
    let highest = members.iter().filter_map(|member| member.supports).map(|[_, max]| max).max()?;
    let old = which(&|member| member.supports.is_some_and(|[_, max]| max < highest));
    if !old.is_empty() {
        return Some(format!(
            "upgrade node {}: when all support {highest} the level rises by itself",
            of(old)
        ));
    }
    let pinned = which(&|member| member.pinned.is_some());
    if !pinned.is_empty() && level < highest {
        return Some(format!(
            "`tripod level unpin` to let it rise to {highest}; or start nodes with the older build, those first \
             that are back to {level}"
        ));
    }
    (level < highest).then(|| format!("wait: the leader is about to raise it to {highest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node_id: u64, max: u32, pinned: u32, back_to: u32) -> wire::MemberLevel {
        let build = "0.1.0".to_owned();
        wire::MemberLevel {
            node_id,
            min: u32::from(max > 0),
            max,
            build,
            pinned,
            back_to,
            ..Default::default()
        }
    }

    fn told(level: u32, members: &[wire::MemberLevel]) -> String {
        LevelsView::of(&wire::LevelsReport { level, members: members.to_vec() }).render()
    }

    #[test]
    fn what_to_do_next_is_one_line() {
        let told_of = |level, members: &[wire::MemberLevel]| {
            told(level, members).rsplit_once("\n\n").map(|(_, next)| next.to_owned())
        };
        assert_eq!(told_of(2, &[member(1, 2, 0, 2), member(2, 2, 0, 2)]), None);
        let old = told_of(1, &[member(1, 2, 0, 1), member(2, 1, 0, 1)]).expect("a line");
        assert!(old.contains("upgrade node 2") && old.contains("all support 2"), "{old}");
        let silent = told_of(1, &[member(1, 2, 0, 1), member(2, 0, 0, 0)]).expect("a line");
        assert!(silent.contains("start node 2"), "{silent}");
        let pinned = told_of(1, &[member(1, 2, 1, 1), member(2, 2, 0, 2)]).expect("a line");
        assert!(pinned.contains("level unpin"), "{pinned}");
        assert!(told_of(1, &[member(1, 2, 0, 1)]).expect("a line").contains("about to raise"));
    }

    #[test]
    fn n25_what_to_do_next_is_called_so_once() {
        let report = wire::LevelsReport { level: 1, members: vec![member(1, 2, 0, 1)] };
        let view = LevelsView::of(&report);
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(json["next"], "wait: the leader is about to raise it to 2");
        assert!(view.render().ends_with("\n\nnext: wait: the leader is about to raise it to 2"));
    }

    #[test]
    fn nodes_that_cannot_go_back_are_known() {
        let report = wire::LevelsReport {
            level: 1,
            members: vec![member(1, 2, 1, 1), member(2, 2, 1, 2), member(3, 0, 0, 0)],
        };
        assert_eq!(not_back(&report, 1), [2, 3]);
        assert_eq!(still_pinned(&report), [1, 2]);
        let table = told(1, &report.members);
        assert!(table.contains("1-2") && table.contains("BACK TO"), "{table}");
    }
}
