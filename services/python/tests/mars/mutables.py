"""Mutable tensors of the cluster in the test process: every write is kept, and a read puts them on each other."""

import itertools

import numpy as np

from mars import images
from tripod_mars import codec, compression, wire
from tripod_mars.chunk import layout
from tripod_mars.chunk.crc32c import crc32c
from tripod_mars.chunk.frame import Column, Frame
from tripod_mars.chunk.text import Text
from tripod_mars.dtypes import BY_NAME, BY_NUMBER
from tripod_mars.workers import WorkerError

OPEN, SEALING, SEALED = 1, 2, 3
_ABORTED, _FAILED_PRECONDITION = 10, 9


class Mutables:
    """Part of `LocalCluster`."""

    def __init__(self):
        self.mutables, self.writes, self.seen = {}, {}, set()
        self.next_id = itertools.count(1)
        # Also those that are sealed.
        self.frames = {}
        # Chunks that were put, to whom, and how that is refused.
        self.put_chunks, self.uploads, self.no_puts = {}, [], None

    def _CreateMutableTensor(self, request, answer):
        if request.name in self.mutables and not request.if_not_exist:
            self.refuse("ALREADY_EXISTS", f"mutable {request.name} exists")
        answer.created = request.name not in self.mutables
        if answer.created:
            info = wire.MutableInfo(id=next(self.next_id), epoch=1, name=request.name or "m", dtype=request.dtype, state=OPEN)
            sizes = list(request.chunk_size) or [max(one, 1) for one in request.shape]
            sizes = sizes * len(request.shape) if len(sizes) == 1 else sizes
            info.nsplits.extend(request.nsplits)
            for extent, size in zip(request.shape, sizes if not request.nsplits else ()):
                info.nsplits.add(extents=[min(size, extent - at) for at in range(0, extent, size)] or [0])
            for index in np.ndindex(*[len(axis.extents) for axis in info.nsplits]):
                shape = [axis.extents[part] for axis, part in zip(info.nsplits, index)]
                key = f"m{info.id}-{'.'.join(map(str, index))}"
                info.chunks.add(key=key, index=index, shape=shape, workers=self.worker_ids)
                kind = request.default_value.WhichOneof("value")
                value = getattr(request.default_value, kind) if kind else 0
                dtype = BY_NAME[BY_NUMBER[request.dtype]]
                self.writes[key] = [(-1, 0, (), np.full(shape, value, dtype))]
            self.mutables[info.name] = info
        answer.info.CopyFrom(self.mutables[request.name or "m"])

    def _CreateMutableDataFrame(self, request, answer):
        if request.name in self.mutables and not request.if_not_exist:
            self.refuse("ALREADY_EXISTS", f"mutable {request.name} exists")
        answer.created = request.name not in self.mutables
        if not answer.created:
            answer.info.CopyFrom(self.mutables[request.name])
            return
        info = wire.MutableInfo(id=next(self.next_id), epoch=1, name=request.name, columns=request.columns, state=OPEN)
        info.default_values.extend(request.default_values)
        size = request.chunk_rows or max(request.rows, 1)
        info.nsplits.add(extents=[min(size, request.rows - at) for at in range(0, request.rows, size)] or [0])
        for place, rows in enumerate(info.nsplits[0].extents):
            info.chunks.add(key=f"m{info.id}-{place}", index=[place], shape=[rows], workers=self.worker_ids)
        self.mutables[info.name] = info
        self.frames[info.id] = info
        answer.info.CopyFrom(info)

    def _GetMutableTileable(self, request, answer):
        if request.name not in self.mutables:
            self.refuse("NOT_FOUND", f"no mutable {request.name}")
        answer.info.CopyFrom(self.mutables[request.name])

    def _SealMutableTileable(self, request, answer):
        if request.name not in self.mutables:
            self.refuse("NOT_FOUND", f"no mutable {request.name}")
        info = self.mutables.pop(request.name)
        timestamp = request.timestamp_ns if request.HasField("timestamp_ns") else None
        if info.name.startswith("put."):
            if any(chunk.key not in self.put_chunks for chunk in info.chunks):
                # The next epoch.
                self.mutables[info.name] = info
                self.refuse("ABORTED", "a chunk was not put")
            values = [self.put_chunks.pop(chunk.key) for chunk in info.chunks]
        else:
            read = self.frame_as_of if info.columns else self.as_of
            values = [read(chunk.key, timestamp) for chunk in info.chunks]
            if info.columns:
                values = [layout.unpack(memoryview(images.write(value)), 0) for value in values]
        key = f"sealed-{info.id}"
        frame = [{"name": column.name, "dtype": BY_NUMBER[column.dtype]} for column in info.columns]
        target = {
            "key": key,
            "content": {"frame": frame} if frame else {"tensor": BY_NUMBER[info.dtype]},
            "splits": [list(axis.extents) for axis in info.nsplits],
        }
        self._keep(target, [chunk.key for chunk in info.chunks], values)
        answer.tileable_key = key
        answer.meta.CopyFrom(self.metas[key])

    def _DeleteMutableTileable(self, request, answer):
        answer.deleted = self.mutables.pop(request.name, None) is not None
        if not answer.deleted and not request.if_exist:
            self.refuse("NOT_FOUND", f"no mutable {request.name}")

    def as_of(self, key, timestamp):
        """The values of a chunk at a time."""
        (_, _, _, values), *writes = self.writes[key]
        values = values.copy()
        for at, _, index, piece in sorted(writes, key=lambda write: write[:2]):
            if timestamp is None or at <= timestamp:
                values[index] = piece.reshape(values[index].shape)
        return values

    def frame_as_of(self, key, timestamp):
        """The same of a chunk of a frame."""
        info = next(one for one in self.frames.values() if any(chunk.key == key for chunk in one.chunks))
        (rows,) = next(chunk.shape for chunk in info.chunks if chunk.key == key)
        cells = {}
        for column, default in zip(info.columns, info.default_values):
            value = getattr(default, default.WhichOneof("value"))
            cells[column.name] = [value] * rows, [True] * rows
        for at, _, index, frame in sorted(self.writes.get(key, ()), key=lambda write: write[:2]):
            if timestamp is not None and at > timestamp:
                continue
            for name, column in zip(frame.names, frame.columns):
                texts = column.values.values() if column.is_text else column.values.tolist()
                for row, place in enumerate(np.arange(rows)[index].tolist()):
                    cells[name][0][place] = texts[row].decode() if column.is_text else texts[row]
                    cells[name][1][place] = column.valid is None or bool(column.valid[row])
        columns = []
        for column in info.columns:
            values, valid = cells[column.name]
            dtype = BY_NUMBER[column.dtype]
            values = Text.of(values) if dtype == "text" else np.array(values, BY_NAME[dtype])
            columns.append(Column(dtype, values, None if all(valid) else np.array(valid)))
        return Frame([column.name for column in info.columns], columns)

    def put(self, address, name, requests, timeout_s):
        """Batches, as a worker takes them."""
        from mars.local import picked

        if name == "PutChunksData":
            return self.put_chunks_data(address, requests)
        answer = wire.PutMutableChunksDataResponse()
        for batch in requests:
            batch = wire.MutableBatch.FromString(batch.SerializeToString())
            info = next((one for one in self.mutables.values() if any(c.key == batch.chunk_key for c in one.chunks)), None)
            if info is None:
                raise WorkerError(address, _FAILED_PRECONDITION, "not mine")
            if batch.epoch != info.epoch:
                raise WorkerError(address, _ABORTED, f"epoch {info.epoch}")
            assert crc32c(batch.slab.values) == batch.crc32c
            if (batch.client_id, batch.batch_no) in self.seen:
                answer.duplicate_batches += 1
                continue
            self.seen.add((batch.client_id, batch.batch_no))
            if info.columns:
                frame = layout.unpack(memoryview(batch.slab.values), 0)
                writes = self.writes.setdefault(batch.chunk_key, [])
                writes.append((batch.timestamp_ns, len(writes), picked(batch.slab.index), frame))
                answer.accepted_batches += 1
                continue
            values = np.frombuffer(batch.slab.values, BY_NAME[BY_NUMBER[info.dtype]])
            writes = self.writes[batch.chunk_key]
            writes.append((batch.timestamp_ns, len(writes), picked(batch.slab.index), values))
            answer.accepted_batches += 1
        return answer

    def put_chunks_data(self, address, requests):
        """Whole chunks, as a worker takes them."""
        answer, parts = wire.PutChunksDataResponse(), []
        self.uploads.append(address)
        if self.no_puts is not None:
            raise WorkerError(address, *self.no_puts)
        for message in requests:
            message = wire.ChunkData.FromString(message.SerializeToString())
            info = next((one for one in self.mutables.values() if any(c.key == message.chunk_key for c in one.chunks)), None)
            if info is None or not info.name.startswith("put."):
                raise WorkerError(address, _FAILED_PRECONDITION, "not mine")
            assert crc32c(message.bytes) == message.crc32c and message.seq == len(parts)
            parts.append(compression.read(message.compression, message.bytes))
            if message.last:
                self.put_chunks[message.chunk_key] = _value(message, b"".join(parts), info)
                answer.stored.append(message.chunk_key)
                parts = []
        assert not parts
        return answer

    def read_mutable(self, request):
        """Messages of one chunk."""
        from mars.local import messages, picked

        chunks = request.chunks
        timestamp = request.timestamp_ns if request.HasField("timestamp_ns") else None
        for key in chunks.chunk_keys:
            if any(chunk.key == key for info in self.frames.values() for chunk in info.chunks):
                frame = self.frame_as_of(key, timestamp)
                if chunks.indexes:
                    frame = frame.take(np.arange(frame.rows)[picked(chunks.indexes[0])])
                yield from messages(key, frame)
                continue
            yield from messages(key, self.as_of(key, timestamp), chunks.indexes[0] if chunks.indexes else None)


def _value(message, data, info):
    """A chunk that was put, as operators have it."""
    if message.encoding == wire.ENCODING_NPY:
        array = codec.npy(data)
        assert array.shape == tuple(message.shape) and array.dtype == BY_NAME[BY_NUMBER[info.dtype]]
        return array
    frame = layout.unpack(memoryview(data), 0)
    columns = [(name, column.dtype) for name, column in zip(frame.names, frame.columns)]
    assert columns == [(column.name, BY_NUMBER[column.dtype]) for column in info.columns]
    return frame
