"""Calls of the service Scheduler: any node takes them, and the next one when one is away."""

import os
import secrets

from tripod_ray.link import ATTEMPT_S, PATIENCE_S, Link

from . import wire

# How long a node may take over a graph before it is asked of another one: one of a hundred thousand chunks is cut, and
# written by a quorum, in seconds, and on a busy machine in many. A node that is gone is noticed sooner.
SUBMIT_S = 60.0

# Where the nodes are, if a program does not say.
ENDPOINTS = "TRIPOD_ENDPOINTS"


def new_id():
    """Of a request. All attempts of a call have the same, so it takes effect once."""
    return secrets.token_hex(16)


class Scheduler:
    """The nodes of one cluster."""

    def __init__(self, endpoints=None, job=None, credentials=None):
        """`endpoints` is a comma-separated text or a list of `host:port`; None: TRIPOD_ENDPOINTS. `job`: the name of the job
        whose sessions they are; None: the port's own. `credentials`: by which nodes know who calls; None: those of this
        process."""
        endpoints = endpoints or os.environ.get(ENDPOINTS)
        if not endpoints:
            raise ValueError(f"no cluster: give the endpoints of its nodes, or set {ENDPOINTS}")
        self._link = Link(endpoints, job, credentials)
        self.endpoints = self._link.endpoints

    def call(self, name, /, patience_s=PATIENCE_S, held_s=0.0, **fields):
        """A call by its name, with the fields of its request. `held_s`: for how long a node may hold it before it answers.
        Raises `RefusedError`, or `UnreachableError` after `patience_s`."""
        return self.send(name, wire.SCHEDULER[name][1](**fields), patience_s, held_s)

    def send(self, name, request, patience_s=PATIENCE_S, held_s=0.0):
        """The same with a request as it is."""
        path, _, answer = wire.SCHEDULER[name]
        data = self._link.call(
            path, request.SerializeToString(), patience_s=patience_s + held_s, attempt_s=ATTEMPT_S + held_s
        )
        return answer.FromString(data)

    def close(self):
        self._link.close()
