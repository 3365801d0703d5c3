//! Why a MindSpore scheduler refused, in words, with the next command.

use tripod_state::mindspore::Refusal;

/// The state's refusal as one sentence without a full stop.
pub(crate) fn of_refusal(refusal: &Refusal, job: &str) -> String {
    let nodes = format!("`tripod mindspore nodes --job {job}`");
    let state = format!("`tripod mindspore state --job {job}`");
    match refusal {
        Refusal::NodeUnknown { node } => {
            format!("no node `{node}` belongs to the cluster; {nodes} shows which do")
        }
        Refusal::NodeLeft { node } => {
            format!("node `{node}` has left, or is leaving; {nodes} shows who stays")
        }
        Refusal::NothingToScale => {
            format!(
                "nothing would change: no server would be added, and none would leave; {nodes} shows them"
            )
        }
        Refusal::FirstServer { .. } | Refusal::NoServer { .. } => {
            format!("{}; name others, which {nodes} shows", refusal.text())
        }
        Refusal::NotReady { .. } => {
            format!("{}; wait until {state} says ready", refusal.text())
        }
        Refusal::NotInitialized | Refusal::NotFormed | Refusal::Ending | Refusal::NotAbortable => {
            format!("{}; {state} shows how far it is", refusal.text())
        }
        Refusal::Outdated { planned, current } => {
            format!(
                "the cluster is of generation {current} by now, not {planned}, and a plan may be another one; {state} shows \
                 how far it is, and `tripod mindspore scale --job {job} ... --plan` plans again"
            )
        }
        Refusal::OtherRole { .. }
        | Refusal::Full { .. }
        | Refusal::Replaced { .. }
        | Refusal::WorkersFixed => refusal.text(),
    }
}
