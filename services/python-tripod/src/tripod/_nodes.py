"""The process that keeps a cluster on this machine (`tripod dev`), and what it says of its nodes."""

import contextlib
import json
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from ._binary import binary
from ._errors import BinaryMissingError, ClusterError

# Below the ports that systems give to connections that go out.
_FIRST_PORT, _LAST_PORT = 12_000, 31_000
# Each node has a port at each of these places behind the first: for clients, for its peers, for people.
_OFFSETS = (0, 100, 200)
# And a hundred for jobs.
_JOB_OFFSET, _JOB_PORTS = 300, 100
# How often a port is chosen at random before there is said to be none.
_CHOICES = 1000
_STOP_S = 20.0
# The end of what it has said, for errors.
_TAIL_BYTES = 2000


class Nodes:
    """`tripod dev`, whose nodes end with it; it ends with its standard input, so also with this process."""

    def __init__(self, nodes: int, port: int, flags: Sequence[str]) -> None:
        """Begins it; `await_ready` waits. Raises `BinaryMissingError`."""
        self.endpoints = [f"127.0.0.1:{port + place}" for place in range(nodes)]
        command = [binary(), "dev", "--json", "--exit-with-parent", "--nodes", str(nodes), "--port", str(port), *flags]
        self._said = tempfile.TemporaryFile(prefix="tripod-dev-")
        try:
            # An interrupt from the keyboard is this program's, which ends it in its own time.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, start_new_session=True
            )
        except OSError as error:
            self._said.close()
            raise BinaryMissingError(f"cannot run {command[0]}: {error}") from None
        self._changed = threading.Condition()
        self._pids: "dict[int, int]" = {}
        self._is_ready = self._is_over = False
        self._reader = threading.Thread(target=self._read, name="tripod-dev", daemon=True)
        self._reader.start()

    def await_ready(self, timeout_s: float) -> None:
        """Waits until a node leads. Raises `ClusterError` if none does in time, or if it ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ready or self._is_over, timeout_s)
            if self._is_ready:
                return
            over = self._is_over
        what = "ended" if over else f"was not ready within {timeout_s:g} s"
        raise ClusterError(f"no cluster on this machine: `tripod dev` {what}: {self.said()}")

    def pids(self) -> "dict[int, int]":
        """Process ids by the ids of the nodes, as they began last."""
        with self._changed:
            return dict(self._pids)

    def is_child(self, pid: int) -> bool:
        """Whether a process is one of its nodes, and not another one that was given the number meanwhile."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                # The name, in parentheses, may have any character in it.
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            return False
        return int(fields[1]) == self._process.pid and fields[0] != "Z"

    def said(self) -> str:
        """The end of what it has written to standard error."""
        with contextlib.suppress(ValueError, OSError):
            end = os.fstat(self._said.fileno()).st_size
            text = os.pread(self._said.fileno(), _TAIL_BYTES, max(0, end - _TAIL_BYTES))
            return text.decode("utf-8", "replace").strip()
        return ""

    def stop(self) -> None:
        """Ends it, and its nodes with it; also a second time."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            # Its nodes see the end of their own standard input.
            self._process.kill()
            self._process.wait()
        self._reader.join(_STOP_S)
        self._process.stdout.close()
        self._said.close()

    def _read(self) -> None:
        """Takes each line of JSON: a node that began, or that the cluster is ready."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError, KeyError):
                self._take(json.loads(line))
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _take(self, told: "dict[str, Any]") -> None:
        with self._changed:
            if "node" in told:
                self._pids[told["node"]] = told["pid"]
            self._is_ready = self._is_ready or told.get("ready") is True
            self._changed.notify_all()


def free_port(nodes: int) -> int:
    """The first of the ports of a cluster, all of which nobody uses now. Raises `ClusterError`."""
    needed = _JOB_OFFSET + _JOB_PORTS * nodes
    for _ in range(_CHOICES):
        first = random.randrange(_FIRST_PORT, _LAST_PORT - needed)
        if all(_is_free(first + offset) for offset in _ports(nodes)):
            return first
    raise ClusterError(f"no free ports for {nodes} nodes between {_FIRST_PORT} and {_LAST_PORT}")


def _ports(nodes: int) -> Iterator[int]:
    for offset in _OFFSETS:
        yield from range(offset, offset + nodes)
    # A job's port, the first one free of its node's hundred.
    yield from range(_JOB_OFFSET, _JOB_OFFSET + _JOB_PORTS * nodes, _JOB_PORTS)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def until(limit_s: float, condition: "Any", pause_s: float = 0.02) -> "Any":
    """What `condition()` answers once that is neither None nor false, or None after a time."""
    end = time.monotonic() + limit_s
    while True:
        found: Optional[Any] = condition()
        if found:
            return found
        if time.monotonic() >= end:
            return None
        time.sleep(pause_s)
