from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from .reference import ObjectRef

_T = TypeVar("_T")
_Refs = TypeVar("_Refs")
_Resources = Mapping[str, float] | str
# What stands in a list of declared types.
_Declared = Sequence[Any]

class RemoteFunction(Generic[_Refs]):
    """A function that workers execute. Arguments may be handles of what the function takes, so they have no types here."""

    __name__: str
    __qualname__: str
    def remote(self, *args: Any, **kwargs: Any) -> _Refs: ...
    @overload
    def options(
        self,
        *,
        max_retries: int | None = ...,
        retry_exceptions: bool = ...,
        num_cpus: float | None = ...,
        memory: int | str | None = ...,
        resources: _Resources | None = ...,
        priority: int | None = ...,
    ) -> RemoteFunction[_Refs]: ...
    @overload
    def options(
        self,
        *,
        num_returns: int,
        max_retries: int | None = ...,
        retry_exceptions: bool = ...,
        num_cpus: float | None = ...,
        memory: int | str | None = ...,
        resources: _Resources | None = ...,
        priority: int | None = ...,
    ) -> RemoteFunction[Any]: ...

class _WithOne(Protocol):
    def __call__(self, function: Callable[..., _T], /) -> RemoteFunction[ObjectRef[_T]]: ...

@overload
def remote(
    function: Callable[..., _T],
    /,
    *,
    num_returns: Literal[1] = 1,
    max_retries: int | None = None,
    retry_exceptions: bool = False,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: _Resources | None = None,
    priority: int | None = None,
) -> RemoteFunction[ObjectRef[_T]]: ...
@overload
def remote(
    function: Callable[..., object],
    /,
    *,
    num_returns: int,
    max_retries: int | None = None,
    retry_exceptions: bool = False,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: _Resources | None = None,
    priority: int | None = None,
) -> RemoteFunction[Any]: ...
@overload
def remote(  # type: ignore[overload-overlap]
    *,
    num_returns: Literal[1] = 1,
    max_retries: int | None = None,
    retry_exceptions: bool = False,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: _Resources | None = None,
    priority: int | None = None,
) -> _WithOne: ...
@overload
def remote(  # type: ignore[overload-overlap]
    *,
    num_returns: Literal[0],
    max_retries: int | None = None,
    retry_exceptions: bool = False,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: _Resources | None = None,
    priority: int | None = None,
) -> Callable[[Callable[..., object]], RemoteFunction[None]]: ...
@overload
def remote(
    *,
    num_returns: int,
    max_retries: int | None = None,
    retry_exceptions: bool = False,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: _Resources | None = None,
    priority: int | None = None,
) -> Callable[[Callable[..., object]], RemoteFunction[list[ObjectRef[Any]]]]: ...
@overload
def remote(
    arguments: _Declared,
    results: _Declared,
    /,
    *,
    max_retries: int | None = None,
    retry_exceptions: bool = False,
    num_cpus: float | None = None,
    memory: int | str | None = None,
    resources: _Resources | None = None,
    priority: int | None = None,
) -> Callable[[Callable[..., object]], RemoteFunction[Any]]: ...
