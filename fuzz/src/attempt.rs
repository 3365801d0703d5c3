//! One input is tried. A panic anywhere counts, also one in a task that nobody waits for.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, Once, PoisonError};

use crate::target::Target;

/// The first panic since it was taken.
static SEEN: Mutex<Option<String>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Tries an input.
///
/// # Errors
/// What panicked, and where.
pub fn attempt(target: &Target, input: &[u8]) -> Result<(), String> {
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let text = info.payload_as_str().unwrap_or("a panic without words");
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            seen.get_or_insert_with(|| format!("{text}\n  at {place}"));
        }));
    });
    take();
    let ended = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    match take() {
        Some(seen) => Err(seen),
        None if ended.is_err() => Err("it ended by a panic that nobody saw".to_owned()),
        None => Ok(()),
    }
}

fn take() -> Option<String> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime;

    #[test]
    fn a_panic_in_a_task_that_nobody_waits_for_is_found() {
        fn quiet(input: &[u8]) {
            let first = input.first().copied();
            runtime::run(async move {
                drop(tokio::spawn(async move { assert_ne!(first, Some(7), "as planned") }));
                tokio::task::yield_now().await;
            });
        }
        let target = Target { name: "test", what: "", generate: |_| Vec::new(), run: quiet };
        let found = attempt(&target, &[7]).unwrap_err();
        assert!(found.contains("as planned") && found.contains("attempt.rs"), "{found}");
        assert_eq!(attempt(&target, &[8]), Ok(()), "it is not told twice");
    }
}
