import enum
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy.typing import DTypeLike

class Environment(enum.Enum):
    CLIENT = "client"
    SCHEDULER = "scheduler"
    WORKER = "worker"

# Messages of `mars.v1` are `Any` here: their types are made when the package is imported.
class Context:
    session_id: str | None
    address: str | None
    @classmethod
    def of_scheduler(cls, address: str, session_id: str | None = None) -> Context: ...
    @classmethod
    def of_worker(cls, endpoints: str | Sequence[str], address: str, session_id: str | None = None) -> Context: ...
    @property
    def env(self) -> Environment: ...
    def current(self) -> AbstractContextManager[Context]: ...
    def count_schedulers(self) -> int: ...
    def get_schedulers(self) -> list[Any]: ...
    def get_schedulers_info(self, schedulers: Iterable[str] = (), filter_fields: Iterable[str] = ()) -> list[Any]: ...
    def count_workers(self, statuses: Iterable[str] = ()) -> int: ...
    def get_workers(self, statuses: Iterable[str] = ()) -> list[Any]: ...
    def get_workers_info(self, workers: Iterable[str] = (), filter_fields: Iterable[str] = ()) -> list[Any]: ...
    def create_session(
        self, session_id: str | None = '', if_not_exist: bool = False, labels: Mapping[str, str] | None = None
    ) -> str: ...
    def has_session(self, session_id: str | None = None) -> bool: ...
    def delete_session(self, session_id: str | None = None, if_exist: bool = False) -> bool: ...
    def list_sessions(self) -> list[Any]: ...
    def submit_tileable_graph(
        self,
        session_id: str | None,
        tileable_graph: Any,
        tileable_graph_key: str,
        target_tileable_keys: Sequence[str] = (),
        options: Any = None,
    ) -> Any: ...
    def submit_chunk_graph(
        self,
        session_id: str | None,
        chunk_graph: Any,
        chunk_graph_key: str,
        target_chunk_keys: Sequence[str] = (),
        options: Any = None,
    ) -> Any: ...
    def get_tileable_graph_info(
        self, session_id: str | None, tileable_graph_key: str, filter_fields: Iterable[str] = ()
    ) -> Any: ...
    def get_chunk_graph_info(
        self, session_id: str | None, chunk_graph_key: str, filter_fields: Iterable[str] = ()
    ) -> Any: ...
    def wait_tileable_graph(
        self, session_id: str | None, tileable_graph_key: str, timeout: float | None = None
    ) -> tuple[bool, Any]: ...
    def wait_chunk_graph(
        self, session_id: str | None, chunk_graph_key: str, timeout: float | None = None
    ) -> tuple[bool, Any]: ...
    def stop_tileable_graph(self, session_id: str | None, tileable_graph_key: str) -> str: ...
    def stop_chunk_graph(self, session_id: str | None, chunk_graph_key: str) -> str: ...
    def delete_tileable_graph(self, session_id: str | None, tileable_graph_key: str) -> int: ...
    def delete_chunk_graph(self, session_id: str | None, chunk_graph_key: str) -> int: ...
    def get_tileable_metas(
        self, session_id: str | None, tileable_keys: Sequence[str], filter_fields: Iterable[str] = ()
    ) -> list[Any]: ...
    def get_chunk_metas(
        self, session_id: str | None, chunk_keys: Sequence[str], filter_fields: Iterable[str] = ()
    ) -> list[Any]: ...
    def create_mutable_tensor(
        self,
        session_id: str | None,
        name: str,
        shape: Sequence[int],
        dtype: DTypeLike,
        if_not_exist: bool = False,
        default_value: Any = 0,
        chunk_size: Any = (),
        replicas: int = 1,
    ) -> Any: ...
    def create_mutable_dataframe(
        self,
        session_id: str | None,
        name: str,
        shape: Sequence[int],
        dtypes: Any,
        if_not_exist: bool = False,
        default_values: Any = (),
        chunk_rows: int = 0,
    ) -> Any: ...
    def get_mutable_tileable(self, session_id: str | None, name: str) -> Any: ...
    def seal_mutable_tileable(
        self, session_id: str | None, name: str, timestamp: int | None = None
    ) -> tuple[str, Any]: ...
    def delete_mutable_tileable(self, session_id: str | None, name: str, if_exist: bool = False) -> bool: ...
    def get_chunks_data(
        self,
        session_id: str | None,
        worker: str | None = None,
        chunk_keys: Sequence[str] = (),
        indexes: Any = None,
        compression_types: Iterable[str] = (),
    ) -> list[Any]: ...
    def get_mutable_chunks_data(
        self,
        session_id: str | None,
        worker: str | None = None,
        chunk_keys: Sequence[str] = (),
        indexes: Any = None,
        timestamp: int | None = None,
        compression_types: Iterable[str] = (),
        epoch: int = 0,
    ) -> list[Any]: ...
    def put_mutable_chunks_data(
        self, session_id: str | None, worker: str | None = None, batches: Iterable[Any] = ()
    ) -> tuple[int, int]: ...

def get_context() -> Context: ...
