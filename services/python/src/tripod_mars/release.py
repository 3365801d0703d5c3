"""Results that the program has forgotten: the cluster is told, many at a time and by another thread, since an object may end
anywhere, also within a call. So are graphs of which nothing is left, which a session keeps until they are deleted, and of
which it has 4,096 at most; the newest ones stay for who looks at them."""

import collections
import logging
import queue
import threading
import weakref
from typing import NamedTuple, Optional

from .errors import RefusedError, TripodError
from .scheduler import new_id

# Results of one call, and how long the first of them waits for others.
KEYS_MAX = 1000
_GATHER_S = 0.05
# A cluster that is away for longer keeps them until the session ends.
_PATIENCE_S = 30.0
# Graphs that are kept though all of their results are forgotten.
GRAPHS_KEPT = 1000
_NOT_FOUND, _FAILED_PRECONDITION = 5, 9

_log = logging.getLogger("tripod_mars")


class _Graph(NamedTuple):
    """A graph that has ended, and how many results of it are held."""

    key: str
    results: int


class _Result(NamedTuple):
    """A result that is not held any more, and the graph that made it, if that is this program's."""

    key: str
    graph_key: Optional[str]


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
        self._closing = threading.Event()
        # Their session has ended, and what it had with it.
        self._is_over = False
        # How many results of each graph are held; and graphs of which none is, the first to be deleted first. Both are the
        # thread's own.
        self._held = {}
        self._graphs = collections.deque()

    def hold(self, key):
        """A count of that result, which is given up when the answer is forgotten."""
        self._begin()
        return self._hold(key, None)

    def hold_graph(self, graph_key, keys):
        """The same of all results of a graph, which is deleted when all are forgotten and a number of others are, too."""
        self._begin()
        self._ended.put(_Graph(graph_key, len(keys)))
        return [self._hold(key, graph_key) for key in keys]

    def give_up_graph(self, graph_key):
        """A graph that has no results."""
        self._begin()
        self._ended.put(_Graph(graph_key, 0))

    def _begin(self):
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tripod-mars-release", daemon=True)
                self._thread.start()

    def _hold(self, key, graph_key):
        hold = Hold()
        # Where the program ends, its session does.
        weakref.finalize(hold, self._ended.put, _Result(key, graph_key)).atexit = False
        return hold

    def close(self, timeout_s=5.0, is_over=False):
        """Sends what there is, unless the session is over."""
        with self._lock:
            self._is_over = is_over
            thread = self._thread
        self._closing.set()
        if thread is not None:
            self._ended.put(None)
            thread.join(timeout_s)

    def _run(self):
        is_open = True
        while is_open:
            keys, is_open = self._gathered()
            if keys and not self._is_over:
                self._send(keys)
            while is_open and len(self._graphs) > GRAPHS_KEPT and self._delete(self._graphs.popleft()):
                pass

    def _gathered(self):
        """Results that have ended within a while, and whether more may come."""
        keys, ended = [], self._ended.get()
        if ended is not None:
            # This thread runs once for all of them.
            self._closing.wait(_GATHER_S)
        while ended is not None:
            self._take(ended, keys)
            if len(keys) >= KEYS_MAX:
                return keys, True
            try:
                ended = self._ended.get_nowait()
            except queue.Empty:
                return keys, True
        return keys, False

    def _take(self, ended, keys):
        """Counts what is left of a graph."""
        if isinstance(ended, _Graph):
            self._held[ended.key] = ended.results
        else:
            keys.append(ended.key)
            if ended.graph_key is None:
                return
            self._held[ended.graph_key] -= 1
        graph_key = ended.key if isinstance(ended, _Graph) else ended.graph_key
        if self._held[graph_key] == 0:
            del self._held[graph_key]
            self._graphs.append(graph_key)

    def _delete(self, graph_key):
        """Whether to go on with the next one."""
        try:
            self._scheduler.call(
                "DeleteTileableGraph",
                patience_s=_PATIENCE_S,
                request_id=new_id(),
                session_id=self._session_id,
                graph_key=graph_key,
            )
        except RefusedError as error:
            # One that was stopped, and has not ended, comes later.
            if error.code == _FAILED_PRECONDITION:
                self._graphs.append(graph_key)
                return False
        except TripodError as error:
            _log.warning("graphs are kept until the session ends: %s", error)
            self._graphs.appendleft(graph_key)
            return False
        return True

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
