//! Which frames have not come back.

use std::collections::VecDeque;

/// Tells frames apart, in the order in which they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameNumber(u64);

/// Frames that wait for answers.
#[derive(Debug, Default)]
pub(crate) struct FramesWaiting {
    next: u64,
    /// Those that wait, and how many ops each waits for: at least one.
    frames: VecDeque<(FrameNumber, usize)>,
}

impl FramesWaiting {
    pub(crate) fn count(&self) -> usize {
        self.frames.len()
    }

    /// The number of the next frame to be sent.
    pub(crate) fn next(&self) -> FrameNumber {
        FrameNumber(self.next)
    }

    /// The next frame was sent, with so many ops: at least one.
    pub(crate) fn sent(&mut self, ops: usize) {
        self.frames.push_back((self.next(), ops));
        self.next += 1;
    }

    /// The node has said something of one op of this frame. Then it has gone past those before, and what is left of them
    /// waits for something of its own, which must not hold up everybody else.
    pub(crate) fn heard(&mut self, frame: FrameNumber) {
        while self.frames.front().is_some_and(|(first, _)| *first < frame) {
            self.frames.pop_front();
        }
        self.done(frame);
    }

    /// One op of this frame is not waited for any more.
    pub(crate) fn done(&mut self, frame: FrameNumber) {
        let Some(place) = self.frames.iter().position(|(number, _)| *number == frame) else { return };
        self.frames[place].1 -= 1;
        if self.frames[place].1 == 0 {
            self.frames.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (FramesWaiting, [FrameNumber; 3]) {
        let mut waiting = FramesWaiting::default();
        let numbers = [2, 1, 3].map(|ops| {
            let number = waiting.next();
            waiting.sent(ops);
            number
        });
        (waiting, numbers)
    }

    #[test]
    fn a_frame_has_come_back_when_all_its_ops_have() {
        let (mut waiting, [first, ..]) = three();
        waiting.heard(first);
        assert_eq!(waiting.count(), 3);
        waiting.done(first);
        assert_eq!(waiting.count(), 2);
        waiting.done(first);
        assert_eq!(waiting.count(), 2);
    }

    #[test]
    fn a_word_of_a_later_frame_ends_the_wait_for_those_before() {
        let (mut waiting, [first, _, last]) = three();
        waiting.heard(last);
        assert_eq!(waiting.count(), 1);
        waiting.heard(first);
        assert_eq!(waiting.count(), 1);
    }

    #[test]
    fn who_gives_up_says_nothing_of_frames_before() {
        let (mut waiting, [_, middle, _]) = three();
        waiting.done(middle);
        assert_eq!(waiting.count(), 2);
    }
}
