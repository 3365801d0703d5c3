//! Whether this node is in contact with the rest of the cluster, as its ports see it.
//!
//! Who asks the cluster, and when contact is taken for lost, is not known here: it holds the [`ContactSwitch`].

use tokio::sync::watch;

/// Whether contact is lost, as it changes. Clones have seen what their original has.
#[derive(Debug, Clone)]
pub struct Contact {
    now: watch::Receiver<State>,
    /// Losses that [`Self::lost`] has told of.
    told: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    lost: bool,
    losses: u64,
}

/// Makes a contact lost and found.
#[derive(Debug)]
pub struct ContactSwitch {
    state: watch::Sender<State>,
}

impl Contact {
    /// One that is never lost.
    #[must_use]
    pub fn never_lost() -> Self {
        Self::by_hand().0
    }

    /// One that is in the hands of the caller.
    #[must_use]
    pub fn by_hand() -> (Self, ContactSwitch) {
        let (state, now) = watch::channel(State::default());
        (Self { now, told: 0 }, ContactSwitch { state })
    }

    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.now.borrow().lost
    }

    /// Resolves when contact is lost, once for each time.
    pub async fn lost(&mut self) {
        let told = self.told;
        let losses = self.now.wait_for(|now| now.losses > told).await.map(|now| now.losses);
        match losses {
            Ok(losses) => self.told = losses,
            // Who could have lost it is gone.
            Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when there is contact.
    pub async fn found(&mut self) {
        // If who could have found it is gone, nobody needs to wait for it.
        let _ = self.now.wait_for(|now| !now.lost).await;
    }
}

impl ContactSwitch {
    pub fn lose(&self) {
        self.state.send_if_modified(|now| {
            let loses = !now.lost;
            *now = State { lost: true, losses: now.losses + u64::from(loses) };
            loses
        });
    }

    pub fn find(&self) {
        self.state.send_if_modified(|now| std::mem::take(&mut now.lost));
    }

    /// Whether contact is lost now.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.borrow().lost
    }

    /// Resolves when nobody listens any more.
    pub async fn unwatched(&self) {
        self.state.closed().await;
    }
}
