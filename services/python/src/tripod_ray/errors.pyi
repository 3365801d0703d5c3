from collections.abc import Iterable

class TripodError(Exception): ...
class NotConnectedError(TripodError): ...
class ClusterError(TripodError): ...
class UnreachableError(TripodError): ...

class RefusedError(TripodError):
    code: int
    reason: str
    def __init__(self, code: int, text: str, reason: str = "") -> None: ...

class ExpiredError(TripodError): ...
class FunctionNotRegisteredError(TripodError): ...
class GetTimeoutError(TripodError, TimeoutError): ...

class StoreError(TripodError):
    code: int
    gone: bool
    def __init__(self, text: str, code: int = 0, gone: bool = False) -> None: ...

class ObjectLostError(TripodError):
    reason: str
    function: str
    text: str
    history: list[str]
    def __init__(self, reason: str, function: str = "", text: str = "", history: Iterable[str] = ()) -> None: ...

class TaskCancelledError(ObjectLostError):
    REASON: str
    def __init__(self, function: str = "", text: str = "", history: Iterable[str] = ()) -> None: ...

class TaskError(TripodError):
    reason: str
    function_name: str
    cause: BaseException | None
    traceback_text: str
    def __init__(self, function_name: str, cause: BaseException | None = None, traceback_text: str = "") -> None: ...

class DependencyFailedError(TaskError):
    objectid: int
    def __init__(
        self, objectid: int, function_name: str, cause: BaseException | None, traceback_text: str
    ) -> None: ...
