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
        # The end was told, and what came after it: only tasks that wait have a use for that.
        self._told_end = False
        self._late = deque()
        self._busy = False
        self._since_s = 0.0
        # What runs makes variables, for whatever comes next.
        self._upkeep = False
        # Tasks that gave the turn away, and those of them that want it back.
        self._waiting = 0
        self._resuming = 0
        self._takers = 0
        # Threads whose task is cancelled, and goes on without a turn to its end.
        self._beside = set()
        self._closed = False
        # False while the process must not begin anything.
        self._allowed = lambda: True

    def set_allowed(self, allowed):
        self._allowed = allowed

    def put(self, items):
        """Appends items; None is the end, after those before it and those that tasks wait for."""
        with self._changed:
            for item in items:
                if item is None:
                    self._told_end = True
                else:
                    (self._late if self._told_end else self._items).append(item)
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
            found = [item for item in (*self._items, *self._late) if wanted(item)]
            if found:
                self._items = deque(item for item in self._items if not wanted(item))
                self._late = deque(item for item in self._late if not wanted(item))
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
                    items = self._items or self._late
                    if self._busy or self._resuming:
                        self._changed.wait()
                    elif self._is_over():
                        self._closed = True
                        self._changed.notify_all()
                    elif not items:
                        self._changed.wait()
                    elif self._allowed():
                        self._busy = True
                        self._since_s = time.monotonic()
                        self._upkeep = False
                        return items.popleft()
                    else:
                        # Nobody tells when it is allowed again.
                        self._changed.wait(0.1)
                return None
            finally:
                self._takers -= 1

    def _is_over(self):
        """Whether the end has come, when nothing runs. Whoever may not begin what is before it, perhaps never again,
        does not wait for that; but a task that waits may wait for what comes after it."""
        return self._told_end and not self._waiting and (not self._items or not self._allowed())

    def done(self):
        with self._changed:
            if threading.get_ident() in self._beside:
                self._beside.remove(threading.get_ident())
            else:
                self._busy = False
            self._changed.notify_all()

    @contextlib.contextmanager
    def pausing(self, cancellation=None):
        """While it is entered, by the thread whose turn it is, others may run. A task that is cancelled does not wait for
        those: it goes on to its end beside them."""
        if threading.get_ident() in self._beside:
            yield
            return
        with self._changed:
            self._busy = False
            self._waiting += 1
            alone = not self._takers
            self._changed.notify_all()
        if alone:
            try:
                self._start_runner()
            except BaseException:
                # There is no thread for another task: the one that would wait fails with that.
                with self._changed:
                    self._waiting -= 1
                    self._busy = True
                raise
        try:
            yield
        finally:
            with self._changed:
                self._resuming += 1
                self._await_turn(cancellation)
                self._resuming -= 1
                self._waiting -= 1
                if self._busy and not self._closed:
                    self._beside.add(threading.get_ident())
                    self._changed.notify_all()
                else:
                    self._busy = True
                    self._since_s = time.monotonic()
                    self._upkeep = False

    def _await_turn(self, cancellation):
        with contextlib.nullcontext() if cancellation is None else cancellation.watching(self._changed):
            while self._busy and not self._closed and not (cancellation is not None and cancellation.wanted):
                self._changed.wait()
