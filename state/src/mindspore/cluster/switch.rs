//! What an operator tells all servers at once.

use bytes::Bytes;

use crate::job::turn::Turn;
use crate::limits::within;
use crate::mindspore::Answer;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::Switch;
use crate::mindspore::cluster::record::Phase;
use crate::mindspore::limits::SWITCH_BODY_BYTES_MAX;

impl Turn<'_> {
    pub(super) fn switch(&mut self, switch: Switch, body: Bytes) -> Answered {
        within("bytes of what servers are told", body.len() as u64, SWITCH_BODY_BYTES_MAX as u64)?;
        let number = self.context.index.0;
        let cluster = self.ready_cluster()?;
        cluster.head.phase = Phase::Switching { number, switch, body };
        self.cluster_changed();
        Ok(Answer::Switching { switch: number })
    }

    /// Servers that have not answered by now are not waited for.
    pub(in crate::mindspore) fn switch_ended(&mut self, ended: u64) {
        let Some(cluster) = self.job.domains.cluster.as_deref_mut() else { return };
        let is_it = matches!(cluster.head.phase, Phase::Switching { number, .. } if number == ended);
        if is_it {
            cluster.head.phase = Phase::Ready;
            self.cluster_changed();
        }
    }
}
