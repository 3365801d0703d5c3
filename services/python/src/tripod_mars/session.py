"""A session: what a program executes belongs to one, and ends with it."""

import atexit
import os
import threading

from tripod_ray import credentials
from tripod_ray.edge import interface

from . import execution, put
from .context import Context
from .errors import NotExecutedError, SessionError, TripodError
from .graph import Placed, TensorContent
from .mutable import MutableTensor, create_mutable_tensor, get_mutable_tensor
from .mutable_frame import MutableDataFrame, create_mutable_dataframe, get_mutable_dataframe
from .reader import PATIENCE_S, Reader
from .release import Releases
from .scheduler import ENDPOINTS, Scheduler, new_id
from .workers import Workers

_lock = threading.Lock()
_default = None
# A cluster that is away keeps no program from its end.
_EXIT_S = 2.0


class Session:
    """Executes graphs, reads results, and gives them up when the program forgets them."""

    def __init__(self, scheduler, session_id, workers=None, is_own=True, compressions=(), patience_s=PATIENCE_S):
        """`scheduler` and `workers` make the calls. `new_session` is what programs use. `is_own`: it ends with the program.
        `patience_s`: for how long a read waits until chunks that were lost are made again."""
        self.scheduler = scheduler
        self.workers = workers or Workers()
        self.session_id = session_id
        self.reader = Reader(scheduler, self.workers, session_id, compressions, patience_s)
        self.releases = Releases(scheduler, session_id)
        self.puts = put.Puts(self, compressions)
        self.context = Context(scheduler, self.workers, session_id)
        self._is_own = is_own
        self._is_open = True

    @interface
    def execute(self, *tileables, timeout_s=None, priority=0, fuse=False, max_reschedules=None, show_progress=None):
        """Computes all of them as one graph, and answers with them. Those that are there are not computed again.

        `timeout_s` bounds the execution, `priority` orders it among others (the highest first). `show_progress` None: where
        there is a terminal. Raises `GraphRefusedError`, `ExecutionError`, `SessionError`, `UnreachableError`.
        """
        self._check()
        nodes = [one.node for one in tileables if one.node.placed_in(self.session_id) is None]
        options = execution.Options(timeout_s, priority, fuse, max_reschedules, show_progress)
        execution.execute(self, nodes, options)
        return tileables

    @interface
    def fetch(self, *tileables):
        """Their data as a list: arrays of numpy, and frames as `to_pandas` has them. Raises `NotExecutedError`,
        `ChunkLostError`."""
        self._check()
        return [one.fetch(session=self) for one in tileables]

    def read_tensor(self, node):
        """An array. A slice of something that was executed is read without executing anything: only its part of the chunks
        comes."""
        self._check()
        placed, index = node.placed_in(self.session_id), ()
        if placed is None and node.op == "slice" and isinstance(node.content, TensorContent):
            placed = node.inputs[0].placed_in(self.session_id)
            index = [_picked(one) for one in node.attributes["index"]]
        if placed is None:
            raise NotExecutedError(f"{node.content} has not been executed in this session; next: call `execute` first")
        return self.reader.tensor(placed, node.content.dtype, index)

    def read_frame(self, node):
        """Columns of a frame, as arrays by name."""
        self._check()
        placed = node.placed_in(self.session_id)
        if placed is None:
            raise NotExecutedError("the frame has not been executed in this session; next: call `execute` first")
        return self.reader.frame(placed, node.content.columns)

    def create_mutable_tensor(
        self, name, shape, dtype="f8", default_value=0, chunk_size=None, replicas=1, if_not_exist=False
    ):
        """A tensor that is written in place: see `MutableTensor`."""
        self._check()
        return create_mutable_tensor(self, name, shape, dtype, default_value, chunk_size, replicas, if_not_exist)

    def get_mutable_tensor(self, name) -> MutableTensor:
        """One that is there already. Raises `MutableError`."""
        self._check()
        return get_mutable_tensor(self, name)

    def create_mutable_dataframe(
        self, name, rows, columns, default_values=None, chunk_rows=0, replicas=1, if_not_exist=False
    ):
        """A frame that is written in place: see `MutableDataFrame`. `columns` are types by name, `default_values` what rows
        are that nobody writes, by name: 0, false or no text where it says nothing."""
        self._check()
        return create_mutable_dataframe(self, name, rows, columns, default_values, chunk_rows, replicas, if_not_exist)

    def get_mutable_dataframe(self, name) -> MutableDataFrame:
        """One that is there already. Raises `MutableError`."""
        self._check()
        return get_mutable_dataframe(self, name)

    def placed(self, key, meta) -> Placed:
        """Where a tileable of the session is."""
        return execution.placed_of(self, meta, key)

    def close(self):
        """Leaves the session as it is, and what it has."""
        if self._is_open:
            self._is_open = False
            self.releases.close()
            _forget(self)
            self._end()

    def destroy(self):
        """Ends the session: its graphs are stopped, and all that it has is deleted."""
        self._destroy(60.0)

    stop_server = destroy

    def _destroy(self, patience_s):
        if not self._is_open:
            return
        self._is_open = False
        _forget(self)
        self.releases.close(is_over=True)
        try:
            self.scheduler.call(
                "DeleteSession",
                patience_s=patience_s,
                request_id=new_id(),
                session_id=self.session_id,
                if_exist=True,
            )
        finally:
            self._end()

    def _end(self):
        self.workers.close()
        self.scheduler.close()

    def _check(self):
        if not self._is_open:
            raise SessionError(f"session {self.session_id} was closed by this program")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._is_own:
            self.destroy()
        else:
            self.close()

    def __repr__(self):
        return f"Session({self.session_id!r})"


