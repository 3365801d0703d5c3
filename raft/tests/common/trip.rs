//! One connection in memory: what is said on it takes its time, and may be lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::watch;
use tripod_raft::{Chance, Stream};

use super::meter::Meter;
use super::network::{Exchange, Wire};
use super::simulation::note;

/// Bytes under way in one direction of a connection.
const LINE_BYTES: usize = 64 << 10;

/// One connection from one address to another.
pub(super) struct Trip {
    pub(super) exchange: Exchange,
    pub(super) to: String,
    /// Of the way, for the trace.
    pub(super) name: String,
    pub(super) wire: watch::Sender<Wire>,
    pub(super) meter: Arc<Meter>,
}

impl Trip {
    pub(super) async fn connect(self) -> io::Result<Box<dyn Stream>> {
        self.meter.knock();
        self.travel().await;
        let (here, near) = duplex(LINE_BYTES);
        let (far, there) = duplex(LINE_BYTES);
        let is_open = !matches!(*self.wire.borrow(), Wire::Closed | Wire::Cut);
        if !(is_open && self.exchange.knock(&self.to, there)) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        tokio::spawn(async move {
            let mut wire = self.wire.subscribe();
            tokio::select! {
                () = self.carry(near, far) => {}
                _ = wire.wait_for(|wire| *wire == Wire::Cut) => {}
            }
        });
        Ok(Box::new(here))
    }

    /// Takes the time of a way, and as much more as it is held.
    async fn travel(&self) {
        let ms = Chance.random_range(0..=self.exchange.latency_max_ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let _ = self.wire.subscribe().wait_for(|wire| *wire != Wire::Held).await;
        note(self.exchange.began, &self.name);
    }

    /// Carries what is said in both directions until either ends.
    async fn carry(&self, near: DuplexStream, far: DuplexStream) {
        let (near_read, near_write) = split(near);
        let (far_read, far_write) = split(far);
        let mut brought = 0;
        let requests = self.pass(near_read, far_write, |bytes| {
            brought += bytes;
            let then = self.meter.pass(bytes, brought);
            then.map_or(Fate::Arrives, |then| {
                self.exchange.set_all(&self.to, then);
                Fate::Ends
            })
        });
        let answers = self.pass(far_read, near_write, |_| match *self.wire.borrow() {
            // A cut ends the connection at the same moment, which this task may hear of later.
            Wire::LosesAnswers | Wire::Cut => Fate::Lost,
            _ => Fate::Arrives,
        });
        tokio::select! {
            () = requests => {}
            () = answers => {}
        }
    }

    /// Copies until the reader or the writer ends, or what is read is the end of it.
    async fn pass(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        mut fate: impl FnMut(u64) -> Fate,
    ) {
        let mut bytes = vec![0; LINE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            self.travel().await;
            match fate(count as u64) {
                Fate::Arrives if to.write_all(&bytes[..count]).await.is_ok() => {}
                Fate::Lost => {}
                Fate::Arrives | Fate::Ends => return,
            }
        }
    }
}

/// What becomes of some bytes.
enum Fate {
    Arrives,
    Lost,
    /// They are lost, and the connection with them.
    Ends,
}
