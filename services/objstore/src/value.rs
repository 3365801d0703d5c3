//! A whole object in memory.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::mapping;

/// Memory that is taken, in bytes. One for all lives of a store: what readers of an earlier life still hold is taken.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes memory. Whether there is enough is the caller's question, asked under the shelf's lock.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Charge {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Charge { gauge: Arc::clone(self), bytes }
    }
}

/// Memory that is taken for one object, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    gauge: Arc<Gauge>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.gauge.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Where an object's bytes are.
#[derive(Debug)]
pub(crate) enum Body {
    /// On the heap.
    Inline(Bytes),
    /// In sealed memory.
    Sealed { file: File, mapped: OnceLock<Bytes> },
}

/// A whole object in memory. It is shared; who holds one besides the shelf pins it.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) size_bytes: u64,
    /// Place of the metadata in an Arrow layout; 0: the bytes are an encoded `Obj`.
    pub(crate) metadata_offset: u64,
    body: Body,
    _charge: Charge,
}

impl Value {
    pub(crate) fn inline(bytes: Bytes, metadata_offset: u64, charge: Charge) -> Self {
        Self { size_bytes: bytes.len() as u64, metadata_offset, body: Body::Inline(bytes), _charge: charge }
    }

    pub(crate) fn sealed(file: File, size_bytes: u64, metadata_offset: u64, charge: Charge) -> Self {
        let body = Body::Sealed { file, mapped: OnceLock::new() };
        Self { size_bytes, metadata_offset, body, _charge: charge }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Its bytes, if they are on the heap.
    pub(crate) fn inline_bytes(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Inline(bytes) => Some(bytes),
            Body::Sealed { .. } => None,
        }
    }

    /// The bytes, without a copy. The object is pinned while any part of them lives.
    ///
    /// # Errors
    /// What the system says of the mapping.
    pub(crate) fn bytes(self: &Arc<Self>) -> io::Result<Pinned> {
        let bytes = match &self.body {
            Body::Inline(bytes) => bytes.clone(),
            Body::Sealed { file, mapped } => match mapped.get() {
                Some(bytes) => bytes.clone(),
                None => {
                    let len = usize::try_from(self.size_bytes).map_err(io::Error::other)?;
                    // The mapping is kept in the value, so it must not keep the value.
                    let made = mapping::map(file, len, Arc::new(()))?;
                    mapped.get_or_init(|| made).clone()
                }
            },
        };
        Ok(Pinned { bytes, _value: Arc::clone(self) })
    }
}

/// An object's bytes, which keep it in memory.
#[derive(Debug, Clone)]
pub(crate) struct Pinned {
    pub(crate) bytes: Bytes,
    _value: Arc<Value>,
}
