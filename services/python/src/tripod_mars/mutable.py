"""Tensors that are written in place: each write goes to the workers that keep the chunks, with the time at which it counts.

A cell is, as of a time, what the write with the largest timestamp up to then put there; of equal timestamps the one that
came last, and the default where nothing was written.
"""

import itertools
import secrets
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import dtypes, parts, wire
from .codec import Assembly
from .context import scalar
from .chunk.crc32c import crc32c
from .errors import DamagedDataError, MutableError, RefusedError, UnsupportedError
from .graph import Node, TensorContent
from .reader import CALLS_MAX
from .scheduler import new_id
from .workers import WorkerError

# Bytes of one batch; a larger write to a chunk is several, along its first axis.
BATCH_BYTES_MAX = 2 << 20
# A write or a read may take this long, through a change of the tensor's workers.
PATIENCE_S = 60.0
_CALL_S = 30.0
# A node holds a call that seals for so long, and then the same call goes on with it: all chunks are written.
_SEAL_HELD_S = 60.0
_SEAL_PATIENCE_S = 600.0
_PAUSE_LEAST_S, _PAUSE_MOST_S = 0.05, 1.0
_INVALID_ARGUMENT, _NOT_FOUND, _OUT_OF_RANGE, _UNIMPLEMENTED = 3, 5, 11, 12


class Mutable:
    """What tensors and frames that are written in place have in common."""

    what = "mutable"

    def __init__(self, session, name, info):
        self._session = session
        self.name = name
        self._client_id = secrets.token_hex(16)
        self._batches = itertools.count(1)
        self._take(info)

    def _take(self, info):
        self._info = info
        self.splits = [list(axis.extents) for axis in info.nsplits]

    @property
    def state(self):
        """A word: OPEN, SEALING, SEALED, LOST or DELETED, as of the last call."""
        return wire.MUTABLE_STATES.get(self._info.state, "UNSPECIFIED")

    def delete(self, if_exist=False):
        """Deletes it, and what was written."""
        try:
            self._session.scheduler.call(
                "DeleteMutableTileable",
                request_id=new_id(),
                session_id=self._session.session_id,
                name=self.name,
                if_exist=if_exist,
            )
        except RefusedError as error:
            raise mutable_error(self.what, self.name, error) from None

    def __setitem__(self, index, value):
        self.write(index, value)

    def __getitem__(self, index):
        return self.read(index)

    def _sealed(self, timestamp, content):
        """A node of what it has become."""
        request = {} if timestamp is None else {"timestamp_ns": int(timestamp)}
        try:
            answer = self._session.scheduler.call(
                "SealMutableTileable",
                patience_s=_SEAL_PATIENCE_S,
                held_s=_SEAL_HELD_S,
                request_id=new_id(),
                session_id=self._session.session_id,
                name=self.name,
                **request,
            )
        except RefusedError as error:
            raise mutable_error(self.what, self.name, error) from None
        # It has been executed: a node of no inputs that cannot be computed elsewhere.
        node = Node("fetch", {}, (), content, name=self.name)
        node.settle(self._session.placed(answer.tileable_key, answer.meta))
        return node

    def _batch(self, place, timestamp, values, **what):
        """One batch for a chunk, with the next number."""
        return wire.MutableBatch(
            session_id=self._session.session_id,
            chunk_key=self._info.chunks[place].key,
            client_id=self._client_id,
            batch_no=next(self._batches),
            timestamp_ns=timestamp,
            crc32c=crc32c(values),
            **what,
        )

    def _extents(self, place):
        return list(self._info.chunks[place].shape)

    def _put(self, place, batch):
        """Sends a batch until it was taken. It has the same number each time, so that it is written once."""

        def once(address):
            batch.epoch = self._info.epoch
            self._session.workers.put(address, "PutMutableChunksData", [batch], _CALL_S)

        self._until_done(place, once)

    def _get(self, place, ask, timestamp):
        chunk = self._info.chunks[place]

        def once(address):
            request = wire.GetMutableChunksDataRequest(epoch=self._info.epoch)
            request.chunks.session_id = self._session.session_id
            request.chunks.worker_id = address
            request.chunks.chunk_keys.append(chunk.key)
            if ask is not None:
                request.chunks.indexes.append(ask)
            if timestamp is not None:
                request.timestamp_ns = int(timestamp)
            assembly = Assembly(chunk.key)
            for message in self._session.workers.stream(address, "GetMutableChunksData", request, _CALL_S):
                if message.HasField("error"):
                    raise WorkerError(address, message.error.code, message.error.message)
                if assembly.add(message):
                    return assembly.finish()
            raise DamagedDataError(f"chunk {chunk.key}: the answer ended before it came")

        return self._until_done(place, once)

    def _until_done(self, place, once):
        """What `once(address)` answers, for one worker of a chunk after the other, and again when those have changed."""
        end, pause = time.monotonic() + PATIENCE_S, _PAUSE_LEAST_S
        while True:
            why = "it has no worker"
            for address in self._info.chunks[place].workers:
                try:
                    return once(address)
                except WorkerError as error:
                    if error.code == _OUT_OF_RANGE:
                        raise IndexError(error.text) from None
                    if error.code in (_INVALID_ARGUMENT, _UNIMPLEMENTED):
                        raise MutableError(f"{self.what} {self.name}: {error}", self.state) from None
                    why = str(error)
                except DamagedDataError as error:
                    why = str(error)
            if time.monotonic() >= end:
                raise MutableError(f"{self.what} {self.name}: chunk {place} cannot be reached: {why}", self.state)
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_MOST_S)
            self._refresh()

    def _refresh(self):
        """Asks where it is now. Raises `MutableError` unless it is open."""
        info = get_info(self._session, self.name, self.what)
        if info.id != self._info.id:
            raise MutableError(f"{self.what} {self.name} was sealed or deleted, and another one has its name", "DELETED")
        self._take(info)
        if self.state not in ("OPEN", "SEALING"):
            raise MutableError(f"{self.what} {self.name} is {self.state}", self.state)


