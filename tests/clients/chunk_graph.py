"""Chunk graphs, computed as workers of Mars compute them: each node from its bytes, each input and result as an object.

    cargo build -p tripod-tile --example chunks
"""

import contextlib
import json
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "services/python/src"))

from tripod_mars import worker
from tripod_mars.chunk import dtypes, layout
from tripod_mars.chunk.frame import Frame
from tripod_mars.chunk.node import ChunkNode


class Stored:
    """An object, and what was told of it."""

    def __init__(self, packed):
        self.memory = bytearray(packed.size_bytes)
        packed.write(memoryview(self.memory))
        self.packed = packed

    def input(self):
        return memoryview(self.memory).toreadonly(), self.packed.metadata_offset

    def value(self):
        return layout.unpack(*self.input())


def encoded(node):
    """The message for a node of a chunk graph as JSON."""
    operator, content, extents = node["operator"], node["content"], node["extents"]
    message = ChunkNode(key=node["key"], op_type=operator["op"], index=node["index"])
    message.payload = json.dumps({"operator": operator, "content": content, "extents": extents}).encode()
    message.inputs.extend(str(place) for place in node["inputs"])
    message.shape.extents.extend(extent if isinstance(extent, int) else -1 for extent in extents)
    if isinstance(content, dict) and "tensor" in content:
        message.dtype = dtypes.NUMBERS[content["tensor"]]
    message.data = bytes(node.get("data", ()))
    return message.SerializeToString()


def check(node, value):
    """Type and extents are what the graph says."""
    content = node["content"]
    if content == "partial":
        return
    if "frame" in content:
        assert isinstance(value, Frame), node
        is_ = [{"name": name, "dtype": c.dtype} for name, c in zip(value.names, value.columns, strict=True)]
        assert is_ == content["frame"], (node, is_)
        shape = (value.rows,)
    else:
        assert dtypes.name_of(value.dtype) == content["tensor"], (node, value.dtype)
        shape = value.shape
    for extent, is_ in zip(node["extents"], shape, strict=True):
        assert not isinstance(extent, int) or extent == is_, (node, shape)


def joined(grid, pieces):
    """Arrays side by side in a grid, the last axis first."""
    for axis in reversed(range(len(grid))):
        pieces = [np.concatenate(pieces[at : at + grid[axis]], axis) for at in range(0, len(pieces), grid[axis])]
    (array,) = pieces
    return array


def computed(graph):
    """The targets of a chunk graph, as wholes."""
    stored = []
    for node in graph["nodes"]:
        inputs = [stored[place].input() for place in node["inputs"]]
        stored.append(Stored(worker.compute(encoded(node), inputs)))
        check(node, stored[-1].value())
    targets = []
    for target in graph["targets"]:
        pieces = [stored[place].value() for place in target["chunks"]]
        if "frame" in target["content"]:
            targets.append(Frame.joined(pieces))
        else:
            targets.append(joined([len(parts) for parts in target["splits"]], pieces))
    return targets


def last(tileables):
    """Keys of those that nothing else is made of."""
    read = {key for tileable in tileables for key in tileable.get("inputs", ())}
    return [tileable["key"] for tileable in tileables if tileable["key"] not in read]


@contextlib.contextmanager
def tiling(program, fused=False):
    """A function that makes a chunk graph of tileables, by the example `chunks` of services/tile: all of them are targets, or
    with `fused`, so that there are chains, those that nothing else is made of."""
    command = [program, "--fused"] if fused else [program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def tile(tileables):
            keys = last(tileables) if fused else [tileable["key"] for tileable in tileables]
            sent = {"tileables": tileables, "targets": keys}
            print(json.dumps(sent), file=process.stdin, flush=True)
            graph = json.loads(process.stdout.readline())
            assert "refused" not in graph, (graph, sent)
            return graph

        yield tile
        process.stdin.close()
