"""Data of the program that goes to the workers before its graph, chunk by chunk: the log of the cluster is no place for it.

A tileable that is written in place is created, under a name that says that its chunks are put as wholes; they are put to the
workers that it names, and it is sealed. Then it is like any other that was executed. Where workers keep no such chunks, the
data travels with the graph, as it does if it is little.
"""

import itertools
import logging
import math
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import compression, dtypes, wire
from .chunk import layout
from .chunk.crc32c import crc32c
from .chunk.frame import Column, Frame
from .chunk.text import Text
from .codec import write_npy
from .errors import RefusedError, TripodError
from .graph import FrameContent
from .scheduler import new_id
from .workers import WorkerError

# From here on data is put; below, it travels with the graph, and one call is made instead of four.
PUT_BYTES_LEAST = 8 << 20
# Bytes that one graph may bring.
INLINE_BYTES_MAX = 1 << 30
# Bytes of a chunk that is put, at most, and of a frame where the program says nothing.
CHUNK_BYTES_MAX = 256 << 20
FRAME_CHUNK_BYTES = 64 << 20
# Bytes of one message.
PART_BYTES = 1 << 20
# Chunks that are put at a time.
CALLS_MAX = 4
# A chunk may be refused for so long for want of room, or because its worker is away.
PATIENCE_S = 60.0
# One call may take so long, and a second more for each MiB.
_CALL_S = 30.0
_PAUSE_LEAST_S, _PAUSE_MOST_S = 0.05, 1.0
# A node holds a call that seals for so long, and then the same call goes on with it.
_SEAL_HELD_S = 60.0
_SEAL_PATIENCE_S = 600.0
# So often all is put again, when a worker lost what it had before it was sealed.
_SEALS_MAX = 3
_ALREADY_EXISTS, _ABORTED = 6, 10
# Deadline, room, epoch, damage on the way, and nobody there: another attempt may do.
_PASSING = (4, 8, 10, 14, 15)

_log = logging.getLogger("tripod_mars")


class TensorData:
    """The elements of an array, as bytes in C order. `chunks`: as a tensor is cut; None: as the cluster likes."""

    __slots__ = ("_array", "_type", "_chunks")

    def __init__(self, data, shape, type_name, chunks):
        self._array = np.frombuffer(data, dtypes.BY_NAME[type_name]).reshape(shape)
        self._type = type_name
        self._chunks = chunks

    @property
    def nbytes(self):
        return self._array.nbytes

    def inline(self, node):
        """Attributes and data of a node that brings it."""
        return node.attributes, node.data

    def definition(self):
        """The call that creates it, and its fields."""
        fields = {"shape": self._array.shape, "dtype": dtypes.NUMBERS[self._type]}
        chunks = self._chunks
        if isinstance(chunks, int):
            fields["chunk_size"] = [chunks]
        elif chunks is not None and all(isinstance(one, int) for one in chunks):
            fields["chunk_size"] = chunks
        elif chunks is not None:
            fields["nsplits"] = [wire.Extents(extents=axis) for axis in chunks]
        return "CreateMutableTensor", fields

    def chunk(self, begins, shape):
        """The encoding, the number of the type, and the bytes of what begins there."""
        piece = self._array[tuple(slice(begin, begin + extent) for begin, extent in zip(begins, shape))]
        return wire.ENCODING_NPY, dtypes.NUMBERS[self._type], write_npy(piece)

    def settle(self, node):
        """The node knows where it is."""


