//! What the nodes of one cluster know of each other beside it: so that none of them finishes before all have told what they
//! have to tell, and those who are to come later come then.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// Between two looks at something that is waited for.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// The first port of processes of nodes.
const FIRST_PORT: u16 = 20_000;

/// What is given out once in a run. Clones are the same.
#[derive(Clone)]
pub(super) struct Numbers {
    port: Rc<Cell<u16>>,
    event: Rc<Cell<u32>>,
}

/// What a node that comes later waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Wait,
    Come,
    /// There will be no place for it.
    StayAway,
}

pub(super) struct Gang {
    /// Events that were answered.
    pub(super) told: RefCell<BTreeSet<u32>>,
    /// How many still have something to do before all finish.
    pub(super) busy: Cell<usize>,
    /// Who has been told of the others.
    pub(super) formed: RefCell<BTreeSet<String>>,
    /// Those of the servers that are there.
    pub(super) ranks: RefCell<BTreeMap<String, u32>>,
    pub(super) call: Cell<Call>,
    /// Whether a node has left that was to.
    pub(super) has_left: Cell<bool>,
}

impl Numbers {
    pub(super) fn new() -> Self {
        Self { port: Rc::new(Cell::new(FIRST_PORT)), event: Rc::default() }
    }

    /// A port for a process, which also tells it from others.
    pub(super) fn port(&self) -> u16 {
        self.port.replace(self.port.get() + 1)
    }

    /// Something to tell all.
    pub(super) fn event(&self) -> u32 {
        self.event.set(self.event.get() + 1);
        self.event.get()
    }
}

impl Gang {
    /// So many have something to do.
    pub(super) fn of(busy: usize) -> Self {
        Self {
            told: RefCell::default(),
            busy: Cell::new(busy),
            formed: RefCell::default(),
            ranks: RefCell::default(),
            call: Cell::new(Call::Wait),
            has_left: Cell::new(false),
        }
    }

    /// One of them has nothing left to do.
    pub(super) fn idle(&self) {
        self.busy.set(self.busy.get().saturating_sub(1));
    }

    /// Waits until it is known whether a node that is to come later comes.
    pub(super) async fn called(&self) -> bool {
        while self.call.get() == Call::Wait {
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        self.call.get() == Call::Come
    }

    /// The server of the highest rank. When it leaves all others keep theirs.
    pub(super) fn last_server(&self) -> Option<String> {
        let ranks = self.ranks.borrow();
        ranks.iter().max_by_key(|(_, rank)| **rank).map(|(name, _)| name.clone())
    }
}
