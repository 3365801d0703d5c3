//! The scheduler's workers and object stores as processes of the same binary, on addresses of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::Cluster;
use super::options::find_tripod;
use super::process::NodeProcess;

/// Every machine has a store and so many workers. The drivers are on the first one.
const MACHINES: u8 = 2;
const WORKERS: u8 = 2;

/// Whose place a process takes: a machine, and there the store or a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    Store(u8),
    Worker(u8, u8),
}

/// The machines. Dropping them ends all their processes.
#[derive(Debug)]
pub struct Peers {
    binary: PathBuf,
    endpoints: Vec<String>,
    /// The loopback address of the first machine; the others follow in its second number.
    host: Ipv4Addr,
    data: PathBuf,
    /// Those that are to run.
    running: BTreeMap<Seat, NodeProcess>,
}

impl Peers {
    /// Starts them for a cluster that serves. Their data and logs are below `data`.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start_all(cluster: &Cluster, data: &Path) -> anyhow::Result<Self> {
        let endpoints = cluster.endpoints();
        let port = endpoints.first().and_then(|endpoint| endpoint.rsplit_once(':')?.1.parse::<u16>().ok());
        // Workers listen where the scheduler says, which is the same port in every cluster.
        let [high, low] = port.context("a cluster has an endpoint")?.to_be_bytes();
        let host = Ipv4Addr::new(127, 110, high, low.max(1));
        let (binary, running) = (find_tripod()?, BTreeMap::new());
        let mut peers = Self { binary, endpoints, host, data: data.to_owned(), running };
        std::fs::create_dir_all(data).with_context(|| format!("cannot make {}", data.display()))?;
        for machine in 0..MACHINES {
            peers.start(Seat::Store(machine))?;
            for worker in 0..WORKERS {
                peers.start(Seat::Worker(machine, worker))?;
            }
        }
        Ok(peers)
    }

    /// The address of a machine.
    #[must_use]
    pub fn host(&self, machine: u8) -> String {
        let [first, second, third, fourth] = self.host.octets();
        Ipv4Addr::new(first, second + machine, third, fourth).to_string()
    }

    /// Any worker that runs.
    #[must_use]
    pub fn worker(&self, chance: u64) -> Option<Seat> {
        self.one(chance, |seat| matches!(seat, Seat::Worker(..)))
    }

    /// Any store that runs, but for that of the drivers: what they have put is nowhere else.
    #[must_use]
    pub fn store_without_drivers(&self, chance: u64) -> Option<Seat> {
        self.one(chance, |seat| matches!(seat, Seat::Store(1..)))
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(&mut self, seat: Seat) -> anyhow::Result<()> {
        match self.running.remove(&seat) {
            Some(mut process) => process.kill().map(drop),
            None => Ok(()),
        }
    }

    /// Starts the process of a seat, again.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, seat: Seat) -> anyhow::Result<()> {
        let mut command = Command::new(&self.binary);
        let (Seat::Store(machine) | Seat::Worker(machine, _)) = seat;
        let host = self.host(machine);
        match seat {
            Seat::Store(_) => {
                let folder = self.data.join(format!("store-{machine}"));
                command.args(["objstore", "--listen", &format!("{host}:0"), "--directory"]).arg(folder)
            }
            Seat::Worker(..) => command.args(["worker", "--host", &host]),
        };
        command.args(["--exit-with-parent", "--endpoints", &self.endpoints_of(seat)]);
        let name = seat.to_string();
        let log = self.data.join(format!("{}.log", name.replace(' ', "-")));
        self.running.insert(seat, NodeProcess::spawn(name, command, &log)?);
        Ok(())
    }

    /// Starts those again that have ended by themselves, as a supervisor would: a worker ends when its machine has no
    /// store.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn look_for_the_dead(&mut self) -> anyhow::Result<()> {
        let ended = self.running.iter_mut().filter_map(|(seat, process)| process.ended().map(|_| *seat));
        for seat in ended.collect::<Vec<_>>() {
            self.start(seat)?;
        }
        Ok(())
    }

    /// All nodes. Who is asked first differs from seat to seat: whatever cuts nodes off has peers on both sides.
    fn endpoints_of(&self, seat: Seat) -> String {
        let first = match seat {
            Seat::Store(machine) => usize::from(machine),
            Seat::Worker(machine, worker) => usize::from(machine * WORKERS + worker),
        };
        let mut endpoints = self.endpoints.clone();
        let first = first % endpoints.len();
        endpoints.rotate_left(first);
        endpoints.join(",")
    }

    fn one(&self, chance: u64, suits: impl Fn(&Seat) -> bool) -> Option<Seat> {
        let seats: Vec<Seat> = self.running.keys().copied().filter(|seat| suits(seat)).collect();
        let place = chance.checked_rem(seats.len() as u64)?;
        seats.get(usize::try_from(place).ok()?).copied()
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(machine) => write!(f, "store {machine}"),
            Self::Worker(machine, worker) => write!(f, "worker {machine} {worker}"),
        }
    }
}
