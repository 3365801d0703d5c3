//! Clusters of real processes on loopback: start, kill, restart, pause, all by process id.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use tripod_processes::cluster::{Cluster, ClusterOptions};
//!
//! let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
//! let leader = cluster.wait_for_leader().await?;
//! cluster.kill(leader)?; // SIGKILL
//! cluster.wait_for_leader().await?;
//! cluster.restart(leader)?; // On the same data and ports.
//! cluster.wait_until_ready().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Nodes are named by their id, 1 and up. Every process ends with the value that owns it, also when a
//! test panics. Data and logs lie in a temporary directory, which a failed start keeps and names.

mod agent;
mod complaint;
pub mod connections;
mod launch;
mod options;
mod peers;
mod ports;
mod process;
mod reservation;
mod running;
mod streams;

pub use agent::Agent;
pub use complaint::complaint;
pub use options::{ClusterOptions, Kind, NodeEnv, find_etcd, find_tripod};
pub use peers::{Peers, Seat};
pub use ports::{NodePorts, PortBlock};
pub use process::NodeProcess;
pub use reservation::ReservedPorts;
pub use running::Cluster;
pub use streams::{open_streams, takes_streams};
