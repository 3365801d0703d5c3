"""Whose turn it is on a worker: one task runs at a time, in order, except that others run while one waits."""

import contextlib
import threading
import time
from collections import deque


class Turn:
    """The worker's queue, and the right to run what is in it.

    A task that waits for objects gives the turn away, and takes it back before it goes on: else a task that
    waits for another one that is behind it in the same queue would wait for ever.
    """

    def __init__(self, start_runner):
        """`start_runner()` begins another thread that calls `take`, when all others wait."""
        self._start_runner = start_runner
        self._changed = threading.Condition(threading.Lock())
        self._items = deque()
        self._busy = False
        self._since_s = 0.0
        # What runs makes variables, for whatever comes next.
        self._upkeep = False
        self._resuming = 0
        self._takers = 0
        self._closed = False
        # False while the process must not begin anything.
        self._allowed = lambda: True

    def set_allowed(self, allowed):
        self._allowed = allowed

    def put(self, items):
        """Appends items; None is the end, after those before it."""
        with self._changed:
            self._items.extend(items)
            self._changed.notify_all()

    def close(self):
        """Nothing more is taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def has_more(self):
        """Whether the next item is at hand. A moment later it may be otherwise."""
        return bool(self._items)

    def withdraw(self, wanted, running_s=0.0):
        """Takes out of the queue what `wanted(item)` says, for others to run. With `running_s` only if the task
        that runs now has run for so long."""
        with self._changed:
            if running_s and not self._runs_for(running_s):
                return []
            found = [item for item in self._items if item is not None and wanted(item)]
            if found:
                self._items = deque(item for item in self._items if item is None or not wanted(item))
            return found

    def _runs_for(self, running_s):
        # For the cluster a worker that makes variables is idle, and would be given everything again at once.
        return self._busy and not self._upkeep and time.monotonic() - self._since_s >= running_s

    def keeps_up(self):
        """What runs is no task, or one whose end is told, and makes variables until it is `done`. Called by the
        thread whose turn it is."""
        with self._changed:
            self._upkeep = True

    def take(self):
        """The next item, when it may run; None at the end. The caller says `done` after it."""
        with self._changed:
            self._takers += 1
            try:
                while not self._closed:
                    if self._items and not self._busy and not self._resuming:
                        if self._allowed():
                            item = self._items.popleft()
                            self._busy = item is not None
                            self._since_s = time.monotonic()
                            self._upkeep = False
                            if item is None:
                                self._closed = True
                                self._changed.notify_all()
                            return item
                        # Nobody tells when it is allowed again.
                        self._changed.wait(0.1)
                    else:
                        self._changed.wait()
                return None
            finally:
                self._takers -= 1

    def done(self):
        with self._changed:
            self._busy = False
            self._changed.notify_all()

    @contextlib.contextmanager
    def pausing(self):
        """While it is entered, by the thread whose turn it is, others may run."""
        with self._changed:
            self._busy = False
            alone = not self._takers
            self._changed.notify_all()
        if alone:
            try:
                self._start_runner()
            except BaseException:
                # There is no thread for another task: the one that would wait fails with that.
                with self._changed:
                    self._busy = True
                raise
        try:
            yield
        finally:
            with self._changed:
                self._resuming += 1
                while self._busy and not self._closed:
                    self._changed.wait()
                self._resuming -= 1
                self._busy = True
                self._since_s = time.monotonic()
                self._upkeep = False
