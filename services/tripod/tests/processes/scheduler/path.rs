//! The way to a process, which can be cut for one of those who take it.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tripod_processes::cluster::connections::holders;

/// An address that leads to another one of the same host. Dropping it ends every connection.
pub(super) struct Path {
    entry: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    /// The process that does not get through.
    cut_for: watch::Sender<Option<u32>>,
    turned_away: watch::Receiver<usize>,
    accepting: AbortHandle,
}

impl Path {
    /// Begins somewhere at that host. Who comes before it is known where it leads waits.
    pub(super) async fn begin(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).await.expect("a port");
        let entry = listener.local_addr().expect("bound");
        let (target, leads_to) = watch::channel(None);
        let (cut_for, cut) = watch::channel(None);
        let (turns_away, turned_away) = watch::channel(0);
        let accepting = tokio::spawn(accept(listener, leads_to, cut, turns_away));
        Self { entry, target, cut_for, turned_away, accepting: accepting.abort_handle() }
    }

    /// What those are told who are to take it.
    pub(super) fn address(&self) -> String {
        self.entry.to_string()
    }

    pub(super) fn lead_to(&self, port: u16) {
        self.target.send_replace(Some(SocketAddr::new(self.entry.ip(), port)));
    }

    /// From now on this process does not get through; what it has open ends. `None`: everybody does.
    pub(super) fn cut_for(&self, pid: Option<u32>) {
        self.cut_for.send_replace(pid);
    }

    /// Waits until so many connections did not get through.
    pub(super) async fn until_turned_away(&self, times: usize) {
        let mut turned_away = self.turned_away.clone();
        turned_away.wait_for(|count| *count >= times).await.expect("it goes on accepting");
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    leads_to: watch::Receiver<Option<SocketAddr>>,
    cut: watch::Receiver<Option<u32>>,
    turns_away: watch::Sender<usize>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (near, from) = listener.accept().await.expect("somebody comes");
        let (leads_to, cut, turns_away) = (leads_to.clone(), cut.clone(), turns_away.clone());
        connections.spawn(async move {
            if carry(near, from.port(), leads_to, cut).await == Passage::TurnedAway {
                turns_away.send_modify(|count| *count += 1);
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Passage {
    Ended,
    TurnedAway,
}

async fn carry(
    mut near: TcpStream,
    from: u16,
    mut leads_to: watch::Receiver<Option<SocketAddr>>,
    mut cut: watch::Receiver<Option<u32>>,
) -> Passage {
    // Whoever is cut off sees a connection that breaks, not one that ends well.
    near.set_zero_linger().expect("a socket");
    let entry = near.local_addr().expect("a socket").port();
    let is_cut = |pid: Option<u32>| {
        pid.is_some_and(|pid| holders(&[pid], &[(from, entry)]).contains_key(&(from, entry)))
    };
    let target = leads_to.wait_for(Option::is_some).await.map(|target| *target);
    let Ok(Some(target)) = target else { return Passage::Ended };
    let Ok(mut far) = TcpStream::connect(target).await else { return Passage::Ended };
    let mut carried = std::pin::pin!(tokio::io::copy_bidirectional(&mut near, &mut far));
    loop {
        let now = *cut.borrow_and_update();
        if is_cut(now) {
            return Passage::TurnedAway;
        }
        tokio::select! {
            _ = &mut carried => return Passage::Ended,
            changed = cut.changed() => if changed.is_err() { return Passage::Ended },
        }
    }
}
