from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .errors import TripodError

_T = TypeVar("_T")

class Reusable(Generic[_T]):
    initializer: Callable[[], _T]
    reinitializer: Callable[[_T], _T] | None
    def __init__(
        self, initializer: Callable[[], _T], reinitializer: Callable[[_T], _T] | None = None
    ) -> None: ...

class ReusableError(TripodError): ...

class Reusables:
    """Names are those that the program defines: a `Reusable` is assigned, and what it makes is read."""

    def __setattr__(self, name: str, reusable: Reusable[Any]) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

reusables: Reusables
