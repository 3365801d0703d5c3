//! Members, votes and changes as they are printed.

use serde::Serialize;
use tripod_client::wire;
use tripod_raft::backup::INDEX_STEP;

use crate::output::{self, Table};

/// What `member list` prints. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MembersView {
    cluster_id: String,
    leader: Option<u64>,
    members: Vec<MemberView>,
    votes: VotesView,
    /// The change under way.
    change: Option<ChangeView>,
    /// The change that ended last.
    last_change: Option<ChangeView>,
}

/// One member.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct MemberView {
    id: u64,
    /// voter or learner.
    role: &'static str,
    /// Whether it answers the leader.
    answers: bool,
    peer_address: String,
    /// Empty until it announced itself.
    client_address: String,
    /// It is to lead nothing and to have no clients.
    drained: bool,
    /// Committed entries that it is not known to hold; `null` for the leader itself, and for one of a restored cluster
    /// whose leader has not heard yet where it is.
    lag_entries: Option<u64>,
}

/// Who votes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VotesView {
    voters: Vec<u64>,
    learners: Vec<u64>,
    /// Voters that do not answer the leader.
    silent: Vec<u64>,
    quorum: u32,
}

/// A change.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ChangeView {
    id: u64,
    what: String,
    by: String,
    cancelled: bool,
    /// `null`: under way.
    ending: Option<String>,
}

impl MembersView {
    pub(crate) fn of(list: &wire::ListMembersResponse) -> Self {
        Self {
            cluster_id: list.cluster_id.clone(),
            leader: Some(list.leader_id).filter(|leader| *leader != 0),
            members: list.members.iter().map(MemberView::of).collect(),
            votes: VotesView::of(list.votes.as_ref()),
            change: list.open.as_ref().map(ChangeView::of),
            last_change: list.last.as_ref().map(ChangeView::of),
        }
    }

    pub(crate) fn render(&self) -> String {
        let leader = self.leader.map_or_else(|| "none known".to_owned(), |leader| format!("node {leader}"));
        let mut table = Table::new(&["NODE", "ROLE", "STATE", "PEER", "CLIENT", "LAG"]);
        for member in &self.members {
            let leads = self.leader == Some(member.id);
            table.row(vec![
                member.id.to_string(),
                if leads { "leader" } else { member.role }.to_owned(),
                member.state().to_owned(),
                member.peer_address.clone(),
                if member.client_address.is_empty() { "-" } else { &member.client_address }.to_owned(),
                member.lag_entries.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
            ]);
        }
        let mut text = format!(
            "cluster {}  leader {leader}  {}\n{}",
            output::text(&self.cluster_id),
            self.votes.render(),
            table.render()
        );
        if let Some(change) = &self.change {
            let id = change.id;
            text.push_str(&format!(
                "\n\nin progress: {}\nnext: wait, or give it up with `tripod member cancel {id}`",
                change.render()
            ));
        }
        if let Some(change) = &self.last_change {
            text.push_str(&format!("\n\nlast change: {}", change.render()));
        }
        text
    }
}

impl MemberView {
    fn of(member: &wire::MemberSight) -> Self {
        Self {
            id: member.node_id,
            role: if member.voter { "voter" } else { "learner" },
            answers: member.answers,
            peer_address: member.peer_address.clone(),
            client_address: member.client_address.clone(),
            drained: member.drained,
            // The log of a restored cluster begins at such an index: nobody lags by entries that there are none of.
            lag_entries: member.lag_entries.filter(|lag| *lag < INDEX_STEP),
        }
    }

    fn state(&self) -> &'static str {
        match (self.answers, self.drained) {
            (true, false) => "ok",
            (true, true) => "drained",
            (false, false) => "silent",
            (false, true) => "silent, drained",
        }
    }
}

impl VotesView {
    pub(crate) fn of(votes: Option<&wire::Votes>) -> Self {
        let votes = votes.cloned().unwrap_or_default();
        let wire::Votes { voters, learners, silent, quorum } = votes;
        Self { voters, learners, silent, quorum }
    }

    /// One line: who votes, how many must, how many do.
    pub(crate) fn render(&self) -> String {
        let ids = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let answer = self.voters.len() - self.silent.len();
        let mut text = format!(
            "voters {}  quorum {} of {}, {answer} answer",
            ids(&self.voters),
            self.quorum,
            self.voters.len()
        );
        if !self.silent.is_empty() {
            text.push_str(&format!(" (silent: {})", ids(&self.silent)));
        }
        if !self.learners.is_empty() {
            text.push_str(&format!("  learners {}", ids(&self.learners)));
        }
        text
    }
}

impl ChangeView {
    fn of(change: &wire::MemberChange) -> Self {
        Self {
            id: change.id,
            what: change.what.clone(),
            by: change.by.clone(),
            cancelled: change.cancelled,
            ending: Some(change.ending.clone()).filter(|ending| !ending.is_empty()),
        }
    }

    fn render(&self) -> String {
        let Self { id, what, by, .. } = self;
        let ending = self.ending.as_ref().map_or_else(String::new, |ending| format!(": {ending}"));
        output::text(&format!("{what} (change {id}, by {by}){ending}")).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> wire::ListMembersResponse {
        let member = |node_id: u64| wire::MemberSight {
            node_id,
            peer_address: format!("10.0.0.{node_id}:7800"),
            client_address: String::new(),
            voter: node_id < 4,
            answers: node_id != 3,
            lag_entries: (node_id != 1).then_some(12),
            drained: node_id == 2,
            ..Default::default()
        };
        wire::ListMembersResponse {
            cluster_id: "prod".into(),
            leader_id: 1,
            by_leader: true,
            members: (1..=4).map(member).collect(),
            votes: Some(wire::Votes { voters: vec![1, 2, 3], learners: vec![4], silent: vec![3], quorum: 2 }),
            open: Some(wire::MemberChange {
                id: 77,
                what: "replace 3 by 10.0.0.4:7800".into(),
                by: "root@ops".into(),
                ..Default::default()
            }),
            last: None,
        }
    }

    #[test]
    fn a_list_shows_votes_silent_members_and_what_is_in_progress() {
        let text = MembersView::of(&list()).render();
        let head =
            "cluster prod  leader node 1  voters 1 2 3  quorum 2 of 3, 2 answer (silent: 3)  learners 4";
        assert_eq!(text.lines().next(), Some(head), "{text}");
        assert!(text.contains("2     voter    drained  10.0.0.2:7800  -       12"), "{text}");
        assert!(text.contains("3     voter    silent   10.0.0.3:7800  -       12"), "{text}");
        assert!(text.contains("in progress: replace 3 by 10.0.0.4:7800 (change 77, by root@ops)"), "{text}");
        assert!(text.contains("`tripod member cancel 77`"), "{text}");
    }

    #[test]
    fn n14_a_member_of_a_restored_cluster_that_was_not_heard_lags_by_nothing_that_is_known() {
        let mut list = list();
        list.members[2].lag_entries = Some(INDEX_STEP + 9);
        let json = serde_json::to_value(MembersView::of(&list)).expect("JSON");
        assert_eq!(json["members"][2]["lag_entries"], serde_json::json!(null));
    }

    #[test]
    fn the_json_names_what_scripts_need() {
        let json = serde_json::to_value(MembersView::of(&list())).expect("JSON");
        assert_eq!(json["votes"]["quorum"], 2);
        assert_eq!(json["members"][3]["role"], "learner");
        assert_eq!(json["members"][0]["lag_entries"], serde_json::json!(null));
        assert_eq!(json["change"]["id"], 77);
        assert_eq!(json["last_change"], serde_json::json!(null));
    }
}
