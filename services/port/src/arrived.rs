//! That a call has arrived, and waits for others.

use std::cell::Cell;

thread_local! {
    /// Set when the call whose step runs on this thread has arrived.
    static HAS_ARRIVED: Cell<bool> = const { Cell::new(false) };
}

/// Says that the present call waits for what somebody else does, and that whatever it has to record is recorded. Its client may
/// then have others under way in its place, if it is an op of a stream of calls; to any other call it means nothing. Whoever
/// waits for a leader, for a turn or for room has not arrived.
pub fn note_arrived() {
    HAS_ARRIVED.set(true);
}

/// One step of a call, and whether that was said in it.
pub(crate) fn noticing<T>(step: impl FnOnce() -> T) -> (T, bool) {
    HAS_ARRIVED.set(false);
    let came = step();
    (came, HAS_ARRIVED.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_from_those_around_it() {
        note_arrived();
        assert_eq!(noticing(|| 7), (7, false), "what was said before it was of another call");
        assert_eq!(noticing(note_arrived), ((), true));
        assert_eq!(noticing(|| ()), ((), false));
    }
}
