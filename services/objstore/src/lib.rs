//! An object store.
