"""The calls of a cluster as functions, wherever one is: in a program, beside a node, or in what a worker executes."""

import contextlib
import contextvars
import enum

import numpy as np

from . import compression, dtypes, parts, wire
from .codec import Assembly
from .errors import RefusedError
from .execution import set_duration
from .scheduler import SUBMIT_S, Scheduler, new_id
from .workers import WorkerError, Workers

# A node holds a wait for so long at most.
_HELD_S = 60.0
_CALL_S = 60.0

_current = contextvars.ContextVar("tripod_mars_context", default=None)


class Environment(enum.Enum):
    """Where a context is."""

    CLIENT = "client"
    SCHEDULER = "scheduler"
    WORKER = "worker"


class Context:
    """Calls of schedulers and workers, with a session and the place where they are made from.

    Answers are messages of `mars.v1` or lists of them, in the order of what was asked. Calls that change something take
    effect once, whichever node answers.
    """

    def __init__(self, scheduler, workers=None, session_id=None, env=Environment.CLIENT, address=None):
        """`scheduler` makes the calls, or says where the nodes are. `address`: that of the node or the worker this is at."""
        is_place = scheduler is None or isinstance(scheduler, (str, list, tuple))
        self.scheduler = Scheduler(scheduler) if is_place else scheduler
        self.workers = workers or Workers()
        self.session_id = session_id
        self._env = env
        self.address = address

    @classmethod
    def of_scheduler(cls, address, session_id=None):
        """Beside a node: it is the one that is asked."""
        return cls([address], None, session_id, Environment.SCHEDULER, address)

    @classmethod
    def of_worker(cls, endpoints, address, session_id=None):
        """In what a worker executes: chunks are its own unless another worker is named."""
        return cls(endpoints, None, session_id, Environment.WORKER, address)

    @property
    def env(self):
        """Where this is, as an `Environment`."""
        return self._env

    @contextlib.contextmanager
    def current(self):
        """Within it `get_context` answers with this one."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    # ---- The cluster ----

    def count_schedulers(self):
        return self._call("CountSchedulers").count

    def get_schedulers(self):
        """Addresses, with roles."""
        return list(self._call("GetSchedulers").schedulers)

    def get_schedulers_info(self, schedulers=(), filter_fields=()):
        """One for each address, `found` or not; none named: all."""
        return list(self._call("GetSchedulersInfo", addresses=schedulers, filter_fields=filter_fields).infos)

    def count_workers(self, statuses=()):
        return self._call("CountWorkers", statuses=_statuses(statuses)).count

    def get_workers(self, statuses=()):
        """Those that are ready, or have one of the statuses (`READY`, `STOPPED` ...)."""
        return list(self._call("GetWorkers", statuses=_statuses(statuses)).workers)

    def get_workers_info(self, workers=(), filter_fields=()):
        return list(self._call("GetWorkersInfo", worker_ids=workers, filter_fields=filter_fields).infos)

    # ---- Sessions ----

    def create_session(self, session_id="", if_not_exist=False, labels=None):
        """Its id. Raises `RefusedError` (ALREADY_EXISTS) if it is there, unless that is fine."""
        return self._change(
            "CreateSession", session_id=session_id, if_not_exist=if_not_exist, labels=labels or {}
        ).session_id

    def has_session(self, session_id=None):
        return self._call("HasSession", session_id=self._session(session_id)).exists

    def delete_session(self, session_id=None, if_exist=False):
        return self._change("DeleteSession", session_id=self._session(session_id), if_exist=if_exist).deleted

    def list_sessions(self):
        return list(self._call("ListSessions").sessions)

    # ---- Graphs ----

    def submit_tileable_graph(self, session_id, tileable_graph, tileable_graph_key, target_tileable_keys=(), options=None):
        """A `TileableGraph`; `options` is a `GraphOptions` or a dict. Returns when it is committed, and waits for nothing."""
        return self._submit(
            "SubmitTileableGraph", session_id, tileable_graph, tileable_graph_key, target_tileable_keys, options
        )

    def submit_chunk_graph(self, session_id, chunk_graph, chunk_graph_key, target_chunk_keys=(), options=None):
        """A `ChunkGraph`, whose operators may be any that workers know."""
        return self._submit("SubmitChunkGraph", session_id, chunk_graph, chunk_graph_key, target_chunk_keys, options)

    def get_tileable_graph_info(self, session_id, tileable_graph_key, filter_fields=()):
        return self._info("GetTileableGraphInfo", session_id, tileable_graph_key, filter_fields)

    def get_chunk_graph_info(self, session_id, chunk_graph_key, filter_fields=()):
        return self._info("GetChunkGraphInfo", session_id, chunk_graph_key, filter_fields)

    def wait_tileable_graph(self, session_id, tileable_graph_key, timeout=None):
        """Whether it has ended, and its info. `timeout` in seconds; None: until it has."""
        return self._wait("WaitTileableGraph", session_id, tileable_graph_key, timeout)

    def wait_chunk_graph(self, session_id, chunk_graph_key, timeout=None):
        return self._wait("WaitChunkGraph", session_id, chunk_graph_key, timeout)

    def stop_tileable_graph(self, session_id, tileable_graph_key):
        """Its state, as a word."""
        return self._end("StopTileableGraph", session_id, tileable_graph_key)

    def stop_chunk_graph(self, session_id, chunk_graph_key):
        return self._end("StopChunkGraph", session_id, chunk_graph_key)

    def delete_tileable_graph(self, session_id, tileable_graph_key):
        """How many chunks that frees."""
        return self._delete("DeleteTileableGraph", session_id, tileable_graph_key)

    def delete_chunk_graph(self, session_id, chunk_graph_key):
        return self._delete("DeleteChunkGraph", session_id, chunk_graph_key)

    # ---- Metas ----

    def get_tileable_metas(self, session_id, tileable_keys, filter_fields=()):
        """One for each key, `found` or not."""
        return self._metas("GetTileableMetas", session_id, tileable_keys, filter_fields)

    def get_chunk_metas(self, session_id, chunk_keys, filter_fields=()):
        return self._metas("GetChunkMetas", session_id, chunk_keys, filter_fields)

    # ---- Mutable tileables ----

    def create_mutable_tensor(
        self, session_id, name, shape, dtype, if_not_exist=False, default_value=0, chunk_size=(), replicas=1
    ):
        """A `MutableInfo`. `Session.create_mutable_tensor` has something to write it with."""
        return self._change(
            "CreateMutableTensor",
            session_id=self._session(session_id),
            name=name,
            shape=shape,
            dtype=dtypes.NUMBERS[dtypes.name_of(dtype)],
            default_value=scalar(default_value),
            chunk_size=[chunk_size] if isinstance(chunk_size, int) else chunk_size,
            replicas=replicas,
            if_not_exist=if_not_exist,
        ).info

    def create_mutable_dataframe(self, session_id, name, shape, dtypes, if_not_exist=False, default_values=(), chunk_rows=0):
        """`dtypes` are types by column: a dict or a `pandas.Series`. A `MutableInfo`. `Session.create_mutable_dataframe` has
        something to write it with."""
        columns = [wire.Column(name=str(column), dtype=_column_type(dtype)) for column, dtype in dict(dtypes).items()]
        return self._change(
            "CreateMutableDataFrame",
            session_id=self._session(session_id),
            name=name,
            rows=shape[0],
            columns=columns,
            default_values=[scalar(value) for value in default_values],
            chunk_rows=chunk_rows,
            if_not_exist=if_not_exist,
        ).info

    def get_mutable_tileable(self, session_id, name):
        return self._call("GetMutableTileable", session_id=self._session(session_id), name=name).info

    def seal_mutable_tileable(self, session_id, name, timestamp=None):
        """The key and the meta of what it has become; `timestamp` in nanoseconds, None: everything that was written."""
        fields = {} if timestamp is None else {"timestamp_ns": timestamp}
        answer = self._change(
            "SealMutableTileable", session_id=self._session(session_id), name=name, **fields
        )
        return answer.tileable_key, answer.meta

    def delete_mutable_tileable(self, session_id, name, if_exist=False):
        return self._change(
            "DeleteMutableTileable", session_id=self._session(session_id), name=name, if_exist=if_exist
        ).deleted

    # ---- Workers ----

    def get_chunks_data(self, session_id, worker=None, chunk_keys=(), indexes=None, compression_types=()):
        """Arrays, one for each key, from one worker; a frame is a dict of arrays. `indexes`: none, one for all, or one for
        each key, as tuples of slices, ints and at most one list. Raises `KeyError`, `IndexError`."""
        request = self._chunks_request(session_id, worker, chunk_keys, indexes, compression_types)
        return self._read(worker, "GetChunksData", request, chunk_keys)

    def get_mutable_chunks_data(
        self, session_id, worker=None, chunk_keys=(), indexes=None, timestamp=None, compression_types=(), epoch=0
    ):
        """The same of mutable tensors, as of `timestamp` in nanoseconds."""
        chunks = self._chunks_request(session_id, worker, chunk_keys, indexes, compression_types)
        request = wire.GetMutableChunksDataRequest(chunks=chunks, epoch=epoch)
        if timestamp is not None:
            request.timestamp_ns = timestamp
        return self._read(worker, "GetMutableChunksData", request, chunk_keys)

    def put_mutable_chunks_data(self, session_id, worker=None, batches=()):
        """`MutableBatch` messages to one worker: how many it took, and how many it had already."""
        session_id = self._session(session_id)
        for batch in batches:
            batch.session_id = session_id
        try:
            answer = self.workers.put(self._worker(worker), "PutMutableChunksData", batches, _CALL_S)
        except WorkerError as error:
            raise RefusedError(error.code, str(error)) from None
        return answer.accepted_batches, answer.duplicate_batches

    # ---- How ----

    def _session(self, session_id):
        return session_id if session_id is not None else self.session_id or ""

    def _worker(self, worker):
        address = worker or (self.address if self._env is Environment.WORKER else None)
        if not address:
            raise ValueError("which worker? Only in a worker it is that one")
        return address

    def _call(self, name, /, **fields):
        return self.scheduler.call(name, **fields)

    def _change(self, name, /, **fields):
        return self._call(name, request_id=new_id(), **fields)

    def _submit(self, name, session_id, graph, graph_key, target_keys, options):
        options = options if isinstance(options, wire.GraphOptions) else wire.GraphOptions(**(options or {}))
        return self._change(
            name,
            held_s=SUBMIT_S,
            session_id=self._session(session_id),
            graph=graph,
            graph_key=graph_key,
            target_keys=target_keys,
            options=options,
        )

    def _info(self, name, session_id, graph_key, filter_fields):
        return self._call(
            name, session_id=self._session(session_id), graph_key=graph_key, filter_fields=filter_fields
        ).info

    def _wait(self, name, session_id, graph_key, timeout):
        left_s = float("inf") if timeout is None else timeout
        while True:
            held_s = min(left_s, _HELD_S)
            request = wire.SCHEDULER[name][1](session_id=self._session(session_id), graph_key=graph_key)
            set_duration(request.timeout, held_s)
            answer = self.scheduler.send(name, request, held_s=held_s)
            left_s -= held_s
            if answer.finished or left_s <= 0:
                return answer.finished, answer.info

    def _end(self, name, session_id, graph_key):
        answer = self._change(name, session_id=self._session(session_id), graph_key=graph_key)
        return wire.GRAPH_STATES.get(answer.state, str(answer.state))

    def _delete(self, name, session_id, graph_key):
        return self._change(name, session_id=self._session(session_id), graph_key=graph_key).freed_chunks

    def _metas(self, name, session_id, keys, filter_fields):
        return list(
            self._call(
                name, session_id=self._session(session_id), keys=keys, filter_fields=filter_fields
            ).metas
        )

    def _chunks_request(self, session_id, worker, chunk_keys, indexes, compression_types):
        request = wire.GetChunksDataRequest(
            session_id=self._session(session_id),
            worker_id=self._worker(worker),
            chunk_keys=chunk_keys,
            compression_types=compression.offers(compression_types),
        )
        for index in indexes or ():
            request.indexes.append(parts.message(index if isinstance(index, tuple) else (index,)))
        return request

    def _read(self, worker, name, request, chunk_keys):
        found, assemblies = [], {}
        try:
            for message in self.workers.stream(self._worker(worker), name, request, _CALL_S):
                if message.HasField("error"):
                    kind = IndexError if message.error.code == 11 else KeyError
                    raise kind(f"{message.chunk_key}: {message.error.message}")
                assembly = assemblies.setdefault(message.chunk_key, Assembly(message.chunk_key))
                if assembly.add(message):
                    found.append((message.chunk_key, assemblies.pop(message.chunk_key).finish()))
        except WorkerError as error:
            raise RefusedError(error.code, str(error)) from None
        # Answers come in any order; those of one key in that of their indexes.
        by_key = {}
        for key, value in found:
            by_key.setdefault(key, []).append(value)
        return [by_key[key].pop(0) for key in chunk_keys]


def get_context():
    """The context that is current here, or that of the default session."""
    context = _current.get()
    if context is None:
        from .session import get_default_session

        context = get_default_session().context
    return context


def scalar(value):
    """One number as a message."""
    if isinstance(value, (bool, np.bool_)):
        return wire.Scalar(boolean=bool(value))
    if isinstance(value, (int, np.integer)):
        return wire.Scalar(integer=int(value))
    if isinstance(value, str):
        return wire.Scalar(text=value)
    return wire.Scalar(fraction=float(value))


def _column_type(dtype):
    if dtype in (str, dtypes.TEXT) or np.dtype(dtype).kind in "OUT":
        return dtypes.NUMBERS[dtypes.TEXT]
    return dtypes.NUMBERS[dtypes.name_of(dtype)]


def _statuses(statuses):
    numbers = {name: number for number, name in wire.WORKER_STATUSES.items()}
    return [numbers[status.upper()] for status in statuses]
