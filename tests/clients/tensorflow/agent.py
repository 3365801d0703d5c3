"""A `tripod agent` beside one worker."""

import pathlib
import shlex
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from patience import scaled
from reserved_port import ReservedPort

# How long it may take to end, in seconds: what it gives its clients' calls, and some more.
_END_LIMIT = scaled(30)


class Agent:
    """A running agent of a job that exists. It ends with this process at the latest."""

    def __init__(self, agent_cmd, job, log):
        self._port = ReservedPort()
        self.address = self._port.address
        command = [*shlex.split(agent_cmd), "--listen", self.address, "--job", job, "--exit-with-parent"]
        with pathlib.Path(log).open("w") as errors:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.pid = self._child.pid
        said = self._child.stdout.readline()
        if "listens on" not in said:
            raise RuntimeError(f"the agent of job {job} does not listen; its log is {log}")

    def end(self):
        """Ask it to end, as a supervisor does, and wait until it has."""
        self._child.terminate()
        status = self._child.wait(_END_LIMIT)
        self._port.close()
        if status != 0:
            raise RuntimeError(f"the agent at {self.address} ended with status {status}")
