//! The entry point.

use std::sync::Arc;

use tripod_calls::Way;

use tripod_proto::wide;

use crate::call::{Caller, Repeat};
use crate::config::Config;
use crate::endpoint::Connect;
use crate::error::Error;
use crate::jobs::Jobs;
use crate::kv::Kv;
use crate::session::{Session, Ticket};
use crate::wire;

/// A cluster as its clients see it. Cheap to clone; clones share connections and the session.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    caller: Caller,
    session: Session,
}

impl Client {
    /// A client of the nodes in `config`. Connects with the first call. The second over a connection opens a stream, where
    /// the node has them, by which calls go from then on.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn new(config: &Config) -> Result<Self, Error> {
        Ok(Self::of(Caller::new(config, None)?.by_streams()))
    }

    /// The same, but each call goes by itself.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn without_streams(config: &Config) -> Result<Self, Error> {
        Ok(Self::of(Caller::new(config, None)?))
    }

    /// As [`Self::new`], with another way to the nodes: for simulations.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn connecting(config: &Config, connect: &Connect) -> Result<Self, Error> {
        Ok(Self::of(Caller::new(config, Some(connect))?.by_streams()))
    }

    fn of(caller: Caller) -> Self {
        Self { inner: Arc::new(Inner { caller, session: Session::default() }) }
    }

    /// The keys of a job; an empty name means `default`.
    #[must_use]
    pub fn kv(&self, job: &str) -> Kv {
        Kv::new(self.clone(), job)
    }

    /// The jobs of the cluster.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.clone())
    }

    /// Ends the session, so that the cluster may forget it now and not when it is found idle.
    ///
    /// # Errors
    /// [`Error`]; the session then ends by itself later.
    pub async fn close(&self) -> Result<(), Error> {
        let Some(session) = self.inner.session.id() else { return Ok(()) };
        self.inner.session.lost(session);
        let close = move |way: Way| async move {
            let (session, session_high) = wide::split(session);
            let request = wire::CloseSessionRequest { session, session_high };
            wire::sessions_client::SessionsClient::new(way).close(request).await
        };
        self.caller().call("session close", Repeat::Freely, close).await.map(|_| ())
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// A fresh stamp, of a session that is opened if there is none.
    pub(crate) async fn stamp(&self) -> Result<Ticket<'_>, Error> {
        loop {
            if let Some(ticket) = self.inner.session.stamp() {
                return Ok(ticket);
            }
            let _right = self.inner.session.opening().await;
            if self.inner.session.id().is_some() {
                continue;
            }
            let open = |way: Way| async move {
                let request = wire::OpenSessionRequest { wide: true };
                wire::sessions_client::SessionsClient::new(way).open(request).await
            };
            // A session that was opened by an attempt without an answer is found idle later.
            let opened = self.caller().call("session open", Repeat::Freely, open).await?;
            self.inner.session.opened(wide::join(opened.session, opened.session_high));
        }
    }

    /// Forgets a session that the cluster no longer knows.
    pub(crate) fn session_lost(&self, session: u128) {
        self.inner.session.lost(session);
    }
}
