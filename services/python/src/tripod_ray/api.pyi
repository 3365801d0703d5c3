from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from .reference import ObjectRef

_T = TypeVar("_T")

ENDPOINTS: str
GRACE_S_MAX: int

def init(
    address: str | None = None,
    *,
    node_ip: str | None = None,
    objstore_address: str = "",
    job: str | None = None,
    num_workers: int | None = None,
    store_mib: int = 1024,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: Mapping[str, float] | str | None = None,
    tls_dir: str | None = None,
    token_file: str | None = None,
) -> None: ...
def shutdown() -> None: ...
def is_initialized() -> bool: ...
def put(value: _T) -> ObjectRef[_T]: ...
@overload
def get(refs: ObjectRef[_T], timeout: float | None = None) -> _T: ...
@overload
def get(refs: Iterable[ObjectRef[_T]], timeout: float | None = None) -> list[_T]: ...
def wait(
    refs: Iterable[ObjectRef[_T]], num_returns: int = 1, timeout: float | None = None
) -> tuple[list[ObjectRef[_T]], list[ObjectRef[_T]]]: ...
def cancel(ref: ObjectRef[Any], grace: float = 5.0) -> bool: ...
def kill_workers() -> bool: ...
def task_info() -> dict[str, Any]: ...
def scheduler_info() -> dict[str, Any]: ...
