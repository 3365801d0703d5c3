"""Keys of a job: bytes by name, linearizable, with versions."""

from dataclasses import dataclass
from typing import Any, List, Optional, Union

from ._call import TIMEOUT_S, Endpoints, call
from ._jobs import JobName, named

DEFAULT_JOB = "default"


@dataclass(frozen=True)
class Entry:
    """A key with what it has."""

    key: str
    # None where values were not asked for.
    value: Optional[bytes]
    # 1 for a new key, and one more with each write.
    version: int
    # The place of its last write in the cluster's log.
    modified_index: int


def put(
    key: str,
    value: Union[bytes, str],
    *,
    create_only: bool = False,
    expected_version: Optional[int] = None,
    job: JobName = DEFAULT_JOB,
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
) -> int:
    """Writes a key, durably on a quorum, and answers with its version. A text is written as UTF-8.

    `create_only`: raises `ExistsError` if the key exists. `expected_version`: raises `VersionError` unless the key has it;
    0: unless there is no key. Raises `UnknownError` without such a job, `UnreachableError`; `TripodError` with code T2105
    if the write may or may not have been done.
    """
    if not isinstance(value, (bytes, str)):
        raise TypeError(f"value is bytes or str, and not {type(value).__name__}")
    command = ["kv", "put"]
    if create_only:
        command.append("--create-only")
    if expected_version is not None:
        command += ["--expected-version", str(expected_version)]
    given = value.encode() if isinstance(value, str) else value
    told = _keys([*command], ["--", key, "-"], job, endpoints, timeout_s, given)
    return int(told["version"])


def get(
    key: str,
    *,
    job: JobName = DEFAULT_JOB,
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """The value of a key, no older than this call. Raises `UnknownError` without such a key or job, `UnreachableError`."""
    value = read(key, job=job, endpoints=endpoints, timeout_s=timeout_s).value
    assert value is not None, "`kv get` always answers with a value"
    return value


def read(
    key: str,
    *,
    job: JobName = DEFAULT_JOB,
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
) -> Entry:
    """A key with its version, for `expected_version` of `put`. Raises as `get` does."""
    return _entry(_keys(["kv", "get"], ["--", key], job, endpoints, timeout_s))


def delete(
    key: str,
    *,
    job: JobName = DEFAULT_JOB,
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
) -> int:
    """Deletes a key and everything under `KEY/`, and answers how many keys that were. Raises `UnknownError` without such a
    job, `UnreachableError`; `TripodError` with code T2105 if it may or may not have been done."""
    return int(_keys(["kv", "delete"], ["--", key], job, endpoints, timeout_s)["deleted"])


# The name of Python's own is hidden in this module from here on.
def list(
    prefix: str = "",
    *,
    limit: Optional[int] = None,
    keys_only: bool = False,
    job: JobName = DEFAULT_JOB,
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
) -> List[Entry]:
    """The keys that begin with a prefix, in their order, at most `limit` of them. With `keys_only` no values are fetched.
    Raises `UnknownError` without such a job, `UnreachableError`."""
    command = ["kv", "list"]
    if limit is not None:
        command += ["--limit", str(limit)]
    if keys_only:
        command.append("--keys-only")
    return [_entry(told) for told in _keys(command, ["--", prefix], job, endpoints, timeout_s)]


def _keys(
    command: List[str],
    what: List[str],
    job: JobName,
    endpoints: Optional[Endpoints],
    timeout_s: float,
    given: bytes = b"",
) -> Any:
    name, endpoints = named(job, endpoints)
    return call([*command, f"--job={name}", *what], endpoints, timeout_s, given)


def _entry(told: Any) -> Entry:
    value = None
    if "value" in told:
        value = told["value"].encode()
    elif "value_hex" in told:
        value = bytes.fromhex(told["value_hex"])
    return Entry(told["key"], value, told["version"], told["modified_index"])
