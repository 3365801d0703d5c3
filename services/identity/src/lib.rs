//! Who calls: an [`Identity`], read from and written as the one URI of a certificate that is ours,
//! `spiffe://TRUST/tripod/CLUSTER/...`.
//!
//! | path behind the cluster | proves | [`Kind`] |
//! |---|---|---|
//! | `/node/NAME` | to be the voter or learner NAME | `Node` |
//! | `/operator/NAME`, `/viewer/NAME` | to be at most that; what NAME may is said by grants | `Operator`, `Viewer` |
//! | `/job/JOB/agent` | to speak for all tasks of JOB on a host | `Agent` |
//! | `/job/JOB/task`, `/job/JOB/task/N` | to be a task of JOB; with N, that one only | `Task` |
//! | `/job/JOB/driver`, `/worker`, `/store` | to be one of JOB's scheduler | `Driver`, `Worker`, `Store` |
//!
//! Does not know: certificates and who signed them (whoever reads one hands over its URIs, [`Identity::of_uris`]), tokens, what anybody
//! may do, or any type of ours. Nothing but the standard library is used, and nothing here copies what was refused into a text:
//! it comes from anybody, and texts go to terminals and logs.
//!
//! There is one way to write an identity: whatever is read is written as the same bytes. So equal identities have equal texts, and a
//! prefix of a text ([`Realm::nodes`]) means what it seems to.
//!
//! | module | holds |
//! |---|---|
//! | `identity` | the whole: reading, writing, the one URI among several |
//! | `kind` | what stands behind the cluster |
//! | `realm` | trust domain and cluster, without which a name means nothing |
//! | `name` | names of clusters, nodes, people and jobs |
//! | `trust_domain` | the host of such a URI |
//! | `task_number` | the number of a task |
//! | `refused` | why a text is not one of these |

mod identity;
mod kind;
mod name;
mod realm;
mod refused;
mod task_number;
mod trust_domain;

pub use identity::{IDENTITY_BYTES_MAX, Identity};
pub use kind::Kind;
pub use name::{ClusterName, JobName, NAME_BYTES_MAX, NodeName, PersonName};
pub use realm::Realm;
pub use refused::Refused;
pub use task_number::TaskNumber;
pub use trust_domain::{TRUST_DOMAIN_BYTES_MAX, TrustDomain};
