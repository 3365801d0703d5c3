//! Sessions of Mars: graphs of chunks, which played workers make (`crate::played`), and mutable tensors, which real object
//! stores keep.
//!
//! | module | what |
//! |---|---|
//! | `graphs` | graphs that are submitted, watched, stopped, read and deleted, each of which makes a known number |
//! | `build` | what they are made of |
//! | `tensors` | one mutable tensor after the other, which several clients write and read until another one has it sealed |
//! | `writer` | one of these clients |
//! | `cells` | one call to a store about cells |
//! | `fetch` | chunks that workers made, and sealed ones, from where they are |
//! | `caller` | a client's calls to nodes |

mod build;
mod caller;
mod cells;
mod fetch;
mod graphs;
mod tensors;
mod writer;

use std::time::Duration;

use tokio::task::JoinSet;
use tonic::transport::Channel;
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;

use super::setting::Setting;

/// A node, as it is asked.
type Mars = SchedulerClient<Channel>;

/// Between two attempts.
const AGAIN_PAUSE: Duration = Duration::from_millis(200);
/// How long the last of everything may take once the faults are over: workers that died are missed, and what they were to
/// make is made anew.
const LAST_PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    graphs::start(setting, clients);
    tensors::start(setting, clients);
}
