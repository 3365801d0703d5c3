//! What must exist before the node that the gateway stands on: its hooks.

use std::sync::Arc;

use tripod_raft::{AskHandler, Hooks};
use tripod_state::Effect;

use crate::clock::{self, Clock};
use crate::hub::Hub;
use crate::keeper::Keeper;
use crate::open_calls::OpenCalls;
use crate::options::Options;

/// A gateway that has no node yet. The node is started with [`Parts::hooks`], the gateway with the
/// node and the parts ([`crate::Gateway::start`]).
pub struct Parts {
    pub(crate) hub: Arc<Hub>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) clock: Clock,
    pub(crate) options: Options,
    pub(crate) open_calls: Arc<OpenCalls>,
}

impl Parts {
    /// Parts that read this machine's clock.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::with_clock(options, Arc::new(clock::wall))
    }

    /// Parts that read another clock: for tests and simulations.
    #[must_use]
    pub fn with_clock(options: Options, clock: Clock) -> Self {
        let keeper = Keeper::new(options, Arc::clone(&clock));
        Self { hub: Arc::default(), keeper, clock, options, open_calls: Arc::default() }
    }

    /// What the node must tell, and may ask.
    #[must_use]
    pub fn hooks(&self) -> Hooks {
        let (hub, keeper) = (Arc::clone(&self.hub), Arc::clone(&self.keeper));
        let everybody = Arc::clone(&self.hub);
        let (open_calls, known_calls) = (Arc::clone(&self.open_calls), Arc::clone(&self.open_calls));
        Hooks {
            effects: Arc::new(move |effects: &[Effect]| {
                hub.effects(effects);
                keeper.effects(effects);
                open_calls.effects(effects);
            }),
            replaced: Arc::new(move || {
                known_calls.replaced();
                everybody.wake_all();
            }),
            asks: Arc::clone(&self.keeper) as Arc<dyn AskHandler>,
        }
    }
}
