"""The attempts that a worker was given and has not reported, in the order in which they came."""

import threading
import time

# Reports follow the end of a task within the time in which a store answers.
_REPORT_S = 1.0


class Runs:
    """Keeps the same list as the scheduler does, which takes the first of it for the task that makes a
    worker's calls.

    So only the calls of that task are counted as its children. Another task that runs meanwhile, since the
    first one waits, makes its calls without a place: they are simply made again if it runs again.
    """

    def __init__(self):
        self._changed = threading.Condition()
        # From run to whether its function has returned.
        self._runs = {}

    def arrived(self, run):
        with self._changed:
            self._runs[run] = False

    def returned(self, run):
        """The function is through; what it made is on its way to the store."""
        with self._changed:
            if run in self._runs:
                self._runs[run] = True
            self._changed.notify_all()

    def reported(self, run):
        """The report is in the line of calls."""
        with self._changed:
            self._runs.pop(run, None)
            self._changed.notify_all()

    def leads(self, run):
        """Whether the scheduler takes calls that are posted now for calls of this attempt. Waits for reports
        of tasks before it that are through."""
        with self._changed:
            end = time.monotonic() + _REPORT_S
            while True:
                before = self._before(run)
                if not before:
                    return run in self._runs
                if not all(before) or not self._changed.wait(end - time.monotonic()):
                    return False

    def listed(self):
        with self._changed:
            return list(self._runs)

    def _before(self, run):
        before = []
        for other, returned in self._runs.items():
            if other == run:
                break
            before.append(returned)
        return before
