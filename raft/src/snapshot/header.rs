//! What a snapshot says of itself, in the words of the layout that builds of its level read.

use serde::{Deserialize, Serialize};
use tripod_state::ids::FeatureLevel;
use tripod_state::{State, level};

use crate::base::codec::{self, CodecError};
use crate::base::types::{LogId, Membership, SnapshotMeta};

/// The layout of states of the first level, whose builds know no other.
pub(super) const FIRST: u32 = 2;
/// The layout of states above it: the header tells level and digest version.
pub(super) const WITH_LEVEL: u32 = 3;

/// What a snapshot is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) cluster_id: String,
    /// The last entry applied to the state.
    pub(crate) last_log_id: Option<LogId>,
    /// The members as of that entry.
    pub(crate) membership: Membership,
    /// The state's digest.
    pub(crate) digest: u64,
    pub(crate) form: Form,
}

/// Which builds can read a snapshot, and which can check its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// The feature level of the state.
    pub(crate) level: FeatureLevel,
    /// How the digest was made: [`State::DIGEST_VERSION`].
    pub(crate) digest_version: u32,
}

/// Layout 2, as it has always been.
#[derive(Serialize, Deserialize)]
struct FirstLayout {
    cluster_id: String,
    last_log_id: Option<LogId>,
    membership: Membership,
    digest: u64,
}

/// Layout 3. The level comes first, so that it can be told whatever a later build puts behind it.
#[derive(Serialize, Deserialize)]
struct LayoutWithLevel {
    level: FeatureLevel,
    digest_version: u32,
    cluster_id: String,
    last_log_id: Option<LogId>,
    membership: Membership,
    digest: u64,
}

impl Form {
    /// Of a state as this build hashes it.
    pub(crate) fn of(state: &State) -> Self {
        Self { level: state.level(), digest_version: State::DIGEST_VERSION }
    }
}

impl Header {
    /// openraft's description of the same.
    pub(crate) fn meta(&self) -> SnapshotMeta {
        SnapshotMeta { last_log_id: self.last_log_id, last_membership: self.membership.clone() }
    }

    /// The layout of its file.
    pub(crate) fn layout(&self) -> u32 {
        if self.form.level == level::FIRST { FIRST } else { WITH_LEVEL }
    }

    /// The body of the header's frame.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { cluster_id, last_log_id, membership, digest, form } = self.clone();
        if self.layout() == FIRST {
            return codec::encode(&FirstLayout { cluster_id, last_log_id, membership, digest });
        }
        let Form { level, digest_version } = form;
        codec::encode(&LayoutWithLevel { level, digest_version, cluster_id, last_log_id, membership, digest })
    }

    /// Reads the body of a header's frame of that layout.
    pub(super) fn decode(layout: u32, body: &[u8]) -> Result<Self, CodecError> {
        if layout == FIRST {
            let FirstLayout { cluster_id, last_log_id, membership, digest } = codec::decode(body)?;
            // Its builds changed what they hash only together with the layout.
            let form = Form { level: level::FIRST, digest_version: 2 };
            return Ok(Self { cluster_id, last_log_id, membership, digest, form });
        }
        let LayoutWithLevel { level, digest_version, cluster_id, last_log_id, membership, digest } =
            codec::decode(body)?;
        Ok(Self { cluster_id, last_log_id, membership, digest, form: Form { level, digest_version } })
    }
}
