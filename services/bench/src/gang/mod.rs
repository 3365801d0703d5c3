//! Gangs of tasks behind agents.
//!
//! | module | what |
//! |---|---|
//! | `started` | 2,000 tasks behind 32 agents that are processes: what agents do about everything |
//! | `played` | as many tasks as wanted behind agents that this process plays: what nodes bear |
//! | `size` | how many, and what cannot be |
//! | `phase` | all tasks make one step |
//! | `usage` | memory and disk of the nodes |
//! | `table` | the figures |

mod phase;
mod played;
mod size;
mod started;
mod table;
mod usage;

use clap::Args;

use super::Section;
use size::Size;

/// How large a gang, and what befalls it.
#[derive(Debug, Clone, Copy, Args)]
pub struct Amounts {
    /// Tasks behind agents that are played, at most 1,000,000. With 10,000 or less the result is the section `gang-played`
    /// of the document, with more `gang-played-large`.
    #[arg(long, value_name = "N", requires = "agents")]
    pub tasks: Option<u32>,
    /// Agents that are played, at most 50,000 and no more than there are tasks: as many connections, streams of calls and
    /// sessions, spread over the three nodes. An open file each, in this process and in the nodes: `ulimit -Hn` must allow
    /// 512 more than there are agents, which is looked at before anything starts.
    #[arg(long, value_name = "M", requires = "tasks")]
    pub agents: Option<u32>,
    /// Then once more with another gang, and with the leader killed (SIGKILL) in the middle of each phase: half of the agents
    /// begin, the leader dies after half of the time that the phase took before, and the other half begins.
    #[arg(long, requires = "agents")]
    pub kill_leader: bool,
    /// How long tasks only beat, in seconds.
    #[arg(long, default_value_t = 20.0, requires = "agents")]
    pub beat_seconds: f64,
    /// How long a task may be silent, in seconds. It beats twice in that time, as clients do: 100,000 tasks send 10,000
    /// heartbeats a second when it is 20.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=3600), requires = "agents")]
    pub heartbeat_timeout: u64,
    /// Tasks of one agent beat at different times, as they do after days. As a gang starts they beat together, and agents
    /// tell fewer words.
    #[arg(long, requires = "agents")]
    pub beats_apart: bool,
}

impl Amounts {
    /// As `bench all` has it: agents that are processes.
    pub(super) fn usual() -> Self {
        Self {
            tasks: None,
            agents: None,
            kill_leader: false,
            beat_seconds: 20.0,
            heartbeat_timeout: 20,
            beats_apart: false,
        }
    }
}

/// Runs one gang, or two.
pub(super) async fn run(amounts: Amounts) -> anyhow::Result<Section> {
    match Size::of(amounts)? {
        None => started::run().await,
        Some(size) => played::run(size).await,
    }
}
