"""What can go wrong, by who can do something about it."""


class TripodError(Exception):
    """Everything that this package raises."""


class NotConnectedError(TripodError):
    """A call needs a cluster, and `init` was not called or `shutdown` was."""


class ClusterError(TripodError):
    """No cluster could be started on this machine; the text says why, and what to do."""


class UnreachableError(TripodError):
    """No node of the cluster answered for as long as calls are tried again. What was asked may or may not
    have been done; the names of the endpoints are in the text."""


class RefusedError(TripodError):
    """The cluster understood and said no: the request itself must change."""

    def __init__(self, code, text, reason=""):
        super().__init__(text or f"refused with code {code}")
        self.code = code
        self.reason = reason


class ExpiredError(TripodError):
    """The cluster gave this process up, since it was silent for too long: its references are gone. Call
    `shutdown` and
    `init` to begin anew."""


class FunctionNotRegisteredError(TripodError):
    """No worker registered the function in the time that submissions wait for one: is a worker running?"""


class GetTimeoutError(TripodError, TimeoutError):
    """The objects did not come in the time that the caller gave."""


class StoreError(TripodError):
    """The object store of this machine refused, or its connection broke. With `gone` it has ended, or begins
    anew, and what was in it is lost."""

    def __init__(self, text, code=0, gone=False):
        super().__init__(text)
        self.code = code
        self.gone = gone


class ObjectLostError(TripodError):
    """The object cannot be had, and no worker will make it (again). `reason` is a word of the protocol, such
    as PUT_OBJECT or RETRIES_EXHAUSTED; `history` tells how the attempts ended."""

    def __init__(self, reason, function="", text="", history=()):
        self.reason = reason
        self.function = function
        self.text = text
        self.history = list(history)
        parts = [f"object lost: {reason}"]
        if function:
            parts.append(f"function {function}")
        if text:
            parts.append(text)
        # Each says which attempt it was.
        parts.extend(self.history)
        super().__init__("; ".join(parts))

    def __reduce__(self):
        return ObjectLostError, (self.reason, self.function, self.text, self.history)


class TaskCancelledError(ObjectLostError):
    """The task that was to make the object was cancelled. In that task itself it is what is raised where it is: one that
    catches it, to clean up, is expected to end then."""

    # The word by which its results tell why there are none.
    REASON = "CANCELLED"

    def __init__(self, function="", text="", history=()):
        super().__init__(self.REASON, function, text, history)

    def __reduce__(self):
        return TaskCancelledError, (self.function, self.text, self.history)


class TaskError(TripodError):
    """A task raised an exception, or one of its arguments was made by a task that did. `cause` is the
    exception itself if it could be serialised, and `traceback_text` what the worker would have printed."""

    # The word by which its results tell why there are none.
    reason = "EXCEPTION"

    def __init__(self, function_name, cause=None, traceback_text=""):
        self.function_name = function_name
        self.cause = cause
        self.traceback_text = traceback_text
        super().__init__(f"task {function_name} failed:\n{traceback_text}")

    def __reduce__(self):
        return TaskError, (self.function_name, self.cause, self.traceback_text)


class DependencyFailedError(TaskError):
    """An argument of a task was lost when a worker had the task already. Where its results are read this is an
    `ObjectLostError`, as if the argument had been lost before."""

    def __init__(self, objectid, function_name, cause, traceback_text):
        super().__init__(function_name, cause, traceback_text)
        self.objectid = objectid
        self.reason = f"DEPENDENCY_FAILED({objectid})"

    def __reduce__(self):
        return DependencyFailedError, (
            self.objectid,
            self.function_name,
            self.cause,
            self.traceback_text,
        )
