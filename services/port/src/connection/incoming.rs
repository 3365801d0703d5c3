//! The stream of adapted connections that a listener accepts.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio_stream::Stream;

use super::adapter::Mended;
use super::arrivals::Arrivals;
use super::frame;
use super::listener::Listener;
use super::port_resources::PortResources;
use super::socket::Socket;
use crate::bytes_held::Budget;
use crate::stop::Stopping;

/// The connections of a listener, adapted. It never ends, and it yields no errors.
pub struct MendedIncoming {
    arrivals: Arrivals,
    memory: Budget,
    stopping: Stopping,
}

impl MendedIncoming {
    /// The connections of `listener`, for as long as this is polled. They end when `stopping` says so.
    #[must_use]
    pub fn until(listener: Listener, stopping: Stopping) -> Self {
        Self::through(Arc::new(listener), stopping, PortResources::open())
    }

    /// [`Self::until`] for connections that come through this doorway.
    #[must_use]
    pub fn through(listener: Arc<Listener>, stopping: Stopping, resources: PortResources) -> Self {
        let memory = resources.memory.clone();
        Self { arrivals: Arrivals::new(listener, goaway, stopping.clone(), resources), memory, stopping }
    }
}

/// Without the settings that begin a connection the attempt to connect has failed, and clients who know other nodes try the
/// next.
fn goaway(why: &str) -> Vec<u8> {
    frame::calm(why).to_vec()
}

impl Stream for MendedIncoming {
    type Item = io::Result<Mended<Socket>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let arrived = ready!(Pin::new(&mut this.arrivals).poll_next(context));
        Poll::Ready(arrived.map(|(socket, permit)| {
            let (address, account, presented) = (socket.address(), this.memory.account(), socket.presented());
            let user = socket.user();
            let mended = Mended::charged(socket, address, account, this.stopping.clone()).counted(permit);
            if let Some(presented) = presented {
                mended.calls().prove_by(presented);
            }
            if let Some(user) = user {
                mended.calls().come_from(user);
            }
            Ok(mended)
        }))
    }
}
