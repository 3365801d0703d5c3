//! The words of a panic. A runtime that ends because one of its tasks panicked says only that.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has this thread remember the first panic from now on. Every panic is still printed.
pub(crate) fn remember() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A thread that ends has no memory any more.
            let _ = FIRST.try_with(|first| {
                if let Ok(mut first) = first.try_borrow_mut() {
                    first.get_or_insert_with(|| panic.to_string());
                }
            });
            before(panic);
        }));
    });
    FIRST.set(None);
}

/// What the first panic of this thread said.
pub(crate) fn first() -> Option<String> {
    FIRST.with_borrow(Clone::clone)
}
