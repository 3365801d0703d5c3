"""A cluster on this machine, for a test."""

import os
import signal
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Optional, Type

from ._call import TIMEOUT_S, call
from ._errors import ClusterError, UnreachableError
from ._nodes import Nodes, free_port, until

# Three nodes on a machine that is busy with other things.
START_S = 60.0
# How often other ports are tried when a program took one of them meanwhile.
_TRIES = 3
# As `tripod dev` has it.
_NODES_MOST = 9
_DIE_S = 10.0


class Cluster:
    """A cluster of nodes on this machine, each a process of its own, with free ports and a temporary directory.

        with tripod.Cluster(nodes=3) as cluster:
            tripod.put("key", "value", endpoints=cluster.endpoints)
            cluster.kill_leader()

    It is ready when the `with` begins, and ends with it; or with this process, however that ends.
    """

    def __init__(
        self, nodes: int = 3, *, tasks: int = 1, start_timeout_s: float = START_S, flags: Sequence[str] = ()
    ) -> None:
        """Nothing is started yet. `nodes` is best an odd number. `tasks` is of the job `default`. `flags` are further ones of
        `tripod dev`, such as `--restart`, which starts nodes again that ended."""
        if not 1 <= nodes <= _NODES_MOST:
            raise ValueError(f"nodes is {nodes}; it is at least 1 and at most {_NODES_MOST}")
        self._count = nodes
        self._flags = ["--tasks", str(tasks), *flags]
        self._start_timeout_s = start_timeout_s
        self._nodes: Optional[Nodes] = None

    @property
    def endpoints(self) -> str:
        """Client addresses of the nodes, with commas between: for calls, and for TRIPOD_ENDPOINTS."""
        return ",".join(self._running().endpoints)

    @property
    def pids(self) -> "dict[int, int]":
        """Process ids of the nodes, by the nodes' ids."""
        return self._running().pids()

    def start(self) -> "Cluster":
        """Starts the nodes, and waits until one of them leads. Raises `ClusterError`, `BinaryMissingError`."""
        if self._nodes is not None:
            raise RuntimeError("the cluster was started already")
        for left in reversed(range(_TRIES)):
            nodes = Nodes(self._count, free_port(self._count), self._flags)
            try:
                nodes.await_ready(self._start_timeout_s)
                self._nodes = nodes
                return self
            except ClusterError:
                nodes.stop()
                if not left:
                    raise
            except BaseException:
                nodes.stop()
                raise
        raise AssertionError("the last try returns or raises")

    def stop(self) -> None:
        """Ends all nodes; nothing happens if that was done."""
        nodes, self._nodes = self._nodes, None
        if nodes is not None:
            nodes.stop()

    def status(self, timeout_s: float = TIMEOUT_S) -> "dict[str, Any]":
        """What `tripod status --json` prints: `leader`, `quorum`, `nodes` and more. Raises `UnreachableError` while nobody
        leads."""
        told: "dict[str, Any]" = call(["status"], self.endpoints, timeout_s)
        return told

    def leader(self, timeout_s: float = 30.0) -> int:
        """The id of the node that leads; while nobody does, it waits for one. Raises `UnreachableError` after the time."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                found = self.status(max(0.1, min(TIMEOUT_S, end - time.monotonic()))).get("leader")
            except UnreachableError:
                if time.monotonic() >= end:
                    raise
                found = None
            if found:
                return int(found)
            if time.monotonic() >= end:
                raise UnreachableError(f"no node leads within {timeout_s:g} s")
            time.sleep(0.05)

    def kill_leader(self) -> int:
        """Kills the node that leads (SIGKILL), waits until its process has ended, and answers with the node's id. Another one
        leads soon after if a quorum is left; calls wait for that by themselves."""
        node = self.leader()
        self.kill(node)
        return node

    def kill(self, node: int) -> None:
        """Kills a node by its id (SIGKILL), and waits until its process has ended. Raises `ClusterError` if it does not
        run."""
        nodes = self._running()
        pid = nodes.pids().get(node)
        if pid is None or not nodes.is_child(pid):
            raise ClusterError(f"node {node} does not run; nodes of this cluster: {', '.join(map(str, nodes.pids()))}")
        os.kill(pid, signal.SIGKILL)
        if not until(_DIE_S, lambda: not nodes.is_child(pid)):
            raise ClusterError(f"node {node}, process {pid}, was killed and did not end within {_DIE_S:g} s")

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Cluster({self.endpoints!r})" if self._nodes is not None else f"Cluster(nodes={self._count})"

    def _running(self) -> Nodes:
        if self._nodes is None:
            raise ClusterError("the cluster does not run; next: use it inside `with tripod.Cluster() as cluster:`")
        return self._nodes
