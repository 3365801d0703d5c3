from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVarTuple

from numpy.typing import DTypeLike

from .context import Context
from .mutable import MutableTensor
from .mutable_frame import MutableDataFrame
from .tileable import Tileable

_Many = TypeVarTuple("_Many")

class Session:
    session_id: str
    context: Context
    def execute(
        self,
        *tileables: *_Many,
        timeout_s: float | None = None,
        priority: int = 0,
        fuse: bool = False,
        max_reschedules: int | None = None,
        show_progress: bool | None = None,
    ) -> tuple[*_Many]: ...
    def fetch(self, *tileables: Tileable) -> list[Any]: ...
    def create_mutable_tensor(
        self,
        name: str,
        shape: int | Sequence[int],
        dtype: DTypeLike = "f8",
        default_value: complex = 0,
        chunk_size: int | Sequence[Any] | None = None,
        replicas: int = 1,
        if_not_exist: bool = False,
    ) -> MutableTensor: ...
    def get_mutable_tensor(self, name: str) -> MutableTensor: ...
    def create_mutable_dataframe(
        self,
        name: str,
        rows: int,
        columns: Mapping[str, Any],
        default_values: Mapping[str, Any] | None = None,
        chunk_rows: int = 0,
        replicas: int = 1,
        if_not_exist: bool = False,
    ) -> MutableDataFrame: ...
    def get_mutable_dataframe(self, name: str) -> MutableDataFrame: ...
    def close(self) -> None: ...
    def destroy(self) -> None: ...
    def stop_server(self) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

def new_session(
    endpoints: str | Sequence[str] | None = None,
    session_id: str | None = None,
    *,
    job: str | None = None,
    default: bool = True,
    labels: Mapping[str, str] | None = None,
    if_not_exist: bool = True,
    compressions: Iterable[str] = (),
    patience_s: float = ...,
    tls_dir: str | None = None,
    token_file: str | None = None,
) -> Session: ...
def get_default_session() -> Session: ...
def set_default_session(session: Session | None) -> None: ...