class FrameData:
    """Columns: their names, their types, their values, and where values are missing (None: nowhere). Texts are lists.
    `files`: what makes files of CSV of it, and the lengths of those."""

    __slots__ = ("nbytes", "_columns", "_rows", "_chunk_rows", "_files")

    def __init__(self, columns, rows, chunk_rows, nbytes, files):
        self.nbytes = nbytes
        self._columns = columns
        self._rows = rows
        most = max(1, FRAME_CHUNK_BYTES // max(1, math.ceil(nbytes / max(rows, 1))))
        self._chunk_rows = min(chunk_rows or most, most, max(rows, 1))
        self._files = files

    def inline(self, node):
        """Attributes and data of a node that brings it."""
        return self._files()

    def definition(self):
        """The call that creates it, and its fields."""
        columns = [wire.Column(name=name, dtype=dtypes.NUMBERS[dtype]) for name, dtype, _, _ in self._columns]
        return "CreateMutableDataFrame", {"rows": self._rows, "columns": columns, "chunk_rows": self._chunk_rows}

    def chunk(self, begins, shape):
        """The encoding, no type, and the bytes of the rows that begin there."""
        begin, end = begins[0], begins[0] + shape[0]
        columns = [_column(dtype, values[begin:end], missing, begin, end) for _, dtype, values, missing in self._columns]
        frame = Frame([name for name, _, _, _ in self._columns], columns)
        return wire.ENCODING_TPCH, 0, layout.image(frame)

    def settle(self, node):
        """The node knows where it is, and with that its rows."""
        node.content = FrameContent(node.content.columns, self._rows)


def _column(dtype, values, missing, begin, end):
    """As files of CSV have them: an empty text is missing, and among fractions what is missing is NaN."""
    if dtype == dtypes.TEXT:
        valid = np.fromiter(map(bool, values), np.bool_, len(values))
        return Column(dtype, Text.of(values), None if valid.all() else valid)
    valid = None if missing is None else ~missing[begin:end]
    values = values.astype(dtypes.BY_NAME[dtype])
    if valid is not None and dtype in ("f32", "f64"):
        values[~valid] = np.nan
        valid = None
    return Column(dtype, values, None if valid is None or valid.all() else valid)


def bring(session, nodes):
    """Puts the data of those nodes that bring much, unless it is there. What cannot be put travels with the graph; raises
    `ValueError` if that is too much for it."""
    for node in nodes:
        brought = node.brought
        if brought is None or brought.nbytes < PUT_BYTES_LEAST or node.placed_in(session.session_id) is not None:
            continue
        try:
            node.placed = session.puts.put(brought)
        except (TripodError, WorkerError) as error:
            if brought.nbytes > INLINE_BYTES_MAX:
                raise ValueError(
                    f"{brought.nbytes} bytes, and a graph may bring {INLINE_BYTES_MAX} at most; they were not put to the "
                    f"workers: {error}"
                ) from error
            _log.info("%d bytes travel with the graph, as they were not put to the workers: %s", brought.nbytes, error)
        else:
            brought.settle(node)


class Puts:
    """Puts data of one program into one session, one tileable after the other."""

    def __init__(self, session, compressions=()):
        self._session = session
        self._lock = threading.Lock()
        # The name of one that is sealed is free again, so one name is enough.
        self._name = f"put.{secrets.token_hex(8)}"
        self._compression, self._compress = compression.writer(compressions)

    def put(self, data):
        """Where the chunks of some data are. Raises `RefusedError`, `WorkerError` and what a call raises."""
        with self._lock:
            info = self._create(*data.definition())
            try:
                for attempt in itertools.count(1):
                    self._put_all(info, data)
                    try:
                        answer = self._seal()
                        break
                    except RefusedError as error:
                        if error.code != _ABORTED or attempt == _SEALS_MAX:
                            raise
            except BaseException:
                self._delete()
                raise
        return self._session.placed(answer.tileable_key, answer.meta)

    def _create(self, call, fields):
        for is_last in (False, True):
            try:
                return self._call(call, name=self._name, replicas=1, **fields).info
            except RefusedError as error:
                if error.code != _ALREADY_EXISTS or is_last:
                    raise
            # What an earlier one left that was interrupted.
            self._delete()

    def _seal(self):
        return self._call("SealMutableTileable", patience_s=_SEAL_PATIENCE_S, held_s=_SEAL_HELD_S, name=self._name)

    def _delete(self):
        try:
            self._call("DeleteMutableTileable", patience_s=2.0, name=self._name, if_exist=True)
        except TripodError:
            # It goes with the session, or before the next one is put.
            pass

    def _call(self, name, /, patience_s=None, held_s=0.0, **fields):
        times = {} if patience_s is None else {"patience_s": patience_s}
        scheduler, session_id = self._session.scheduler, self._session.session_id
        return scheduler.call(name, held_s=held_s, request_id=new_id(), session_id=session_id, **times, **fields)

    def _put_all(self, info, data):
        begins = [list(itertools.accumulate([0, *axis.extents]))[:-1] for axis in info.nsplits]

        def put(chunk):
            where = [axis[part] for axis, part in zip(begins, chunk.index)]
            self._put_one(chunk, *data.chunk(where, list(chunk.shape)))

        if len(info.chunks) == 1:
            put(info.chunks[0])
            return
        with ThreadPoolExecutor(min(CALLS_MAX, len(info.chunks)), "tripod-mars-put") as pool:
            calls = [pool.submit(put, chunk) for chunk in info.chunks]
            try:
                for call in calls:
                    call.result()
            except BaseException:
                for call in calls:
                    call.cancel()
                raise

    def _put_one(self, chunk, encoding, type_number, image):
        """Puts a chunk to all of its workers, each until it has it."""
        for address in chunk.workers:
            end, pause = time.monotonic() + PATIENCE_S, _PAUSE_LEAST_S
            while True:
                messages = self._messages(chunk, encoding, type_number, image)
                try:
                    timeout_s = _CALL_S + len(image) / (1 << 20)
                    self._session.workers.put(address, "PutChunksData", messages, timeout_s)
                    break
                except WorkerError as error:
                    if error.code not in _PASSING or time.monotonic() >= end:
                        raise
                time.sleep(pause)
                pause = min(2 * pause, _PAUSE_MOST_S)

    def _messages(self, chunk, encoding, type_number, image):
        image = memoryview(image)
        for seq, begin in enumerate(range(0, len(image), PART_BYTES)):
            piece = self._compress(bytes(image[begin : begin + PART_BYTES]))
            yield wire.ChunkData(
                session_id=self._session.session_id,
                chunk_key=chunk.key,
                seq=seq,
                compression=self._compression,
                encoding=encoding,
                shape=chunk.shape,
                dtype=type_number,
                bytes=piece,
                last=begin + PART_BYTES >= len(image),
                crc32c=crc32c(piece),
            )
