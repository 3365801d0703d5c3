"""A cluster in this process, for tests: it has the interface of the calls to nodes and workers, cuts graphs by the program
that the tiling library brings along, and computes chunks as a worker does.

    cargo build -p tripod-tile --example chunks
    TRIPOD_TILE_CHUNKS=target/debug/examples/chunks python -m unittest discover -s services/python/tests
"""

import atexit
import json
import os
import pathlib
import subprocess
import threading
import traceback
import unittest

import numpy as np

from mars import images
from mars.mutables import Mutables
from tripod_mars import wire
from tripod_mars.chunk import operators
from tripod_mars.chunk.crc32c import crc32c
from tripod_mars.chunk.frame import Frame
from tripod_mars.chunk.node import Node
from tripod_mars.codec import write_npy
from tripod_mars.dtypes import BY_NUMBER, NUMBERS, name_of
from tripod_mars.errors import RefusedError
from tripod_mars.session import Session
from tripod_mars.workers import WorkerError

_BUILT = pathlib.Path(__file__).resolve().parents[4] / "target" / "debug" / "examples" / "chunks"
_CODES = {"INVALID_ARGUMENT": 3, "NOT_FOUND": 5, "ALREADY_EXISTS": 6, "FAILED_PRECONDITION": 9, "ABORTED": 10}
# Bytes of a message of data: few, so that chunks are of several.
_PART_BYTES = 100


def program():
    """Where the tiling program is. Raises `SkipTest`."""
    path = os.environ.get("TRIPOD_TILE_CHUNKS") or str(_BUILT)
    if not os.access(path, os.X_OK):
        raise unittest.SkipTest(
            "no program to cut graphs: cargo build -p tripod-tile --example chunks, or set TRIPOD_TILE_CHUNKS"
        )
    return path


