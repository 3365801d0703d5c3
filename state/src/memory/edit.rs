//! A change in place of something that is counted.

use std::ops::{Deref, DerefMut};

use crate::memory::Weigh;

/// Something while it is changed. When that is over, the count knows how much more or less it holds.
pub(crate) struct Edit<'a, T: Weigh> {
    value: &'a mut T,
    total: &'a mut u64,
}

impl<'a, T: Weigh> Edit<'a, T> {
    /// `total` is the count that the value is in.
    pub(crate) fn new(value: &'a mut T, total: &'a mut u64) -> Self {
        *total = total.saturating_sub(value.changing());
        Self { value, total }
    }
}

impl<T: Weigh> Deref for Edit<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T: Weigh> DerefMut for Edit<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T: Weigh> Drop for Edit<'_, T> {
    fn drop(&mut self) {
        *self.total = self.total.saturating_add(self.value.changing());
    }
}
