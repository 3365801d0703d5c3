//! The connections that a listener accepts, as soon as each has a permit.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_stream::Stream;
use tripod_local::ConnectionPermit;
use tripod_proto::code::Code;

use super::listener::Listener;
use super::port_resources::PortResources;
use super::socket::Socket;
use crate::stop::Stopping;

/// How long to wait after a failed accept: without open file descriptors to spare, the next one
/// fails too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a protocol tells a client why its connection is closed before it has begun.
pub(crate) type Words = fn(&str) -> Vec<u8>;

/// A connection that has a permit.
pub(crate) type Guest = (Socket, ConnectionPermit);

/// For this long a new connection waits while its node is cut off. gRPC tries another node after 250 ms, and
/// takes the one that answers first; if no other answers, this one is better than none.
const CUT_OFF_PAUSE: Duration = Duration::from_secs(1);
/// Connections that may wait like that; more are closed.
const WAITING_MAX: usize = 1024;

/// The connections of a listener. They never end, and there are no errors: a failed accept concerns one connection, or will
/// be over when descriptors are free again. Each is counted, and closed if there is no permit for it and none that has said nothing gives way. While contact is
/// lost new ones wait a moment, so that clients who know other nodes prefer those.
pub(crate) struct Arrivals {
    listener: Arc<Listener>,
    words: Words,
    stopping: Stopping,
    resources: PortResources,
    /// Those that have waited long enough, and who sends those that wait.
    waited: (mpsc::Sender<Guest>, mpsc::Receiver<Guest>),
    pause: Option<Pin<Box<Sleep>>>,
}

impl Arrivals {
    /// Accepts from `listener` for as long as it is polled, and until `stopping` begins.
    pub(crate) fn new(
        listener: Arc<Listener>,
        words: Words,
        stopping: Stopping,
        resources: PortResources,
    ) -> Self {
        Self { listener, words, stopping, resources, waited: mpsc::channel(WAITING_MAX), pause: None }
    }

    /// Counts a connection, or turns it away. If there is no permit, one that has said nothing yet gives way.
    fn admit(&self, socket: Socket) -> Option<Guest> {
        let PortResources { connections, silent, .. } = &self.resources;
        let address = socket.address();
        let full = match connections.admit(address.0) {
            Ok(permit) => return Some((socket, permit)),
            Err(full) => full,
        };
        if silent.make_way(full, address)
            // Another port may have been faster.
            && let Ok(permit) = connections.admit(address.0)
        {
            self.resources.tell(full, "the connection that had been silent longest");
            return Some((socket, permit));
        }
        let code = Code::ConnectionsFull;
        socket.turn_away(&(self.words)(&format!("{code}: {full}; connect to another node")));
        self.resources.tell(full, "a new connection");
        None
    }

    /// Lets a connection wait, unless there is no room for it, which closes it.
    fn put_off(&self, guest: Guest) {
        let Ok(permit) = self.waited.0.clone().try_reserve_owned() else { return };
        let mut contact = self.resources.contact.clone();
        tokio::spawn(async move {
            // Either is good.
            let _ = tokio::time::timeout(CUT_OFF_PAUSE, contact.found()).await;
            permit.send(guest);
        });
    }
}

impl Stream for Arrivals {
    type Item = Guest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        // A listener wakes only who asked it last, and that must be who accepts after this one.
        if this.stopping.is_begun() {
            return Poll::Pending;
        }
        loop {
            if let Poll::Ready(Some(guest)) = this.waited.1.poll_recv(context) {
                return Poll::Ready(Some(guest));
            }
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(context));
                this.pause = None;
            }
            match ready!(this.listener.poll_accept(this.words, context)) {
                Ok(socket) => match this.admit(socket) {
                    Some(guest) if this.resources.contact.is_lost() => this.put_off(guest),
                    Some(guest) => return Poll::Ready(Some(guest)),
                    None => {}
                },
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    this.pause = Some(Box::pin(tokio::time::sleep(ACCEPT_PAUSE)));
                }
            }
        }
    }
}
