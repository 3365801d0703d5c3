//! What a node stands on, as an argument: how it reaches its peers and is reached, where its storage is and
//! who waits for it, and what time it is. The real world is TCP, files, threads and a clock that starts as
//! this machine's. A simulation brings its own, and then a whole cluster runs in one thread, and a seed
//! repeats the run.

use std::fmt;
use std::sync::Arc;

use tripod_gate::{Gate, Mode, Port, Tally};
use tripod_state::ids::FeatureLevel;
use tripod_state::level;
use tripod_tls::PeerTls;

use crate::base::clock::{WallClock, time_of_day};
use crate::base::observer::Observer;
use crate::disk::Work;
use crate::disk::journal::SimulatedDisk;
use crate::peers::expected::Expected;
use crate::peers::network::Network;
use crate::peers::wiring::Wires;

/// The world of one node. Clones are the same world.
#[derive(Clone)]
pub struct World {
    pub(crate) wires: Wires,
    pub(crate) work: Work,
    pub(crate) clock: WallClock,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// The highest feature level that this build is to support.
    pub(crate) level_max: FeatureLevel,
    /// What is asked about every call that comes to the peer port.
    pub(crate) who_may_call: Arc<Gate>,
}

impl World {
    /// TCP, files in the data directory, threads, and [`time_of_day`].
    #[must_use]
    pub fn real() -> Self {
        let clock = Arc::new(time_of_day);
        Self::of(Wires::Tcp, Work::Threads, clock)
    }

    /// A network, a disk and a clock that are brought along. Nothing of such a node leaves the thread that
    /// it runs on, nor the time of that thread's runtime; [`crate::Chance::seed`] settles the rest.
    #[must_use]
    pub fn simulated(network: Arc<dyn Network>, disk: SimulatedDisk, clock: WallClock) -> Self {
        Self::of(Wires::Brought(network), Work::Inline(disk), clock)
    }

    fn of(wires: Wires, work: Work, clock: WallClock) -> Self {
        let who_may_call = Arc::new(Gate::new(Port::Peer, Mode::Off, Arc::new(Tally::default())));
        Self { wires, work, clock, observer: None, level_max: level::NEWEST, who_may_call }
    }

    /// The same world, in which the nodes prove by TLS who they are; for a world whose network is TCP.
    #[must_use]
    pub fn protected(self, tls: Option<PeerTls>) -> Self {
        match (self.wires, tls) {
            (Wires::Tcp, Some(tls)) => Self { wires: Wires::Protected(tls, Expected::default()), ..self },
            (wires, _) => Self { wires, ..self },
        }
    }

    /// The same world with this gate before the peer port, which sees who calls by its certificate.
    #[must_use]
    pub fn gated(self, who_may_call: Arc<Gate>) -> Self {
        Self { who_may_call, ..self }
    }

    /// The same world with somebody who looks on.
    #[must_use]
    pub fn observed(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same world in which this build behaves as one that knows nothing above that feature level, wherever a
    /// disk or another node can tell: for tests of upgrades. Without it a build supports all that is released.
    #[must_use]
    pub fn limited_to(self, level_max: FeatureLevel) -> Self {
        Self { level_max: level_max.min(level::NEWEST), ..self }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("wires", &self.wires).field("work", &self.work).finish_non_exhaustive()
    }
}
