//! Where entries live in the end: [`sled_disk`] stores them in [`chunk`]s under the keys of [`keyspace`].

pub(crate) mod chunk;
pub(crate) mod keyspace;
mod sled_disk;
mod sled_reader;

pub(crate) use keyspace::MetaKey;
pub(crate) use sled_disk::SledDisk;
