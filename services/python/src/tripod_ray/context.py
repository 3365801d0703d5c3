"""Which task a thread executes."""

import threading

_current = threading.local()


class TaskContext:
    """The running task of a thread: its attempt and function, how many objects it has made, and the reusable
    variables that it used."""

    __slots__ = ("run", "name", "children", "variables")

    def __init__(self, run, name):
        # Pair of operation and attempt.
        self.run = run
        self.name = name
        self.children = 0
        # By name: what `Reusables` has given it.
        self.variables = {}

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


def next_child():
    """The running attempt, and the place of its next submission or put among all of them, by which a task
    that runs again gets the objects of its first attempt. None outside of tasks."""
    task = current()
    if task is None:
        return None
    child = task.children
    task.children = child + 1
    return task.run, child
