"""Mutable tensors of the cluster in the test process: every write is kept, and a read puts them on each other."""

import itertools

import numpy as np

from tripod_mars import wire
from tripod_mars.chunk.crc32c import crc32c
from tripod_mars.dtypes import BY_NAME, BY_NUMBER
from tripod_mars.workers import WorkerError

OPEN, SEALING, SEALED = 1, 2, 3
_ABORTED, _FAILED_PRECONDITION = 10, 9


class Mutables:
    """Part of `LocalCluster`."""

    def __init__(self):
        self.mutables, self.writes, self.seen = {}, {}, set()
        self.next_id = itertools.count(1)

    def _CreateMutableTensor(self, request, answer):
        if request.name in self.mutables and not request.if_not_exist:
            self.refuse("ALREADY_EXISTS", f"mutable {request.name} exists")
        answer.created = request.name not in self.mutables
        if answer.created:
            info = wire.MutableInfo(id=next(self.next_id), epoch=1, name=request.name or "m", dtype=request.dtype, state=OPEN)
            sizes = list(request.chunk_size) or [max(one, 1) for one in request.shape]
            sizes = sizes * len(request.shape) if len(sizes) == 1 else sizes
            for extent, size in zip(request.shape, sizes):
                info.nsplits.add(extents=[min(size, extent - at) for at in range(0, extent, size)] or [0])
            for index in np.ndindex(*[len(axis.extents) for axis in info.nsplits]):
                shape = [axis.extents[part] for axis, part in zip(info.nsplits, index)]
                key = f"m{info.id}-{'.'.join(map(str, index))}"
                info.chunks.add(key=key, index=index, shape=shape, workers=self.worker_ids)
                value = getattr(request.default_value, request.default_value.WhichOneof("value"))
                dtype = BY_NAME[BY_NUMBER[request.dtype]]
                self.writes[key] = [(-1, 0, (), np.full(shape, value, dtype))]
            self.mutables[info.name] = info
        answer.info.CopyFrom(self.mutables[request.name or "m"])

    def _GetMutableTileable(self, request, answer):
        if request.name not in self.mutables:
            self.refuse("NOT_FOUND", f"no mutable {request.name}")
        answer.info.CopyFrom(self.mutables[request.name])

    def _SealMutableTileable(self, request, answer):
        if request.name not in self.mutables:
            self.refuse("NOT_FOUND", f"no mutable {request.name}")
        info = self.mutables.pop(request.name)
        timestamp = request.timestamp_ns if request.HasField("timestamp_ns") else None
        values = [self.as_of(chunk.key, timestamp) for chunk in info.chunks]
        key = f"sealed-{info.id}"
        target = {
            "key": key,
            "content": {"tensor": BY_NUMBER[info.dtype]},
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

    def put(self, address, name, requests, timeout_s):
        """Batches, as a worker takes them."""
        from mars.local import picked

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
            values = np.frombuffer(batch.slab.values, BY_NAME[BY_NUMBER[info.dtype]])
            writes = self.writes[batch.chunk_key]
            writes.append((batch.timestamp_ns, len(writes), picked(batch.slab.index), values))
            answer.accepted_batches += 1
        return answer

    def read_mutable(self, request):
        """Messages of one chunk."""
        from mars.local import messages

        chunks = request.chunks
        timestamp = request.timestamp_ns if request.HasField("timestamp_ns") else None
        for key in chunks.chunk_keys:
            yield from messages(key, self.as_of(key, timestamp), chunks.indexes[0] if chunks.indexes else None)