class Tiler:
    """One run of the program, which takes a graph a line."""

    def __init__(self):
        self._process = subprocess.Popen([program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.close)

    def cut(self, graph):
        print(json.dumps(graph), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self):
        if self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()


class LocalCluster(Mutables):
    """Both services, as functions."""

    endpoints = ("local",)

    def __init__(self, worker_ids=("worker-a:1", "worker-b:1")):
        super().__init__()
        self.tiler = Tiler()
        self.worker_ids = worker_ids
        # Answers by the ids of requests that take effect once.
        self.answered = {}
        self.lock = threading.RLock()
        self.sessions = set()
        # Values by chunk key; chunks of each result, and its meta and count.
        self.chunks, self.results, self.metas, self.counts = {}, {}, {}, {}
        self.graphs, self.parts = {}, {}
        self.calls, self.asked = [], []

    def session(self, session_id="local", **options):
        self.sessions.add(session_id)
        return Session(self, session_id, self, patience_s=options.pop("patience_s", 5.0), **options)

    # ---- Calls to nodes ----

    def call(self, name, /, patience_s=0.0, held_s=0.0, **fields):
        return self.send(name, wire.SCHEDULER[name][1](**fields))

    def send(self, name, request, patience_s=0.0, held_s=0.0):
        with self.lock:
            self.calls.append((name, request))
            # As if it had gone over a wire.
            request = type(request).FromString(request.SerializeToString())
            request_id = getattr(request, "request_id", "")
            if request_id in self.answered:
                return self.answered[request_id]
            answer = wire.SCHEDULER[name][2]()
            getattr(self, f"_{name}", self._nothing)(request, answer)
            if request_id:
                self.answered[request_id] = answer
            return answer

    def _nothing(self, request, answer):
        """Of calls that nobody makes by themselves."""

    def close(self):
        pass

    def refuse(self, code, text):
        raise RefusedError(_CODES[code], text)

    def _CreateSession(self, request, answer):
        answer.session_id = request.session_id or f"session-{len(self.sessions)}"
        answer.created = answer.session_id not in self.sessions
        if not answer.created and not request.if_not_exist:
            self.refuse("ALREADY_EXISTS", f"session {request.session_id} exists")
        self.sessions.add(answer.session_id)

    def _HasSession(self, request, answer):
        answer.exists = request.session_id in self.sessions

    def _DeleteSession(self, request, answer):
        answer.deleted = request.session_id in self.sessions
        self.sessions.discard(request.session_id)
        self.chunks.clear()

    def _SubmitTileableGraph(self, request, answer):
        if request.session_id not in self.sessions:
            self.refuse("NOT_FOUND", f"no session {request.session_id}")
        graph = request.graph
        if request.HasField("part"):
            data = self.parts.setdefault(request.graph_key, bytearray())
            assert len(data) == request.part.offset
            data.extend(request.part.bytes)
            if not request.part.last:
                return
            graph = wire.TileableGraph.FromString(bytes(data))
        answer.created = request.graph_key not in self.graphs
        if answer.created:
            cut = self.tiler.cut(_written(graph, request.target_keys))
            if "refused" in cut:
                self.refuse("INVALID_ARGUMENT", f"graph-refused: {cut['refused']}")
            self.graphs[request.graph_key] = self.run(cut)
        answer.state = self.graphs[request.graph_key].state

    def run(self, cut):
        """Computes a chunk graph, and keeps the chunks of its targets."""
        info = wire.GraphInfo(progress=1.0, state=4)
        values = []
        for node in cut["nodes"]:
            try:
                operator = node["operator"]
                if operator["op"] == "fetch":
                    values.append(self.chunks[operator["chunk"]])
                else:
                    values.append(operators.run(Node.of(node), [values[place] for place in node["inputs"]]))
                _check(node, values[-1])
            except Exception as error:
                info.state = 5
                info.error.code, info.error.message = "EXCEPTION", str(error)
                info.error.traceback = traceback.format_exc()
                info.error.chunk_keys.append(node["key"])
                info.error.worker_id, info.error.attempt = self.worker_ids[0], 1
                return info
        keys = [node["operator"].get("chunk") or node["key"] for node in cut["nodes"]]
        for target in cut["targets"]:
            self._keep(target, [keys[place] for place in target["chunks"]], [values[place] for place in target["chunks"]])
        return info

    def _keep(self, target, keys, values):
        meta = wire.TileableMeta(found=True, key=target["key"], chunk_keys=keys, state="succeeded")
        content = target["content"]
        meta.kind = wire.KIND_TENSOR if "tensor" in content else wire.KIND_FRAME
        if "tensor" in content:
            meta.dtype = NUMBERS[content["tensor"]]
        for axis in target["splits"]:
            meta.nsplits.add(extents=[one if isinstance(one, int) else -1 for one in axis])
        self.chunks.update(zip(keys, values))
        self.results[target["key"]] = keys
        self.metas[target["key"]] = meta
        self.counts[target["key"]] = 1

    def _WaitTileableGraph(self, request, answer):
        answer.finished = True
        answer.info.CopyFrom(self.graphs[request.graph_key])

    def _StopTileableGraph(self, request, answer):
        answer.state = self.graphs[request.graph_key].state

    def _GetTileableMetas(self, request, answer):
        answer.metas.extend(self.metas.get(key, wire.TileableMeta(key=key)) for key in request.keys)

    def _GetChunkMetas(self, request, answer):
        for key in request.keys:
            meta = answer.metas.add(key=key, found=key in self.chunks)
            if meta.found:
                value = self.chunks[key]
                meta.shape.extents.extend([value.rows] if isinstance(value, Frame) else value.shape)
                meta.nbytes = getattr(value, "nbytes", 1000)
                # Also where nobody has it any more.
                for worker_id in self.worker_ids:
                    meta.workers.add(worker_id=worker_id)

    def _DecrefTileables(self, request, answer):
        for key, count in zip(request.keys, request.counts):
            if self.counts.get(key, 0) < count:
                self.refuse("NOT_FOUND", f"no tileable {key}")
        for key, count in zip(request.keys, request.counts):
            self.counts[key] -= count
            if self.counts[key] == 0:
                for one in self.results, self.metas, self.counts:
                    del one[key]
        kept = {key for keys in self.results.values() for key in keys}
        self.chunks = {key: value for key, value in self.chunks.items() if key in kept}

    def _DeleteTileableGraph(self, request, answer):
        self.graphs.pop(request.graph_key, None)

    # ---- Calls to workers ----

    def stream(self, address, name, request, timeout_s):
        if name == "GetMutableChunksData":
            yield from self.read_mutable(request)
            return
        self.asked.append((address, request))
        if request.worker_id != address:
            raise WorkerError(address, 9, f"this is {address}")
        for at, key in enumerate(request.chunk_keys):
            value = self.chunks.get(key)
            if value is None:
                yield wire.ChunkData(chunk_key=key, error={"code": 5, "message": f"no chunk {key}"})
                continue
            index = request.indexes[at] if len(request.indexes) > 1 else request.indexes[0] if request.indexes else None
            yield from messages(key, value, index)


def messages(key, value, index=None, part_bytes=_PART_BYTES):
    """Those of one chunk."""
    if isinstance(value, Frame):
        data, shape, dtype, encoding = images.write(value), [value.rows], 0, wire.ENCODING_TPCH
    else:
        value = np.asarray(value) if index is None else np.asarray(value[picked(index)])
        data, shape, encoding = write_npy(value).ljust(1, b"\0"), value.shape, wire.ENCODING_NPY
        dtype = NUMBERS[name_of(value.dtype)]
    for seq, begin in enumerate(range(0, len(data), part_bytes)):
        piece = data[begin : begin + part_bytes]
        yield wire.ChunkData(
            chunk_key=key,
            seq=seq,
            encoding=encoding,
            shape=shape,
            dtype=dtype,
            bytes=piece,
            last=begin + part_bytes >= len(data),
            crc32c=crc32c(piece),
        )


def picked(index):
    """An index as numpy has it."""
    found = []
    for dim in index.dims:
        kind = dim.WhichOneof("index")
        if kind == "slice":
            found.append(slice(*(getattr(dim.slice, of) if dim.slice.HasField(of) else None for of in ("start", "stop", "step"))))
        else:
            found.append(dim.integer if kind == "integer" else list(dim.list.integers))
    return tuple(found)


def _check(node, value):
    """What tiling said of a chunk is what it is."""
    if "tensor" in node["content"]:
        assert name_of(value.dtype) == node["content"]["tensor"], node
        for extent, is_ in zip(node["extents"], value.shape):
            assert not isinstance(extent, int) or extent == is_, (node, value.shape)


def _written(graph, target_keys):
    """A graph as lines of the program have it."""
    tileables = []
    for node in graph.nodes:
        tileable = {
            "key": node.key,
            "operator": {"op": node.op_type, **json.loads(node.payload or b"{}")},
            "inputs": list(node.inputs),
        }
        if node.data:
            tileable["data"] = list(node.data)
        if node.dtype:
            shape = [None if extent < 0 else extent for extent in node.shape.extents]
            tileable["declared"] = {"shape": shape, "dtype": BY_NUMBER[node.dtype]}
        tileables.append(tileable)
    return {"tileables": tileables, "targets": list(target_keys)}
