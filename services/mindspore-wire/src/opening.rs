//! Which protocol a connection speaks: all of them share a port.

use super::rpc0::MAGIC;

/// So many first bytes tell.
pub const OPENING_BYTES: usize = 4;

/// What a connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A node of the parameter server: a format of its frames.
    PsCore,
    /// A worker of a dynamic cluster.
    Rpc0,
    /// A method of HTTP.
    Http,
    /// No protocol that is known.
    Unknown,
}

impl Opening {
    /// What begins so.
    #[must_use]
    pub fn of(first: [u8; OPENING_BYTES]) -> Self {
        match first {
            MAGIC => Self::Rpc0,
            [0..=2, 0, 0, 0] => Self::PsCore,
            // A method is at least three capital letters, and a space follows.
            [a, b, c, d]
                if [a, b, c].iter().all(u8::is_ascii_uppercase) && (d.is_ascii_uppercase() || d == b' ') =>
            {
                Self::Http
            }
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_all_protocols_of_a_port_apart() {
        for (first, opening) in [
            (b"RPC0", Opening::Rpc0),
            (b"\0\0\0\0", Opening::PsCore),
            (b"\x02\0\0\0", Opening::PsCore),
            (b"\x03\0\0\0", Opening::Unknown),
            (b"\x01\0\0\x01", Opening::Unknown),
            (b"GET ", Opening::Http),
            (b"POST", Opening::Http),
            (b"RPC1", Opening::Unknown),
            (b"\x16\x03\x01\x02", Opening::Unknown),
        ] {
            assert_eq!(Opening::of(*first), opening, "{first:02x?}");
        }
    }
}
