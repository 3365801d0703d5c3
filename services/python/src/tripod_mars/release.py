"""Results that the program has forgotten: the cluster is told, many at a time and by another thread, since an object may end
anywhere, also within a call."""

import logging
import queue
import threading
import weakref

from .errors import RefusedError, TripodError
from .scheduler import new_id

# Results of one call, and how long the first of them waits for others.
KEYS_MAX = 1000
_GATHER_S = 0.05
# A cluster that is away for longer keeps them until the session ends.
_PATIENCE_S = 30.0
_NOT_FOUND = 5

_log = logging.getLogger("tripod_mars")


class Hold:
    """One count of a result. What refers to the result refers to this."""

    __slots__ = ("__weakref__",)


class Releases:
    """Counts of one session that have ended."""

    def __init__(self, scheduler, session_id):
        self._scheduler = scheduler
        self._session_id = session_id
        # Finalisers may run within `put` itself, which this kind allows.
        self._ended = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread = None
        # Their session has ended, and what it had with it.
        self._is_over = False

    def hold(self, key):
        """A count of that result, which is given up when the answer is forgotten."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tripod-mars-release", daemon=True)
                self._thread.start()
        hold = Hold()
        # Where the program ends, its session does.
        weakref.finalize(hold, self._ended.put, key).atexit = False
        return hold

    def close(self, timeout_s=5.0, is_over=False):
        """Sends what there is, unless the session is over."""
        with self._lock:
            self._is_over = is_over
            thread = self._thread
        if thread is not None:
            self._ended.put(None)
            thread.join(timeout_s)

    def _run(self):
        is_open = True
        while is_open:
            keys = [self._ended.get()]
            while keys[-1] is not None and len(keys) < KEYS_MAX:
                try:
                    keys.append(self._ended.get(timeout=_GATHER_S))
                except queue.Empty:
                    break
            if keys[-1] is None:
                keys.pop()
                is_open = False
            if keys and not self._is_over:
                self._send(keys)

    def _send(self, keys):
        try:
            self._call(keys)
        except RefusedError as error:
            if error.code == _NOT_FOUND and len(keys) > 1:
                # One of them is unknown, and then none is given up.
                for key in keys:
                    self._send([key])
            elif error.code != _NOT_FOUND:
                _log.warning("results are kept until the session ends: %s", error)
        except TripodError as error:
            _log.warning("results are kept until the session ends: %s", error)

    def _call(self, keys):
        self._scheduler.call(
            "DecrefTileables",
            patience_s=_PATIENCE_S,
            request_id=new_id(),
            session_id=self._session_id,
            keys=keys,
            counts=[1] * len(keys),
        )
