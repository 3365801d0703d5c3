//! What a port tells its services of a call.

use http::Extensions;
use tripod_tls::Proved;

use crate::bytes_held::CallBytes;
use crate::caller_address::CallerAddress;
use crate::connection::ConnectionCalls;
use crate::stop::Stopping;

/// What a port knows of a call, among the extensions of its request: one value, since each takes two allocations there.
/// Services ask for its parts. A port that is served by a transport of its own may have put them there one by one.
#[derive(Debug, Clone)]
pub struct CallContext {
    connection_calls: ConnectionCalls,
    stopping: Stopping,
    bytes: CallBytes,
}

impl CallContext {
    pub(crate) fn new(connection_calls: ConnectionCalls, stopping: Stopping, bytes: CallBytes) -> Self {
        Self { connection_calls, stopping, bytes }
    }

    /// Has services find it.
    pub fn put(self, extensions: &mut Extensions) {
        extensions.insert(self);
    }

    /// The calls of the connection by which this one came, if that is known.
    #[must_use]
    pub fn connection_calls(extensions: &Extensions) -> Option<&ConnectionCalls> {
        extensions.get::<Self>().map(|context| &context.connection_calls).or_else(|| extensions.get())
    }

    /// What counts the bytes of this call, if they are counted.
    #[must_use]
    pub fn bytes(extensions: &Extensions) -> Option<&CallBytes> {
        extensions.get::<Self>().map(|context| &context.bytes).or_else(|| extensions.get())
    }

    /// Where this call comes from; without a word about it, from this process.
    #[must_use]
    pub fn address(extensions: &Extensions) -> CallerAddress {
        let connection = extensions.get::<Self>().map(|context| context.connection_calls.connection());
        let address = connection.map(crate::CallerConnection::address);
        address.or_else(|| extensions.get().copied()).unwrap_or_default()
    }

    /// Whom the client of this call has proved to be by TLS; nobody on a connection in plain text.
    #[must_use]
    pub fn proved(extensions: &Extensions) -> Option<&Proved> {
        Self::connection_calls(extensions)?.proved()
    }

    /// Whether nobody on the way can have read this call, nor reads its answer: by TLS, or within this machine.
    #[must_use]
    pub fn is_private(extensions: &Extensions) -> bool {
        Self::connection_calls(extensions).is_some_and(ConnectionCalls::is_encrypted)
            || Self::address(extensions).is_of_this_machine()
    }

    /// The user of this machine whose process calls, where the system says it: by a unix socket.
    #[must_use]
    pub fn user(extensions: &Extensions) -> Option<u32> {
        Self::connection_calls(extensions)?.user()
    }

    pub(crate) fn stopping(extensions: &Extensions) -> Option<&Stopping> {
        extensions.get::<Self>().map(|context| &context.stopping).or_else(|| extensions.get())
    }
}

#[cfg(test)]
mod tests {
    use crate::bytes_held::{Account, CALL_BYTES};

    use super::*;

    #[test]
    fn services_find_what_a_port_knows_in_one_value_or_one_by_one() {
        let address = CallerAddress::at([10, 0, 0, 7].into());
        let account = Account::default();
        let bytes = CallBytes::of(account.call(CALL_BYTES).expect("there is no limit"));
        let calls = ConnectionCalls::from(address, account);
        calls.come_from(1_000);
        let (mut in_one, mut one_by_one) = (Extensions::new(), Extensions::new());
        CallContext::new(calls.clone(), Stopping::never(), bytes.clone()).put(&mut in_one);
        one_by_one.insert(calls);
        one_by_one.insert(Stopping::never());
        one_by_one.insert(bytes);
        one_by_one.insert(address);
        for extensions in [in_one, one_by_one] {
            assert!(CallContext::connection_calls(&extensions).is_some());
            assert!(CallContext::bytes(&extensions).is_some());
            assert!(CallContext::stopping(&extensions).is_some());
            assert_eq!(CallContext::address(&extensions), address);
            assert_eq!(CallContext::user(&extensions), Some(1_000));
        }
        let nothing = Extensions::new();
        assert!(CallContext::bytes(&nothing).is_none() && CallContext::connection_calls(&nothing).is_none());
        assert_eq!(CallContext::address(&nothing), CallerAddress::default());
        assert_eq!(CallContext::user(&nothing), None);
    }
}
