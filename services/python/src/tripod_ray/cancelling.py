"""Tasks that are not to run any more: an exception is raised where they are.

The exception is raised in the task's thread by another one, so it can come between any two lines. It does so only in
lines of the task itself, and once: what this package does for the task, from `get` to `put`, is a shelter, in which the
thread is told by a flag, where that leaves everything as it should be. Afterwards, when the task's own lines are over,
nothing is on its way any more.
"""

import contextlib
import ctypes
import signal
import threading
import time

from .errors import TaskCancelledError

# What wakes the main thread out of a call to the system, such as a sleep: nothing else has a use for it.
_WAKE = signal.SIGURG
# A run that is about to begin is told when it does, also where the process is to end at once: it has done nothing yet.
_BEGIN_S = 1.0


class Cancellation:
    """Of one run of a task. As a context manager it is a shelter, in which nothing is raised; the exception comes at its
    end instead. Its thread may wait there by `wait_for`."""

    def __init__(self, run, name):
        self.run = run
        self.name = name
        # Whether the task is not to run any more.
        self.wanted = False
        # Whether it has been told so; by the exception that may still be on its way; and that one has arrived.
        self._told = self._raised = self._settled = False
        # The thread of the task while it executes lines of the task itself.
        self._thread = None
        # Shelters around what the thread does. Of the thread alone; outside of the task's lines it is in one.
        self._depth = 1
        self._conditions = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        # When the grace ends at the latest.
        self._limit_s = None

    def execute(self, function, arguments, named):
        """Calls the task's function. Raises `TaskCancelledError` besides what it raises."""
        try:
            self._depth = 0
            self._open()
            try:
                return function(*arguments, **named)
            finally:
                self._close()
        except BaseException:
            # The exception may have come within the line above.
            self._close()
            raise
        finally:
            self._depth = 1

    def __enter__(self):
        if self._depth == 0:
            self._close()
        self._depth += 1
        return self

    def __exit__(self, *_):
        self._depth -= 1
        if self._depth == 0:
            self._open()

    def wait_for(self, condition, done, timeout_s=None):
        """As `condition.wait_for`, in a shelter and with the condition's lock. Raises `TaskCancelledError`."""
        with self.watching(condition):
            came = condition.wait_for(lambda: done() or self._is_due(), timeout_s)
        if not done():
            self._check()
        return bool(came and done())

    @contextlib.contextmanager
    def watching(self, condition):
        """While it is entered, whoever waits for the condition is woken when the task is cancelled."""
        with self._lock:
            self._conditions.append(condition)
        try:
            yield
        finally:
            with self._lock:
                self._conditions.remove(condition)

    def during(self, work):
        """What `work()` answers, in a shelter. It is done by a thread of its own, which is left behind when the task is
        cancelled. Raises what it raises, or `TaskCancelledError`."""
        ended, answers = threading.Condition(), []

        def do():
            try:
                answer = work(), None
            except BaseException as error:  # Whatever it is, it is for the thread that waits.
                answer = None, error
            with ended:
                answers.append(answer)
                ended.notify_all()

        threading.Thread(target=do, name="tripod-wait", daemon=True).start()
        with ended:
            self.wait_for(ended, lambda: answers)
        answer, error = answers[0]
        if error is not None:
            raise error
        return answer

    # By other threads.

    def request(self):
        """The task is not to run any more. Nothing happens when it is over."""
        with self._lock:
            if self.wanted or self._over.is_set():
                return
            self.wanted = True
            thread = self._thread
            if thread is not None:
                self._told = self._raised = True
                _raise_in(thread)
            conditions = list(self._conditions)
        if thread == threading.main_thread().ident and signal.getsignal(_WAKE) is _woken:
            signal.pthread_kill(thread, _WAKE)
        for condition in conditions:
            with condition:
                condition.notify_all()

    def end(self):
        """The task is over. Answers whether it was to end before."""
        with self._lock:
            self._over.set()
            return self.wanted

    def limits_first(self, grace_s):
        """Whether a grace that begins now ends before every one that has begun."""
        limit_s = time.monotonic() + grace_s
        with self._lock:
            if self._limit_s is not None and self._limit_s <= limit_s:
                return False
            self._limit_s = limit_s
            return True

    def await_end(self, timeout_s):
        """Whether the task is over within a time."""
        return self._over.wait(timeout_s)

    # What follows is the thread's own.

    def _open(self):
        """From now on the exception is raised in this thread."""
        with self._lock:
            self._thread = threading.get_ident()
            due = self._is_due()
            self._told = self._told or due
        if due:
            raise self._error()

    def _close(self):
        """From now on it is not, and what was raised before has come: perhaps here."""
        while True:
            with self._lock:
                if not self._raised or self._settled:
                    self._thread = None
                    return
                self._settled = True
            # What was raised comes when a function is called, at the latest.
            for _ in range(2):
                _nothing()

    def _is_due(self):
        return self.wanted and not self._told

    def _check(self):
        with self._lock:
            due = self._is_due()
            self._told = self._told or due
        if due:
            raise self._error()

    def _error(self):
        return TaskCancelledError(self.name)


class Cancels:
    """The runs that a worker has, and the orders to end them."""

    def __init__(self, has, drop, kill):
        """`has(run)`: whether the worker has a run, and has not reported it. `drop(run)` reports one that has not begun, if
        it is in the queue. `kill(cancellation, grace_s)` ends the process."""
        self._has, self._drop, self._kill = has, drop, kill
        self._lock = threading.Lock()
        self._begun = {}
        # Graces of runs that are neither in the queue any more nor begun yet.
        self._early = {}

    def take(self, order):
        """Carries out a `RayCancelOrder`. A run that the worker does not have is over."""
        run, grace_s = (order.run.operationid, order.run.attempt or 1), order.grace_ms / 1000
        with self._lock:
            cancellation = self._begun.get(run)
            if cancellation is None:
                if not self._has(run):
                    return
                self._early[run] = grace_s
        if cancellation is None:
            self._drop(run)
        elif grace_s:
            cancellation.request()
            self._limit(cancellation, grace_s)
        else:
            self._kill(cancellation, grace_s)

    def begin(self, cancellation):
        """A run begins."""
        with self._lock:
            self._begun[cancellation.run] = cancellation
            grace_s = self._early.pop(cancellation.run, None)
        if grace_s is not None:
            cancellation.request()
            self._limit(cancellation, max(grace_s, _BEGIN_S))

    def end(self, cancellation):
        """A run is over, except for its report. Answers whether it was to end before."""
        with self._lock:
            self._begun.pop(cancellation.run, None)
        return cancellation.end()

    def forget(self, run):
        """A run was reported, or given back."""
        with self._lock:
            self._early.pop(run, None)

    def _limit(self, cancellation, grace_s):
        if not cancellation.limits_first(grace_s):
            return

        def limit():
            if not cancellation.await_end(grace_s):
                self._kill(cancellation, grace_s)

        threading.Thread(target=limit, name="tripod-grace", daemon=True).start()


def hear():
    """Has a cancelled task of the main thread woken out of calls to the system. For the main thread."""
    signal.signal(_WAKE, _woken)


def _woken(*_):
    # What was raised in the main thread comes here, where Python executes lines of its own again.
    pass


def _nothing():
    pass


def _raise_in(thread):
    raised = ctypes.py_object(TaskCancelledError)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