class MutableTensor(Mutable):
    """One mutable tensor. Handles of several programs may write at the same time."""

    what = "mutable tensor"

    def _take(self, info):
        super()._take(info)
        self.shape = tuple(sum(axis) for axis in self.splits)
        self.dtype = dtypes.BY_NAME[dtypes.BY_NUMBER[info.dtype]]

    def write(self, index, value, timestamp=None):
        """Writes a number or an array where a basic index picks (slices, ints, an ellipsis); the value is broadcast, and cast
        to the type. `timestamp` in nanoseconds; None: now. Returns when all of it is durable at its workers; after an
        error some chunks may have been written. Raises `IndexError`, `ValueError`, `MutableError`."""
        timestamp = time.time_ns() if timestamp is None else int(timestamp)
        index = basic(index, len(self.shape))
        shape, wanted = parts.pieces(self.splits, index)
        value = np.broadcast_to(np.asarray(value).astype(self.dtype), shape)

        def write(piece):
            place, ask, where = piece
            # One after the other: a chunk makes one durable at a time.
            for batch in self._cut(place, ask, np.asarray(value[where], order="C"), timestamp):
                self._put(place, batch)

        each(write, wanted)

    def read(self, index=..., timestamp=None):
        """An array, as of a time in nanoseconds; None: everything that was written. Raises `IndexError`, `MutableError`."""
        shape, wanted = parts.pieces(self.splits, basic(index, len(self.shape)))
        array = np.empty(shape, self.dtype)

        def read(piece):
            place, ask, where = piece
            array[where] = self._get(place, ask, timestamp)

        each(read, wanted)
        return array

    def seal(self, timestamp=None):
        """A tensor with the values as of a time in nanoseconds; None: everything that was written. Later writes are refused,
        and the name is free again."""
        from .tensor.core import Tensor

        return Tensor(self._sealed(timestamp, TensorContent(self.shape, self.dtype)))

    def __repr__(self):
        return f"MutableTensor({self.name!r}, shape={self.shape}, dtype={self.dtype}, {self.state})"

    def _cut(self, place, ask, cells, timestamp):
        """Batches of what goes to one chunk."""
        rows = max(1, BATCH_BYTES_MAX // max(1, cells[:1].nbytes)) if cells.ndim else 1
        count = len(cells) if cells.ndim else 1
        ask = ask if ask is not None else parts.message([None] * len(self.shape))
        for begin in range(0, count, rows):
            piece = cells[begin : begin + rows] if cells.ndim else cells
            index = ask if rows >= count else rows_of(ask, begin, len(piece), self._extents(place))
            values = piece.tobytes()
            yield self._batch(place, timestamp, values, slab={"index": index, "values": values})


def each(call, pieces):
    """Calls for each chunk, many at a time. What one raises is raised when all have ended."""
    if len(pieces) <= 1:
        for piece in pieces:
            call(piece)
        return
    with ThreadPoolExecutor(min(CALLS_MAX, len(pieces)), "tripod-mars-mutable") as pool:
        for _ in pool.map(call, pieces):
            pass


def create_mutable_tensor(session, name, shape, dtype, default_value, chunk_size, replicas, if_not_exist):
    dtype = dtypes.BY_NAME[dtypes.name_of(dtype)]
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    fields = {}
    if isinstance(chunk_size, int):
        fields["chunk_size"] = [chunk_size]
    elif chunk_size is not None and all(isinstance(one, int) for one in chunk_size):
        fields["chunk_size"] = list(chunk_size)
    elif chunk_size is not None:
        fields["nsplits"] = [wire.Extents(extents=axis) for axis in chunk_size]
    try:
        answer = session.scheduler.call(
            "CreateMutableTensor",
            request_id=new_id(),
            session_id=session.session_id,
            name=name or "",
            shape=shape,
            dtype=dtypes.NUMBERS[dtypes.name_of(dtype)],
            default_value=scalar(default_value),
            replicas=replicas,
            if_not_exist=if_not_exist,
            **fields,
        )
    except RefusedError as error:
        raise mutable_error("mutable tensor", name, error) from None
    return MutableTensor(session, answer.info.name, answer.info)


def get_mutable_tensor(session, name):
    info = get_info(session, name, "mutable tensor")
    if info.columns:
        raise MutableError(f"mutable tensor {name}: it is a frame")
    return MutableTensor(session, name, info)


def get_info(session, name, what):
    try:
        return session.scheduler.call("GetMutableTileable", session_id=session.session_id, name=name).info
    except RefusedError as error:
        raise mutable_error(what, name, error) from None


def mutable_error(what, name, error):
    state = "DELETED" if error.code == _NOT_FOUND else ""
    return MutableError(f"{what} {name}: {error}", state)


def basic(index, dims):
    """A slice or an int for each axis. Raises `UnsupportedError`, `IndexError`."""
    index = index if isinstance(index, tuple) else (index,)
    at = [place for place, one in enumerate(index) if one is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if len(index) - len(at) > dims:
        raise IndexError(f"too many indices for array: array is {dims}-dimensional, but {len(index) - len(at)} were indexed")
    if at:
        missing = dims - (len(index) - 1)
        index = index[: at[0]] + (slice(None),) * missing + index[at[0] + 1 :]
    index += (slice(None),) * (dims - len(index))
    return tuple(_one(one) for one in index)


def _one(index):
    if isinstance(index, slice):
        return index
    if isinstance(index, (bool, np.bool_)) or not hasattr(index, "__index__"):
        raise UnsupportedError(f"{index!r} among the indexes of a mutable tensor, which takes slices and whole numbers")
    return int(index.__index__())


def rows_of(ask, begin, count, extents):
    """The index of some of the rows of what an index picks: of the first axis that it does not drop."""
    found = wire.Index()
    found.CopyFrom(ask)
    axis = next(at for at, dim in enumerate(found.dims) if dim.WhichOneof("index") == "slice")
    one = found.dims[axis].slice
    whole = slice(*(getattr(one, of) if one.HasField(of) else None for of in ("start", "stop", "step")))
    start, step, _ = parts.resolve(whole, extents[axis])
    first, last = start + begin * step, start + (begin + count - 1) * step
    stop = last + (1 if step > 0 else -1)
    one.Clear()
    one.start, one.step = first, step
    if stop >= 0:
        one.stop = stop
    found.dims[axis].slice.SetInParent()
    return found
