//! What a store must be told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tripod_dial::Allow;

use crate::delivery::ROUNDS_MAX;
use crate::error::Error;

/// Settings of one store.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where other stores and the scheduler reach this one. Port 0: any free one.
    pub listen: SocketAddr,
    /// The `HOST:PORT` that is told to others; `None`: the address that it listens at.
    pub advertise: Option<String>,
    /// `HOST:PORT` of every node's client port, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// The job whose scheduler it is; `None`: the one that the nodes' port is about.
    pub job: Option<String>,
    /// Memory for objects, in bytes, shared memory and heap together.
    pub capacity_bytes: u64,
    /// Objects up to this size are kept on the heap and travel inside messages. At most 1 MiB.
    pub inline_bytes_max: u64,
    /// Where cold objects go when memory is short; `None`: they are kept in memory or refused.
    pub spill_directory: Option<PathBuf>,
    /// What spilled objects may take on disk, in bytes.
    pub spill_bytes_max: u64,
    /// Where mutable chunks of tensors are kept, which outlive the process; `None`: this store keeps none.
    pub mutable_directory: Option<PathBuf>,
    /// What is written to mutable chunks may take so many bytes, in memory and about as many on disk.
    pub mutable_bytes_max: u64,
    /// Where the socket for processes of this machine is made; for its owner only.
    pub socket_directory: PathBuf,
    /// How many objects are fetched at a time.
    pub transfers_max: usize,
    /// How long a source may send nothing before it counts as dead.
    pub stall: Duration,
    /// How long an object that is to be fetched is tried without progress. Then the scheduler is told, which orders again
    /// what it still wants. When the same place could not be reached in three such rounds, or there was no room in three,
    /// those who wait for the object here are told that it does not come.
    pub patience: Duration,
    /// How long a process waits for an object that was deallocated here, in case it is made anew and the order to
    /// fetch it is still on its way; afterwards it is refused.
    pub anew: Duration,
    /// Whose orders are taken, and to whom objects are given, beside nodes and stores of the cluster; and to which special
    /// addresses this store connects.
    pub order_allow: Allow,
    /// How long one node may take to answer before another is asked.
    pub attempt: Duration,
}

/// The largest `inline_bytes_max`: messages must stay small.
const INLINE_BYTES_LIMIT: u64 = 1 << 20;

impl Config {
    /// Settings with the defaults: any port of the loopback interface, 1 GiB of memory, no spilling.
    #[must_use]
    pub fn new(endpoints: Vec<String>, socket_directory: PathBuf) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: None,
            endpoints,
            job: None,
            capacity_bytes: 1 << 30,
            inline_bytes_max: 64 << 10,
            spill_directory: None,
            spill_bytes_max: 16 << 30,
            mutable_directory: None,
            mutable_bytes_max: 1 << 30,
            socket_directory,
            transfers_max: 4,
            stall: Duration::from_secs(10),
            patience: Duration::from_secs(60),
            anew: Duration::from_secs(10),
            order_allow: Allow::Own,
            attempt: Duration::from_secs(3),
        }
    }

    /// Tells those who wait for an object that does not come, because the place where it is lives and is not reached, or
    /// because there is no room, after so long.
    pub fn give_up_after(&mut self, time: Duration) {
        self.patience = time / ROUNDS_MAX;
    }

    /// # Errors
    /// [`Error::Config`] names the setting and what it should be.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Config(text));
        if self.endpoints.is_empty() {
            return refuse(
                "no endpoints given; name the client address of at least one node, as HOST:PORT".into(),
            );
        }
        if self.capacity_bytes == 0 {
            return refuse("a capacity of 0 bytes holds nothing; give at least 1 MiB".into());
        }
        if self.inline_bytes_max > INLINE_BYTES_LIMIT {
            let given = self.inline_bytes_max;
            return refuse(format!(
                "inline objects of {given} bytes are too large; give at most {INLINE_BYTES_LIMIT}"
            ));
        }
        if self.transfers_max == 0 {
            return refuse("no transfer at a time fetches nothing; give at least 1".into());
        }
        if self.patience.is_zero() {
            return refuse("no time to fetch an object brings none; give at least a second".into());
        }
        if self.advertise.is_none() && self.listen.ip().is_unspecified() {
            let listen = self.listen;
            return refuse(format!(
                "others cannot reach a store at {listen}; say with --advertise at which address they can"
            ));
        }
        self.job_header().map(drop)
    }

    /// The job's name as metadata.
    ///
    /// # Errors
    /// [`Error::Config`] if the name cannot be a header's value.
    pub(crate) fn job_header(&self) -> Result<Option<MetadataValue<Ascii>>, Error> {
        let Some(job) = &self.job else { return Ok(None) };
        let bad = |_| Error::Config(format!("`{job}` is no name of a job; `tripod job list` shows them"));
        Ok(Some(job.parse().map_err(bad)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_refused_by_name() {
        let good = Config::new(vec!["127.0.0.1:7700".into()], "/tmp".into());
        assert!(good.check().is_ok());
        let refusal = |change: fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            config.check().expect_err("refused").to_string()
        };
        assert!(refusal(|config| config.endpoints.clear()).starts_with("no endpoints given"));
        assert!(refusal(|config| config.capacity_bytes = 0).starts_with("a capacity of 0 bytes"));
        assert!(
            refusal(|config| config.inline_bytes_max = 2 << 20)
                .starts_with("inline objects of 2097152 bytes")
        );
        assert!(refusal(|config| config.transfers_max = 0).starts_with("no transfer at a time"));
        assert!(
            refusal(|config| config.give_up_after(Duration::ZERO)).starts_with("no time to fetch an object")
        );
        assert!(refusal(|config| config.job = Some("a\nb".into())).contains("is no name of a job"));
        let anywhere = refusal(|config| config.listen = SocketAddr::from(([0, 0, 0, 0], 1)));
        assert!(anywhere.contains("--advertise"), "{anywhere}");
    }
}
