"""A client process started by a test: its steps, its log, its end."""

import atexit
import json
import os
import pathlib
import subprocess
import sys
import time

from patience import scaled

HERE = pathlib.Path(__file__).resolve().parent

# How often a waiting test looks again, in seconds.
_POLL = 0.05
# How long a process may take to what a test waits for, in seconds: many start at the same time.
_WAIT_LIMIT = scaled(120)


class Process:
    """A script of this directory with its output in files, so that a waiting parent never blocks it."""

    def __init__(self, script, *arguments, name, logs, python=None):
        self.out = pathlib.Path(logs) / f"{name}.out"
        self.err = pathlib.Path(logs) / f"{name}.err"
        environment = dict(os.environ, JAX_PLATFORMS="cpu", PYTHONUNBUFFERED="1")
        with self.out.open("w") as out, self.err.open("w") as err:
            self._child = subprocess.Popen(
                [python or sys.executable, "-u", str(HERE / script), *map(str, arguments)],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        atexit.register(self.kill)

    def steps(self):
        """Every complete step so far."""
        found = []
        for line in self.out.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:  # a line that is still being written, or somebody else's output
                continue
        return found

    def has_step(self, name):
        """Whether that step was emitted."""
        return any(step.get("step") == name for step in self.steps())

    def wait_step(self, name):
        """Wait until a step of that name."""
        self._await(lambda: self.has_step(name), f"step `{name}`")

    def wait_connecting(self):
        """Wait until the process is about to register."""
        self._await(lambda: "connecting\n" in self.err.read_text(errors="replace"), "the connection")

    def _await(self, holds, what):
        deadline = time.monotonic() + _WAIT_LIMIT
        while True:
            late = self._child.poll() is not None or time.monotonic() > deadline
            if holds():
                return
            if late:
                raise RuntimeError(f"{what} did not come; the process wrote {self.out} and {self.err}")
            time.sleep(_POLL)

    def wait(self, timeout):
        """The exit status (negative: the signal), or a text if the process had to be ended."""
        try:
            return self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"killed by the test after {timeout} s"

    def kill(self):
        """SIGKILL, if it still runs."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()

    def fatal(self):
        """The text with which jaxlib ended the process, without its stack trace, or None."""
        log = self.err.read_text(errors="replace")
        begin = log.find("Terminating process")
        return None if begin < 0 else log[begin:].split("*** Check failure")[0].strip()
