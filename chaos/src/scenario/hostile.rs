//! What is judged beside attackers: no write of a well-behaved client is lost, and every node stays within its memory. What
//! that client noticed of the attacks is told, and judged by nobody.

use std::collections::BTreeMap;

use super::memory;
use tripod_checkers::check::{Checked, Violation};
use tripod_processes::attack::{RESIDENT_BYTES_MAX, Testimony, Witness};
use tripod_processes::fault::Arena;
use tripod_processes::workload::Setting;

/// Empty in a run without attackers.
#[derive(Debug, Default)]
pub(super) struct Hostile {
    witness: Option<Witness>,
    /// What the witness saw, or why what it wrote cannot be read.
    heard: Option<Result<Testimony, String>>,
    resident_max_bytes: BTreeMap<u64, u64>,
}

impl Hostile {
    /// Lets a well-behaved client begin, if there is something for it to notice.
    ///
    /// # Errors
    /// An endpoint is no address, or does not answer.
    pub(super) async fn begin(setting: &Setting) -> anyhow::Result<Self> {
        if setting.aim.is_none() {
            return Ok(Self::default());
        }
        let endpoints: Vec<String> =
            setting.endpoints.iter().map(|endpoint| endpoint.address.clone()).collect();
        Ok(Self { witness: Some(Witness::start(&endpoints).await?), ..Self::default() })
    }

    /// Hears it, when the cluster serves again.
    pub(super) async fn end(&mut self, arena: &Arena<'_>) {
        let Some(witness) = self.witness.take() else { return };
        self.heard = Some(witness.end().await.map_err(|error| format!("{error:#}")));
        self.resident_max_bytes.clone_from(&arena.resident_max_bytes);
    }

    /// What was measured, and what came of each attack.
    pub(super) fn figures(&self, setting: &Setting) -> BTreeMap<String, String> {
        let mut figures = BTreeMap::new();
        if let Some(Ok(testimony)) = &self.heard {
            figures.insert("a well-behaved client".to_owned(), testimony.to_string());
        }
        for (node, bytes) in &self.resident_max_bytes {
            figures.insert(format!("most memory of node {node}"), memory::mib(*bytes));
        }
        for (name, tally) in setting.attacks() {
            figures.insert(format!("attack: {name}"), tally.to_string());
        }
        figures
    }

    pub(super) fn checks(&self) -> Vec<Checked> {
        let violation = |rule: &str, what: String| Violation::new(rule, "the witness", what, &[]);
        let witness = match &self.heard {
            None => return Vec::new(),
            Some(Err(why)) => Checked::told("witness", 0, vec![violation("liveness", why.clone())]),
            Some(Ok(testimony)) => {
                let lost = testimony.lost.iter();
                let lost =
                    lost.map(|key| violation("lost", format!("{key} was acknowledged and is not there")));
                Checked::told("witness", testimony.acknowledged, lost.collect())
            }
        };
        vec![witness, memory::judge(&self.resident_max_bytes, RESIDENT_BYTES_MAX)]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn heard(lost: &[&str]) -> Hostile {
        let testimony = Testimony {
            acknowledged: 7,
            failed: 2,
            first_failure: None,
            lost: lost.iter().map(|key| (*key).to_owned()).collect(),
            p50: Duration::ZERO,
            p99: Duration::ZERO,
            longest: Duration::ZERO,
        };
        Hostile { heard: Some(Ok(testimony)), ..Hostile::default() }
    }

    #[test]
    fn a_lost_write_of_the_witness_is_a_violation_and_a_failed_one_is_none() {
        assert_eq!(Hostile::default().checks(), []);
        assert!(heard(&[]).checks().iter().all(Checked::held));
        let checks = heard(&["witness/0/3"]).checks();
        assert!(checks[0].violations()[0].explanation.contains("witness/0/3"), "{checks:?}");
    }
}
