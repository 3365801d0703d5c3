from typing import Any, TypeVar, overload

from .session import Session
from .visualize import Picture

_One = TypeVar("_One", bound=Tileable)

class Tileable:
    @property
    def name(self) -> str: ...
    @property
    def is_executed(self) -> bool: ...
    def execute(
        self: _One,
        session: Session | None = None,
        *,
        timeout_s: float | None = ...,
        priority: int = ...,
        fuse: bool = ...,
        max_reschedules: int | None = ...,
        show_progress: bool | None = ...,
    ) -> _One: ...
    def visualize(self) -> Picture: ...

@overload
def execute(
    tileable: _One,
    /,
    *,
    session: Session | None = None,
    timeout_s: float | None = ...,
    priority: int = ...,
    fuse: bool = ...,
    max_reschedules: int | None = ...,
    show_progress: bool | None = ...,
) -> _One: ...
@overload
def execute(
    *tileables: Tileable,
    session: Session | None = None,
    timeout_s: float | None = ...,
    priority: int = ...,
    fuse: bool = ...,
    max_reschedules: int | None = ...,
    show_progress: bool | None = ...,
) -> tuple[Any, ...]: ...

# With one, its data; with several, a tuple.
def fetch(*tileables: Tileable, session: Session | None = None) -> Any: ...
