"""Drivers and workers in Python for Tripod's replicated scheduler.

    import tripod_ray as ray

    ray.init("node1:7700,node2:7700,node3:7700")

    @ray.remote
    def square(x):
        return x * x

    print(ray.get([square.remote(i) for i in range(4)]))

Knows: the scheduler's calls, the local protocol of object stores, and how values are written. Does not know:
how nodes agree, where tasks run, or what becomes of objects; all that is the scheduler's.

Invariants:
* Every call that changes something is sent from one queue, in order, each exactly once, whichever node answers.
* A reference is counted before anything that relies on it, and given up after it; the README has the table.
* A value in shared memory is never copied and never changes; what is made of it keeps it there.

| module | what |
|---|---|
| `api` | init, shutdown, put, get, wait, cancel and the like |
| `remote` | remote functions and their arguments |
| `typed` | declared types of arguments and results |
| `needs` | what tasks need of workers, and what those have |
| `reference` | handles |
| `reusable` | reusable variables |
| `process` | a registration: puts, gets, waits, heartbeats |
| `outbox`, `calls` | the queue of calls to the scheduler |
| `local`, `keeper` | a cluster on this machine, for one driver |
| `link`, `level` | nodes, and the next one when one fails; clusters that have no schedulers yet |
| `store` | the object store of this machine |
| `values`, `layout` | how values are written |
| `wire` | messages, paths and metadata keys |
| `worker`, `service`, `turn`, `execution` | workers |
| `raw` | functions whose arguments and results are bytes of their own kind |
| `cancelling` | tasks that are not to run any more |
| `ending` | what tells a worker to end |
| `context`, `runtime`, `again` | the running task; the connection; puts of a task that runs again |
| `progress` | what a call that waits for long waits for |
| `errors`, `edge` | what can go wrong, and how little of this package it shows |
"""

from .api import (
    cancel,
    get,
    init,
    is_initialized,
    kill_workers,
    put,
    scheduler_info,
    shutdown,
    task_info,
    wait,
)
from .errors import (
    ClusterError,
    ExpiredError,
    FunctionNotRegisteredError,
    GetTimeoutError,
    NotConnectedError,
    ObjectLostError,
    RefusedError,
    StoreError,
    TaskCancelledError,
    TaskError,
    TripodError,
    UnreachableError,
)
from .reference import ObjectRef
from .remote import remote
from .reusable import Reusable, ReusableError, reusables

__all__ = [
    "ClusterError",
    "ExpiredError",
    "FunctionNotRegisteredError",
    "GetTimeoutError",
    "NotConnectedError",
    "ObjectLostError",
    "ObjectRef",
    "RefusedError",
    "Reusable",
    "ReusableError",
    "StoreError",
    "TaskCancelledError",
    "TaskError",
    "TripodError",
    "UnreachableError",
    "cancel",
    "get",
    "init",
    "is_initialized",
    "kill_workers",
    "put",
    "remote",
    "reusables",
    "scheduler_info",
    "shutdown",
    "task_info",
    "wait",
]


def __dir__() -> "list[str]":
    """What programs may use. The modules behind it are found by their names."""
    return list(__all__)
