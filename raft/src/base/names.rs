//! Which certificate belongs to which node, for whoever must not wait for what is being applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tripod_state::State;
use tripod_state::ids::CertificateName;

/// What the certificates of nodes call them, as the state said last. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeMap<u64, CertificateName>>>);

impl Names {
    /// Takes over what the state says.
    pub(crate) fn note(&self, state: &State) {
        let names = state.certificate_names().map(|(node, name)| (node.0, name.clone())).collect();
        *self.0.lock() = names;
    }

    /// That of a node, if the log has bound one to its id.
    pub(crate) fn of(&self, node: u64) -> Option<CertificateName> {
        self.0.lock().get(&node).cloned()
    }
}
