"""What a worker is told of one chunk."""

import functools
import json
import pathlib

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import dtypes

# Operators without lists are so long at most, and many chunks have the same: it is read once.
_REMEMBERED_BYTES_MOST = 512
_REMEMBERED_MOST = 1024


def _message():
    # A pool of its own, so that names meet those of no other library; workers need this message alone.
    pool = descriptor_pool.DescriptorPool()
    compiled = pathlib.Path(__file__).parent.parent / "descriptors.bin"
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("mars.v1.ChunkNode"))


ChunkNode = _message()


class Node:
    """`operator` has the attributes as `ChunkOperator` of services/tile writes them; `extents` has None where only
    execution tells. Nobody changes these: nodes with equal attributes share them."""

    __slots__ = ("name", "operator", "content", "extents", "data")

    def __init__(self, name, operator, content, extents, data=b""):
        self.name = name
        self.operator = operator
        self.content = content
        self.extents = extents
        self.data = data

    @classmethod
    def decoded(cls, encoded):
        """Of an encoded `mars.v1.ChunkNode`. Attributes that are no JSON object are left out: whoever sent them has an
        operator that is not here. Raises `ValueError` if it is none."""
        try:
            message = ChunkNode.FromString(bytes(encoded))
        except Exception as error:  # Protobuf's own class depends on how it was built.
            raise ValueError(f"the node cannot be read: {error}") from error
        payload = message.payload
        read = _remembered if len(payload) <= _REMEMBERED_BYTES_MOST else _attributes
        operator, content, extents = read(payload)
        if extents is None:
            extents = [extent if extent >= 0 else None for extent in message.shape.extents]
        if content is None and message.dtype:
            content = {"tensor": dtypes.NAMES[message.dtype]}
        return cls(message.op_type, operator, content, extents, message.data)

    @classmethod
    def of(cls, chunk, data=None):
        """Of a node of a chunk graph, as JSON; with `data` in the place of its own."""
        operator = chunk["operator"]
        extents = [_known(extent) for extent in chunk["extents"]]
        data = bytes(chunk.get("data", ())) if data is None else data
        return cls(operator["op"], operator, chunk["content"], extents, data)

    @property
    def dtype(self):
        """The type of the tensor that it is, as numpy has it."""
        return dtypes.BY_NAME[self.content["tensor"]]

    @property
    def columns(self):
        """Pairs of name and type of the frame that it is."""
        return [(column["name"], column["dtype"]) for column in self.content["frame"]]


def _attributes(payload):
    try:
        payload = json.loads(payload)
        operator = payload.get("operator", {})
        extents = payload.get("extents")
        return operator, payload.get("content"), extents and [_known(extent) for extent in extents]
    except (ValueError, AttributeError):
        return {}, None, None


_remembered = functools.lru_cache(_REMEMBERED_MOST)(_attributes)


def _known(extent):
    return extent if isinstance(extent, int) else None
