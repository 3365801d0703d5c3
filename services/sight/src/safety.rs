//! How many nodes may be lost, and whether a change of members is safe now: one function for whoever asks.

/// Further behind is behind: what a second or so of full load appends.
const LAG_ENTRIES: u64 = 10_000;

/// A member as it is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    pub node: u64,
    pub voter: bool,
    pub answers: bool,
    /// It answers, and is not in contact with the others.
    pub cut: bool,
    /// Entries that it lacks; `None`: not known.
    pub lag_entries: Option<u64>,
    /// The change takes it out: what is wrong with it is no reason against that.
    pub leaving: bool,
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Safety {
    /// So many voters may be lost before nothing can be written any more.
    pub tolerance: usize,
    pub change_safe: bool,
    /// Why it is not; empty: it is.
    pub why: String,
}

/// Judges those members. `led`: somebody leads. `is_changing`: a change of them is under way.
#[must_use]
pub fn safety(members: &[Member], led: bool, is_changing: bool) -> Safety {
    let voters: Vec<&Member> = members.iter().filter(|member| member.voter).collect();
    let needed = voters.len() / 2 + 1;
    let lags = |member: &Member| member.lag_entries.is_some_and(|lag| lag > LAG_ENTRIES);
    // One that is far behind could not take part in a quorum at once.
    let well = voters.iter().filter(|member| member.answers && !member.cut && !lags(member)).count();
    let tolerance = well.saturating_sub(needed);
    let trouble = |member: &&Member| {
        let node = member.node;
        if !member.answers {
            Some(format!("node {node} does not answer"))
        } else if member.cut {
            Some(format!("node {node} is cut off from the others"))
        } else {
            let lag = member.lag_entries.filter(|_| lags(member))?;
            Some(format!("node {node} lags {lag} entries"))
        }
    };
    let why = if !led {
        Some("nobody leads".to_owned())
    } else if voters.is_empty() {
        Some("no voter is known".to_owned())
    } else if is_changing {
        Some("a change is under way".to_owned())
    } else {
        voters.iter().filter(|member| !member.leaving).find_map(trouble)
    };
    Safety { tolerance, change_safe: why.is_none(), why: why.unwrap_or_default() }
}

impl Safety {
    /// `tolerance 1 node   change of members: safe`.
    #[must_use]
    pub fn line(&self) -> String {
        let noun = if self.tolerance == 1 { "node" } else { "nodes" };
        let change = if self.change_safe { "safe".to_owned() } else { format!("NOT safe: {}", self.why) };
        format!("tolerance {} {noun}   change of members: {change}", self.tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Member =
        Member { node: 1, voter: true, answers: true, cut: false, lag_entries: Some(0), leaving: false };

    #[test]
    fn a_change_is_safe_only_while_every_voter_is_well() {
        let three = |third| [WELL, Member { node: 2, ..WELL }, Member { node: 3, ..third }];
        let line = |third, led| safety(&three(third), led, false).line();
        assert_eq!(line(WELL, true), "tolerance 1 node   change of members: safe");
        let down = Member { answers: false, ..WELL };
        assert_eq!(
            line(down, true),
            "tolerance 0 nodes   change of members: NOT safe: node 3 does not answer"
        );
        let replaced = Member { leaving: true, ..down };
        assert_eq!(
            line(replaced, true),
            "tolerance 0 nodes   change of members: safe",
            "it is what mends it"
        );
        let behind = Member { lag_entries: Some(81_000), ..WELL };
        assert_eq!(
            line(behind, true),
            "tolerance 0 nodes   change of members: NOT safe: node 3 lags 81000 entries"
        );
        let cut = Member { cut: true, ..WELL };
        assert_eq!(safety(&three(cut), true, false).tolerance, 0);
        assert_eq!(line(WELL, false), "tolerance 1 node   change of members: NOT safe: nobody leads");
        let learner = Member { voter: false, answers: false, ..WELL };
        assert!(safety(&three(learner), true, false).change_safe, "a learner votes for nothing");
        assert!(safety(&[WELL], true, false).change_safe, "one node can get others");
        assert!(!safety(&[], true, false).change_safe, "nobody knows");
        assert_eq!(
            safety(&three(WELL), true, true).line(),
            "tolerance 1 node   change of members: NOT safe: a change is under way"
        );
    }

    #[test]
    fn every_voter_that_is_not_well_is_one_that_may_not_fail_any_more() {
        let down = Member { answers: false, ..WELL };
        let told = |members: &[Member]| safety(members, true, false).tolerance;
        assert_eq!((told(&[WELL; 5]), told(&[WELL; 3]), told(&[WELL; 2]), told(&[WELL])), (2, 1, 0, 0));
        assert_eq!((told(&[WELL, WELL, WELL, WELL, down]), told(&[WELL, down, down])), (1, 0));
    }
}
