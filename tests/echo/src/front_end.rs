//! The protocol as it is composed, and one connection of it.

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tripod_gateway::{Consistency, FrontEnd, Gateway, JobBinding, PortKind};
use tripod_port::{Accepted, Framed, Manner, Stopping};
use tripod_state::{Command, Scope, State, kv};

use crate::line::{LINE_BYTES_MAX, Line};

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
        Some(Framed::new(move |accepted, stopping| {
            let call = Call { gateway: gateway.clone(), binding: binding.clone() };
            async move { call.serve(accepted, stopping).await }
        }))
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
        let (reader, mut writer) = tokio::io::split(accepted.stream);
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            // One byte more than a line may have tells one that is too long.
            let mut bounded = (&mut reader).take(LINE_BYTES_MAX + 1);
            let read = tokio::select! {
                biased;
                () = stopping.begun() => return,
                read = bounded.read_until(b'\n', &mut line) => read,
            };
            // A client that has gone, or that never ends its line, has nothing to be told.
            if read.is_err() || line.pop() != Some(b'\n') {
                return;
            }
            let Ok(_held) = accepted.account.call(line.len() as u64) else { return };
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
