//! What was recovered, and what may be missing.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use tripod_raft::doctor::{EntryId, Report, Salvaged};

use crate::view::counted;

/// Another survivor whose directory was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Compared {
    node: u64,
    data: String,
    last: Option<EntryId>,
    /// Its log could be read to the end.
    whole: bool,
}

impl Compared {
    pub(crate) fn of(node: u64, report: &Report, last: Option<EntryId>) -> Self {
        Self { node, data: report.data.clone(), last, whole: report.log_whole }
    }
}

/// A node of the cluster that still runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Answering {
    pub(crate) node: u64,
    pub(crate) endpoint: String,
    pub(crate) last_index: u64,
}

/// The whole story.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecoveryView {
    file: String,
    data: String,
    cluster_id: String,
    last: EntryId,
    /// Entries in the file that the node did not know as committed.
    uncertain: u64,
    voters: Vec<u64>,
    compared: Vec<Compared>,
    answering: Vec<Answering>,
    /// Voters whose logs must be known, this one's included, so that nothing acknowledged is missing.
    needed: usize,
    /// Voters whose logs are known.
    known: usize,
    /// Nothing that was acknowledged is missing.
    complete: bool,
}

impl RecoveryView {
    pub(crate) fn of(
        file: &Path,
        salvaged: &Salvaged,
        compared: Vec<Compared>,
        answering: Vec<Answering>,
    ) -> Self {
        let voters: Vec<u64> = salvaged.voters.iter().map(|(node, _)| *node).collect();
        let own = salvaged.report.log_identity.as_ref().and_then(|identity| identity["node"].as_u64());
        // A log that ends in damage may have held more.
        let sound = |compared: &&Compared| compared.whole && compared.last <= Some(salvaged.last);
        let looked_at: BTreeSet<u64> =
            own.into_iter().chain(compared.iter().filter(sound).map(|compared| compared.node)).collect();
        let known = voters.iter().filter(|voter| looked_at.contains(voter)).count();
        // Whatever was acknowledged is on a majority; so many voters have one in common with every majority.
        let needed = voters.len() - voters.len() / 2;
        Self {
            file: file.display().to_string(),
            data: salvaged.report.data.clone(),
            cluster_id: salvaged.cluster_id.clone(),
            last: salvaged.last,
            uncertain: salvaged.uncertain,
            voters,
            compared,
            answering,
            needed,
            known,
            complete: known >= needed,
        }
    }

    pub(crate) fn render(&self) -> String {
        let mut lines = vec![
            format!("saved      {}, from {}", self.file, self.data),
            format!(
                "cluster    {}, up to index {} of term {}",
                self.cluster_id, self.last.index, self.last.term
            ),
            format!(
                "uncertain  {} at the end, not known as committed here, saved too",
                counted(self.uncertain, "entry", "entries")
            ),
        ];
        for compared in &self.compared {
            let last = compared.last.map_or(0, |last| last.index);
            lines.push(format!("compared   node {} in {}, up to {last}", compared.node, compared.data));
        }
        for answer in &self.answering {
            lines.push(format!(
                "runs       node {} at {}, up to {}: stop it before the new cluster starts",
                answer.node, answer.endpoint, answer.last_index
            ));
        }
        lines.push(self.loss());
        lines.push(format!(
            "next:\n  tripod snapshot restore {} --name NAME --node 1 --data NEW_DIR --members 1=HOST:PORT --keep-jobs",
            self.file
        ));
        lines.join("\n")
    }

    fn loss(&self) -> String {
        let (known, voters, needed) = (self.known, self.voters.len(), self.needed);
        if self.complete {
            return format!(
                "missing    nothing that was acknowledged: {known} of {voters} voters' logs were looked at"
            );
        }
        format!(
            "missing    perhaps acknowledged writes: {known} of {voters} voters' logs were looked at, {needed} are needed \
             to be sure; add survivors with --compare"
        )
    }
}
