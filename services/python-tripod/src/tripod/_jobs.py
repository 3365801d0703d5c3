"""Jobs: a namespace for tasks, keys and barriers each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from ._call import TIMEOUT_S, Endpoints, call


@dataclass(frozen=True)
class Job:
    """A job as the cluster described it."""

    name: str
    # None, where the cluster was asked to create it and not what it is.
    tasks: Optional[int]
    # Where the job's clients connect, `host:port` of each node.
    addresses: "tuple[str, ...]"
    # The same for gRPC: `ipv4:...`.
    target: str
    # How the cluster was reached; calls with this job use them, too.
    endpoints: Optional[Endpoints] = None


# A job by its name, or as a call has answered with it.
JobName = Union[str, Job]


def create_job(
    name: str,
    tasks: int,
    *,
    heartbeat_timeout_s: Optional[float] = None,
    recoverable: bool = False,
    flags: Sequence[str] = (),
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
) -> Job:
    """Creates a job of so many tasks. `flags` are further ones of `tripod job create`. Raises `ExistsError`,
    `UnreachableError`, `TripodError`."""
    command = ["job", "create", "--tasks", str(tasks)]
    if heartbeat_timeout_s is not None:
        command += ["--heartbeat-timeout", f"{heartbeat_timeout_s:g}"]
    if recoverable:
        command.append("--recoverable")
    told = call([*command, *flags, "--", name], endpoints, timeout_s)
    return _job({"tasks": tasks, **told}, endpoints)


def find_job(name: str, *, endpoints: Optional[Endpoints] = None, timeout_s: float = TIMEOUT_S) -> Job:
    """The job of a name. Raises `UnknownError`, `UnreachableError`."""
    return _job(call(["job", "show", "--", name], endpoints, timeout_s), endpoints)


def jobs(*, endpoints: Optional[Endpoints] = None, timeout_s: float = TIMEOUT_S) -> "list[Job]":
    """All jobs. Raises `UnreachableError`."""
    return [_job(told, endpoints) for told in call(["job", "list"], endpoints, timeout_s)]


def delete_job(job: JobName, *, endpoints: Optional[Endpoints] = None, timeout_s: float = TIMEOUT_S) -> None:
    """Deletes a job and everything in it; calls that wait there end with an error. Raises `UnknownError`,
    `UnreachableError`."""
    name, endpoints = named(job, endpoints)
    call(["job", "delete", "--yes", "--", name], endpoints, timeout_s)


def named(job: JobName, endpoints: Optional[Endpoints]) -> "tuple[str, Optional[Endpoints]]":
    """A job's name, and where to ask about it."""
    if isinstance(job, Job):
        return job.name, job.endpoints if endpoints is None else endpoints
    if not isinstance(job, str):
        raise TypeError(f"job is a name or a Job; a value of type {type(job).__name__} is neither")
    return job, endpoints


def _job(told: "dict[str, Any]", endpoints: Optional[Endpoints]) -> Job:
    return Job(told["job"], told.get("tasks"), tuple(told["addresses"]), told["target"], endpoints)
