//! The protocol as it is composed, and one connection of it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tripod_gateway::{Consistency, FrontEnd, Gateway, JobBinding, PortKind};
use tripod_port::{Accepted, Deadlines, Framed, Manner, Stopping, Timeouts};
use tripod_state::{Command, Scope, State, kv};

use crate::line::{LINE_BYTES_MAX, Line};

/// From the first byte of a line until its end.
pub const LINE_TIME: Duration = Duration::from_secs(10);

/// The ports that speak it.
pub const PORT: PortKind = PortKind::Own("echo");

/// One for each node.
pub struct Echo {
    gateway: Gateway,
}

impl Echo {
    #[must_use]
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

impl FrontEnd for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn serves(&self, port: PortKind) -> bool {
        port == PORT
    }

    fn framed(&self, binding: &JobBinding) -> Option<Framed> {
        let (gateway, binding) = (self.gateway.clone(), binding.clone());
        let framed = Framed::new(move |accepted, stopping| {
            let call = Call { gateway: gateway.clone(), binding: binding.clone() };
            async move { call.serve(accepted, stopping).await }
        });
        Some(framed.within(Timeouts { message: LINE_TIME, ..Timeouts::default() }))
    }

    fn manners(&self) -> &'static [Manner] {
        &[]
    }
}

/// What all calls of a connection share.
struct Call {
    gateway: Gateway,
    binding: JobBinding,
}

impl Call {
    /// Answers one line after the other, until the client ends or the port stops between two of them.
    async fn serve(self, accepted: Accepted, stopping: Stopping) {
        let Accepted { stream, account, deadlines, .. } = accepted;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = tokio::select! {
                biased;
                () = stopping.begun() => return,
                read = read(&mut reader, &deadlines, &mut line) => read,
            };
            // A client that has gone, or that does not end its line, has nothing to be told.
            if !matches!(read, Ok(true)) {
                return;
            }
            let Ok(_held) = account.call(line.len() as u64) else { return };
            let answer = match Line::of(&line) {
                Ok(line) => self.answer(line).await.unwrap_or_else(|why| format!("error {why}\n")),
                Err(why) => format!("error {why}\n"),
            };
            if writer.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// # Errors
    /// What the client is told instead. This protocol has no codes of its own for refusals.
    async fn answer(&self, line: Line) -> Result<String, String> {
        let found = self.binding.find(&self.gateway, None, None).await;
        let job = found.map_err(|outage| outage.to_string())?.map_err(|fault| fault.text())?;
        let scope = Scope { job, service: None };
        match line {
            Line::Put { key, value } => {
                let put = kv::Command::Insert { scope, key, value: value.into(), overwrite: true };
                let reply = self.gateway.submit(Command::Kv(put)).await;
                reply.map_err(|outage| outage.to_string())?.map_err(|fault| fault.text())?;
                Ok("ok\n".to_owned())
            }
            Line::Get { key } => {
                let look = |state: &State| state.get(scope, &key);
                let entry = self.gateway.read(Consistency::Linearizable, look).await;
                let entry = entry.map_err(|outage| outage.to_string())?.map_err(|fault| fault.text())?;
                Ok(format!("ok {}\n", String::from_utf8_lossy(&entry.value)))
            }
        }
    }
}

/// Reads the next line, without its end. `false`: there is none.
///
/// # Errors
/// The connection's, and that of a client that is late.
async fn read(
    reader: &mut (impl AsyncBufRead + Unpin),
    deadlines: &Deadlines,
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    if !deadlines.begun(reader).await? {
        return Ok(false);
    }
    // One byte more than a line may have tells one that is too long.
    let mut bounded = reader.take(LINE_BYTES_MAX + 1);
    deadlines.whole(bounded.read_until(b'\n', line)).await?;
    Ok(line.pop() == Some(b'\n'))
}
