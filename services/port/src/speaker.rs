//! Who makes a call, for whatever is done for it further on.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use crate::caller_connection::{self, CallerConnection};

/// Who makes a call, in a type of whoever admits calls: a [`crate::Guard`] puts it among the extensions of the call's request, and it
/// is found by [`Self::present`] for as long as the call goes on. It is of the call and not of its connection: by one connection some
/// calls may be made by a token and others by a certificate. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<dyn Any + Send + Sync>);

impl Speaker {
    #[must_use]
    pub fn of<T: Any + Send + Sync>(who: T) -> Self {
        Self(Arc::new(who))
    }

    /// Who makes the present call, if a guard has said that, and has said it in that type.
    #[must_use]
    pub fn present<T: Any + Send + Sync>() -> Option<Arc<T>> {
        let Self(who) = caller_connection::speaker()?;
        who.downcast().ok()
    }

    /// A call of this one, by that connection.
    pub fn scope<F: Future>(self, connection: CallerConnection, call: F) -> impl Future<Output = F::Output> {
        caller_connection::scope(connection, Some(self), call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_makes_a_call_is_known_within_it_also_in_a_task_of_its_own_and_nowhere_else() {
        let present = || async { Speaker::present::<String>().map(|who| (*who).clone()) };
        let within = async {
            let carried = tokio::spawn(CallerConnection::carried(present())).await.expect("it ends");
            assert!(Speaker::present::<u8>().is_none(), "of another type");
            (present().await, carried)
        };
        let ann = Some("ann".to_owned());
        let speaker = Speaker::of("ann".to_owned());
        assert_eq!(speaker.scope(CallerConnection::default(), within).await, (ann.clone(), ann));
        assert_eq!(present().await, None);
        // A call within a call is that one's own.
        let other = CallerConnection::default().scope(present());
        assert_eq!(Speaker::of("ann".to_owned()).scope(CallerConnection::default(), other).await, None);
    }
}
