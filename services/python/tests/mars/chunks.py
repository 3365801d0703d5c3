"""Nodes for tests, computed from their bytes as a worker does it, each input and result as an object."""

import json

import numpy as np

from tripod_mars import worker
from tripod_mars.chunk import dtypes, layout
from tripod_mars.chunk.frame import Column, Frame
from tripod_mars.chunk.node import ChunkNode
from tripod_mars.chunk.text import Text


def stored(value):
    """A chunk as it lies in a store: memory and metadata offset."""
    packed = layout.pack(np.asarray(value) if isinstance(value, np.generic) else value)
    memory = bytearray(b"\xaa" * packed.size_bytes)
    packed.write(memoryview(memory))
    return memoryview(memory).toreadonly(), packed.metadata_offset


def through(value):
    """What comes out of a store."""
    return layout.unpack(*stored(value))


def encoded(op, content, extents=(), data=b"", **attributes):
    """A node's bytes, as nodes of the cluster write them. `content` is the name of a type, `partial`, or a list of pairs of
    name and type: a frame."""
    message = ChunkNode(key="k", op_type=op, data=data)
    message.shape.extents.extend(extent if isinstance(extent, int) else -1 for extent in extents)
    payload = {"operator": {"op": op, **attributes}}
    if isinstance(content, str) and content in dtypes.BY_NAME:
        message.dtype = dtypes.NUMBERS[content]
    else:
        payload["content"] = described(content)
    message.payload = json.dumps(payload).encode()
    return message.SerializeToString()


def described(content):
    if content == "partial":
        return content
    if isinstance(content, str):
        return {"tensor": content}
    return {"frame": [{"name": name, "dtype": dtype} for name, dtype in content]}


def run(op, content, inputs=(), **attributes):
    """The chunk that a node makes of its inputs."""
    argument = encoded(op, content, **attributes)
    packed = worker.compute(argument, [stored(one) for one in inputs])
    memory = bytearray(packed.size_bytes)
    packed.write(memoryview(memory))
    return layout.unpack(memory, packed.metadata_offset)


def tensor(test, op, wanted, inputs=(), **attributes):
    """Runs a node, and compares with what numpy has, to the bit."""
    wanted = np.asarray(wanted)
    is_ = run(op, dtypes.name_of(wanted.dtype), inputs, **attributes)
    test.assertEqual((wanted.dtype, wanted.shape), (is_.dtype, is_.shape))
    np.testing.assert_array_equal(is_, wanted)


def column(dtype, values):
    """None is missing."""
    valid = np.array([value is not None for value in values], np.bool_)
    if dtype == "text":
        some = Text.of(["" if value is None else value for value in values])
    else:
        some = np.array([0 if value is None else value for value in values], dtypes.BY_NAME[dtype])
    return Column(dtype, some, None if valid.all() else valid)


def frame(**columns):
    """Of pairs of type and values, by name."""
    return Frame(list(columns), [column(*pair) for pair in columns.values()])


def listed(column):
    """Values of a column; None is missing."""
    values = [v.decode() for v in column.values.values()] if column.is_text else column.values.tolist()
    missing = column.missing()
    return values if missing is None else [None if gone else v for v, gone in zip(values, missing.tolist())]


def table(frame):
    return {name: listed(column) for name, column in zip(frame.names, frame.columns)}
