"""Tripod from Python: a cluster for a test, jobs, keys, and programs as tasks of a job.

    import tripod

    with tripod.Cluster() as cluster:
        job = tripod.create_job("train", tasks=3, endpoints=cluster.endpoints)
        tripod.put("config/rate", b"0.1", job=job)
        cluster.kill_leader()
        print(tripod.get("config/rate", job=job))

Knows: the command line of the program `tripod`, and the JSON that it prints. Does not know: the calls of the cluster
themselves, how nodes agree, or what a program does as a task.

Invariants:
* Every call is one process of `tripod`, which tries the nodes in turn, and ends within the call's timeout and 10 s.
* What this package starts, it ends, by process id; no process is looked for by its name.
* An error of the cluster has its code (`T6101`), which `tripod explain` describes.

| module | what |
|---|---|
| `_binary` | where the program is |
| `_call` | one call of the program, and its errors |
| `_cluster`, `_nodes` | a cluster on this machine, and the process that keeps it |
| `_jobs`, `_keys` | jobs; keys of a job |
| `_run` | programs as tasks of a job |
| `_errors` | what can go wrong |
"""

from ._binary import binary
from ._cluster import Cluster
from ._errors import (
    BinaryMissingError,
    ClusterError,
    ExistsError,
    ProgramError,
    TripodError,
    UnknownError,
    UnreachableError,
    VersionError,
)
from ._jobs import Job, create_job, delete_job, find_job, jobs
from ._keys import Entry, delete, get, list, put, read
from ._run import Ended, run

__all__ = [
    "BinaryMissingError",
    "Cluster",
    "ClusterError",
    "Ended",
    "Entry",
    "ExistsError",
    "Job",
    "ProgramError",
    "TripodError",
    "UnknownError",
    "UnreachableError",
    "VersionError",
    "binary",
    "create_job",
    "delete",
    "delete_job",
    "find_job",
    "get",
    "jobs",
    "list",
    "put",
    "read",
    "run",
]


def __dir__() -> "tuple[str, ...]":
    """The interface, without the modules behind it."""
    return tuple(__all__)
