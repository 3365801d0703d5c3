"""What can go wrong, by who can do something about it. `RefusedError` and `UnreachableError` are those of `tripod_ray`."""

from tripod_ray.errors import RefusedError, TripodError, UnreachableError

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


class UnsupportedError(TripodError, TypeError):
    """numpy or pandas has this, and the cluster has not; the text names what is missing, and what to do instead."""


class SessionError(TripodError):
    """There is no session, or what is used belongs to another one."""


class NotExecutedError(TripodError, ValueError):
    """Data is asked for of something that has not been executed."""


class GraphRefusedError(TripodError):
    """The cluster did not take the graph. `line` is where the program made what it did not take, and `reason` why.
    With `needs_execution` an extent must be known first which only execution tells."""

    def __init__(self, reason, line="", key="", code=0):
        super().__init__(f"{reason}\n  made at {line}" if line else reason)
        self.reason = reason
        self.line = line
        self.key = key
        self.code = code

    @property
    def needs_execution(self):
        return "execute that first" in self.reason


class ExecutionError(TripodError):
    """A graph failed, was stopped, or took too long. `code` is the cluster's word for it, `traceback_text` what the worker
    would have printed, and `line` where the program made what failed."""

    def __init__(self, code, message, traceback_text="", line="", key="", worker_id="", attempt=0):
        parts = [f"{code}: {message}" if message else code]
        if worker_id:
            parts.append(f"  at worker {worker_id}, attempt {attempt}")
        if line:
            parts.append(f"  made at {line}")
        if traceback_text:
            parts.append(traceback_text.rstrip())
        super().__init__("\n".join(parts))
        self.code = code
        self.message = message
        self.traceback_text = traceback_text
        self.line = line
        self.key = key
        self.worker_id = worker_id
        self.attempt = attempt


class ChunkLostError(TripodError):
    """No worker has the chunk, and none made it again in the time that reads wait. The text has the key, and what each of
    the places said."""


class DamagedDataError(TripodError):
    """Bytes came that are not what their checksum or their form says."""


class MutableError(TripodError):
    """A mutable tensor cannot be written or read: it is sealed or deleted, or its data is lost. `state` tells."""

    def __init__(self, text, state=""):
        super().__init__(text)
        self.state = state
