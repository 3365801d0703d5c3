"""Which task a thread executes."""

import contextlib
import threading

from .cancelling import Cancellation

_current = threading.local()


class TaskContext:
    """The running task of a thread: its attempt and function, how many objects it has made, the reusable
    variables that it used, and whether it is cancelled."""

    __slots__ = ("run", "name", "children", "variables", "cancellation")

    def __init__(self, run, name):
        # Pair of operation and attempt.
        self.run = run
        self.name = name
        self.children = 0
        # By name: what `Reusables` has given it.
        self.variables = {}
        self.cancellation = Cancellation(run, name)

    def __enter__(self):
        self._set(self)
        return self

    def __exit__(self, *_):
        self._set(None)

    @staticmethod
    def _set(task):
        _current.task = task


def current():
    """The task that this thread executes, or None."""
    return getattr(_current, "task", None)


def sheltered():
    """While it is entered, the running task is not told in the middle of a line that it is cancelled."""
    task = current()
    return contextlib.nullcontext() if task is None else task.cancellation


def wait_for(condition, done, timeout_s=None):
    """As `condition.wait_for`, in a shelter. Raises `TaskCancelledError` in a task that is cancelled."""
    task = current()
    if task is None:
        return condition.wait_for(done, timeout_s)
    return task.cancellation.wait_for(condition, done, timeout_s)


def during(work):
    """What `work()` answers, in a shelter. Raises `TaskCancelledError` in a task that is cancelled meanwhile."""
    task = current()
    return work() if task is None else task.cancellation.during(work)


def next_child():
    """The running attempt, and the place of its next submission or put among all of them, by which a task
    that runs again gets the objects of its first attempt. None outside of tasks."""
    task = current()
    if task is None:
        return None
    child = task.children
    task.children = child + 1
    return task.run, child