@interface
def new_session(
    endpoints=None,
    session_id=None,
    *,
    job=None,
    default=True,
    labels=None,
    if_not_exist=True,
    compressions=(),
    patience_s=PATIENCE_S,
    tls_dir=None,
    token_file=None,
):
    """A session at a cluster, whose nodes are `endpoints` (a list or a comma-separated text) or TRIPOD_ENDPOINTS.

    With a `session_id` it may be one that others use, and stays when the program ends; without one it ends with the program.
    `job`: the name of the job whose workers compute; None: the port's own. `default`: tensors that are executed without a
    session use it. `compressions`: how data may come, what is liked best first
    (zstd, lz4, gzip). `tls_dir`: a directory of certificates for nodes that use TLS, and `token_file`: a file of a token that
    is shown to them; None: TRIPOD_TLS_DIR and TRIPOD_TOKEN_FILE. Raises `RefusedError` if it is there and `if_not_exist` is
    false, `UnreachableError`, `ValueError` if a file cannot be used.
    """
    proofs = None if tls_dir is None and token_file is None else credentials.given(tls_dir, token_file)
    scheduler = Scheduler(endpoints, job, proofs)
    try:
        answer = scheduler.call(
            "CreateSession",
            request_id=new_id(),
            session_id=session_id or "",
            if_not_exist=if_not_exist,
            labels=labels or {},
        )
    except BaseException:
        scheduler.close()
        raise
    made = Session(scheduler, answer.session_id, None, not session_id, compressions, patience_s)
    if default:
        set_default_session(made)
    return made


@interface
def get_default_session():
    """The one that is used where none is given; one is made at the first use, by TRIPOD_ENDPOINTS."""
    with _lock:
        if _default is not None:
            return _default
    try:
        return new_session()
    except ValueError:
        if os.environ.get(ENDPOINTS):
            # A file of the environment's cannot be used.
            raise
        raise SessionError(
            "no session: call `tripod_mars.new_session(endpoints)`, or set TRIPOD_ENDPOINTS to the nodes of a cluster"
        ) from None


def set_default_session(session):
    """What is used where no session is given; None: nothing."""
    global _default
    with _lock:
        _default = session


def _forget(session):
    global _default
    with _lock:
        if _default is session:
            _default = None


def _picked(one):
    """An index as numpy has it, of one as it is sent."""
    return one if isinstance(one, int) else slice(one.get("start"), one.get("stop"), one.get("step"))


def _at_exit():
    session = _default
    if session is None:
        return
    try:
        session._destroy(_EXIT_S) if session._is_own else session.close()
    except TripodError:
        # It ends as idle sessions do.
        pass


atexit.register(_at_exit)
