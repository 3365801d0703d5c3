from tripod_ray.errors import RefusedError as RefusedError
from tripod_ray.errors import TripodError as TripodError
from tripod_ray.errors import UnreachableError as UnreachableError

__all__ = [
    "ChunkLostError",
    "DamagedDataError",
    "ExecutionError",
    "GraphRefusedError",
    "MutableError",
    "NotExecutedError",
    "RefusedError",
    "SessionError",
    "TripodError",
    "UnreachableError",
    "UnsupportedError",
]

class UnsupportedError(TripodError, TypeError): ...
class SessionError(TripodError): ...
class NotExecutedError(TripodError, ValueError): ...

class GraphRefusedError(TripodError):
    reason: str
    line: str
    key: str
    code: int
    def __init__(self, reason: str, line: str = "", key: str = "", code: int = 0) -> None: ...
    @property
    def needs_execution(self) -> bool: ...

class ExecutionError(TripodError):
    code: str
    message: str
    traceback_text: str
    line: str
    key: str
    worker_id: str
    attempt: int
    def __init__(
        self,
        code: str,
        message: str,
        traceback_text: str = "",
        line: str = "",
        key: str = "",
        worker_id: str = "",
        attempt: int = 0,
    ) -> None: ...

class ChunkLostError(TripodError): ...
class DamagedDataError(TripodError): ...

class MutableError(TripodError):
    state: str
    def __init__(self, text: str, state: str = "") -> None: ...
