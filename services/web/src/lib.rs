//! Health, status and a page over HTTP, for probes and people with a browser.
//!
//! | path | answers |
//! |---|---|
//! | `/` | leads to `/ui/`; without that page, names the others |
//! | `/ui/` | the page for people: the cluster, its jobs and their tasks, as they change (module `ui`) |
//! | `/livez` | 200 for as long as the process runs its requests |
//! | `/readyz` | 200 when a linearizable read works, the disk answers and the node is not drained, else 503 with the reason; `?verbose` tells each check |
//! | `/status` | this node's view of itself and the cluster, as JSON |
//! | `/metrics` | what to alarm on, as Prometheus reads it |
//!
//! What this crate does not know: the command line, gRPC, and how a node finds its leader.
//!
//! Invariants:
//! * Liveness never depends on the quorum: restarting a node that only lost its leader helps nobody.
//! * Nothing here changes the state.
//! * What viewers of the page cost does not grow with how many they are, but for the bytes that they are sent.
//!
//! | module | what |
//! |---|---|
//! | `serve` | the server, and how many connections it has and for how long |
//! | `router` | the paths and their answers |
//! | `bearer` | the token that a request shows, if it shows one |
//! | `view` | the JSON |
//! | `metrics` | the page `/metrics` |
//! | `ui` | the page for people |

mod bearer;
mod metrics;
mod router;
mod serve;
mod ui;
mod view;

pub use metrics::{Kind as MetricKind, METRICS, Metric, NodeFigures};
pub use router::Parts;
#[doc(hidden)]
pub use router::router;
pub use serve::{Manner, VIEWERS_MAX, serve, serve_protected, viewers_of_files};
pub use ui::Viewers;
