//! How much memory a node may use for its clients, and how much there is.

use clap::Args;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};
use tripod_port::MemoryLimits;

const BYTES_OF_MIB: u64 = 1 << 20;
/// What a machine has whose system does not say: the smallest that one would run a node on.
const MACHINE_BYTES_USUAL: u64 = 2 << 30;

/// Flags of a node.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct MemoryFlags {
    /// Memory for clients, in MiB: requests that come and run, calls that wait, answers that are not read yet. Beyond it
    /// a call is refused with T2208, except the few that each connection may always make. Connections with one name in
    /// their certificates, or one token, have three quarters of it together (T2214) [default: a quarter of what the machine or
    /// its control group has]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    client_memory_mib: Option<u32>,

    /// Of this, memory for one connection, in MiB: so much for its requests and waiting calls, and so much for its
    /// answers. Beyond it requests and answers wait, and calls are refused with T2209 [default: half of it]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    connection_memory_mib: Option<u32>,
}

/// Flags of an agent.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct AgentMemoryFlags {
    /// Memory for clients, in MiB: requests that come, calls that wait, answers that are not read yet. Beyond it a call is
    /// refused with T2208, except the few that each connection may always make [default: a quarter of what the machine or
    /// its control group has, and 512 at most]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    client_memory_mib: Option<u32>,

    /// Of this, memory for one connection, in MiB: so much for its requests and waiting calls, and so much for its
    /// answers. Beyond it requests and answers wait, and calls are refused with T2209 [default: half of it]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    connection_memory_mib: Option<u32>,
}

impl AgentMemoryFlags {
    /// What these say, on this machine.
    pub(crate) fn limits(self) -> MemoryLimits {
        let usual = || MemoryLimits::of_agents_machine(machine_bytes());
        limits_of(self.client_memory_mib, self.connection_memory_mib, usual)
    }

    /// The same as they are written on a command line.
    pub(crate) fn to_flags(self) -> impl Iterator<Item = String> {
        let client = self.client_memory_mib.map(|mib| format!("--client-memory-mib={mib}"));
        let connection = self.connection_memory_mib.map(|mib| format!("--connection-memory-mib={mib}"));
        client.into_iter().chain(connection)
    }
}

fn limits_of(
    client_mib: Option<u32>,
    connection_mib: Option<u32>,
    usual: impl FnOnce() -> MemoryLimits,
) -> MemoryLimits {
    let bytes = |mib: u32| u64::from(mib) * BYTES_OF_MIB;
    let limits = client_mib.map_or_else(usual, |mib| MemoryLimits::of(bytes(mib)));
    let one_connection = connection_mib.map_or(limits.one_connection, bytes);
    MemoryLimits { one_connection, ..limits }
}

impl MemoryFlags {
    /// What these say, on this machine.
    pub(crate) fn limits(self) -> MemoryLimits {
        self.limits_of(machine_bytes)
    }

    fn limits_of(self, machine_bytes: impl FnOnce() -> u64) -> MemoryLimits {
        let usual = || MemoryLimits::of_machine(machine_bytes());
        limits_of(self.client_memory_mib, self.connection_memory_mib, usual)
    }

    /// The flags of one of several nodes that share this machine.
    pub(crate) fn of_share(nodes: usize) -> Vec<String> {
        let share = machine_bytes() / u64::try_from(nodes.max(1)).unwrap_or(u64::MAX);
        let mib = (MemoryLimits::of_machine(share).all / BYTES_OF_MIB).max(1);
        vec![format!("--client-memory-mib={mib}")]
    }
}

/// Bytes of memory that this process may use: the machine's, or its control group's if that has fewer.
pub(super) fn machine_bytes() -> u64 {
    let memory = MemoryRefreshKind::nothing().with_ram();
    let Ok(system) = System::new_with_specifics(RefreshKind::nothing().with_memory(memory)) else {
        return MACHINE_BYTES_USUAL;
    };
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    match system.total_memory().min(group) {
        0 => MACHINE_BYTES_USUAL,
        bytes => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_a_quarter_of_the_machine_and_a_connection_half_of_that() {
        let limits = MemoryFlags::default().limits_of(|| 8 << 30);
        assert_eq!(limits, MemoryLimits { all: 2 << 30, one_connection: 1 << 30 });
        let flags = MemoryFlags { client_memory_mib: Some(64), ..MemoryFlags::default() };
        assert_eq!(flags.limits_of(|| 1), MemoryLimits { all: 64 << 20, one_connection: 32 << 20 });
        let flags = MemoryFlags { connection_memory_mib: Some(5), ..flags };
        assert_eq!(flags.limits_of(|| 1).one_connection, 5 << 20);
    }

    #[test]
    fn clients_of_an_agent_have_as_much_up_to_a_bound() {
        let of = |machine_bytes| limits_of(None, None, || MemoryLimits::of_agents_machine(machine_bytes));
        assert_eq!(of(1 << 30), MemoryLimits { all: 256 << 20, one_connection: 128 << 20 });
        assert_eq!(of(1 << 40), MemoryLimits { all: 512 << 20, one_connection: 256 << 20 });
        let flags = AgentMemoryFlags { client_memory_mib: Some(8), connection_memory_mib: Some(3) };
        assert_eq!(flags.limits(), MemoryLimits { all: 8 << 20, one_connection: 3 << 20 });
        let written: Vec<String> = flags.to_flags().collect();
        assert_eq!(written, ["--client-memory-mib=8", "--connection-memory-mib=3"]);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(machine_bytes() > 64 << 20);
    }
}
