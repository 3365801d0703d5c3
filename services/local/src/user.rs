//! Users, by their numbers.

use std::os::unix::fs::MetadataExt as _;

/// The administrator's.
pub(crate) const ROOT: u32 = 0;

/// That of this process, as far as files and sockets are concerned.
pub(crate) fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Who may own the directories above ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trusted {
    own: u32,
    machine: u32,
}

impl Trusted {
    /// A user, root, and the owner of `/`.
    pub(crate) fn by(own: u32) -> Self {
        let machine = std::fs::metadata("/").map_or(ROOT, |root| root.uid());
        Self { own, machine }
    }

    pub(crate) fn has(self, uid: u32) -> bool {
        uid == self.own || uid == ROOT || uid == self.machine
    }
}
