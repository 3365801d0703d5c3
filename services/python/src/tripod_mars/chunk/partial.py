"""Partial results: what only the next operator understands.

As bytes, which only these workers read:

    u32 bytes of the header | u32 zero | header: JSON, padded with spaces to a multiple of 8
    | arrays, each padded with zeros to a multiple of 8

The header is `[kind, attributes, [[type, shape], ..]]`. It is data alone, so what a store holds never becomes code.
"""

import functools
import json
import math
import struct

import numpy as np

from . import dtypes
from .frame import Column, Frame
from .text import Text

_HEAD = struct.Struct("<II")
_PAD = bytes(8)
_REMEMBERED_BYTES_MOST = 512
_REMEMBERED_MOST = 1024
_BYTES = "u8"
_DTYPES = {**dtypes.BY_NAME, _BYTES: np.dtype(np.uint8)}


class Partial:
    """Of a kind, with attributes that JSON knows, and arrays."""

    __slots__ = ("kind", "attributes", "arrays")

    def __init__(self, kind, attributes, arrays):
        self.kind = kind
        self.attributes = attributes
        self.arrays = arrays

    def check(self, kind):
        if self.kind != kind:
            raise TypeError(f"a partial result of {self.kind} where one of {kind} is expected")
        return self

    def encoded(self):
        """The bytes, as an array."""
        shapes = []
        for array in self.arrays:
            name = _BYTES if array.dtype == np.uint8 else dtypes.name_of(array.dtype)
            shapes.append((name, array.shape))
        header = json.dumps((self.kind, self.attributes, shapes), separators=(",", ":")).encode()
        header += b" " * (-len(header) % 8)
        pieces = [_HEAD.pack(len(header), 0), header]
        for (name, _), array in zip(shapes, self.arrays):
            piece = array.astype(_DTYPES[name], copy=False).tobytes()
            pieces += [piece, _PAD[: -len(piece) % 8]]
        return np.frombuffer(b"".join(pieces), np.uint8)

    @classmethod
    def decoded(cls, data):
        """Of an array of bytes; arrays are parts of it. Raises `ValueError` if it is damaged."""
        length, _ = _HEAD.unpack_from(data)
        header = data[_HEAD.size : _HEAD.size + length].tobytes()
        read = _remembered if length <= _REMEMBERED_BYTES_MOST else _read
        kind, attributes, described = read(header)
        at, arrays = _HEAD.size + length, []
        for dtype, shape, size in described:
            if size > len(data) - at:
                raise ValueError("a partial result ends too early")
            arrays.append(data[at : at + size].view(dtype).reshape(shape))
            at += size + -size % 8
        return cls(kind, attributes, arrays)


def _read(header):
    """Kind, attributes, and type, shape and bytes of each array."""
    kind, attributes, shapes = json.loads(header)
    described = []
    for name, shape in shapes:
        if any(extent < 0 for extent in shape):
            raise ValueError("an extent is negative")
        dtype = _DTYPES[name]
        described.append((dtype, tuple(shape), math.prod(shape) * dtype.itemsize))
    return kind, attributes, described


# Many partial results of one reduction have the same header; nobody changes what was read of it.
_remembered = functools.lru_cache(_REMEMBERED_MOST)(_read)


def flattened(frame):
    """A frame as attributes and arrays."""
    described, arrays = [], []
    for name, column in zip(frame.names, frame.columns):
        described.append((name, column.dtype, column.valid is not None))
        arrays += [column.values.offsets, column.values.data] if column.is_text else [column.values]
        if column.valid is not None:
            arrays.append(column.valid)
    return described, arrays


def framed(described, arrays):
    """The frame of these attributes and arrays."""
    arrays, names, columns = iter(arrays), [], []
    for name, dtype, has_valid in described:
        values = Text(next(arrays), next(arrays)) if dtype == dtypes.TEXT else next(arrays)
        names.append(name)
        columns.append(Column(dtype, values, next(arrays) if has_valid else None))
    return Frame(names, columns)
