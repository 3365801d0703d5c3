//! Bytes from one end of a line to the other.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};

use crate::listening::{Fate, closed, thawed};

/// Bytes that one step carries.
const STEP_BYTES: usize = 16 << 10;

/// Carries both ways until both ends are over or the place is closed. Then everything is dropped, which both sides see.
pub(crate) async fn between(here: DuplexStream, there: DuplexStream, fate: Fate) {
    let ((near_in, near_out), (far_in, far_out)) = (split(here), split(there));
    let (forth, back) = (one_way(near_in, far_out, fate.clone()), one_way(far_in, near_out, fate.clone()));
    tokio::select! {
        // An error says that one side has gone, so there is nobody to tell.
        _ = async { tokio::join!(forth, back) } => {}
        () = closed(fate) => {}
    }
}

async fn one_way(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    mut fate: Fate,
) -> io::Result<()> {
    let mut bytes = vec![0; STEP_BYTES];
    loop {
        let count = from.read(&mut bytes).await?;
        thawed(&mut fate).await;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}
