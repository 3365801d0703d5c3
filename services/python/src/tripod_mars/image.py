"""Chunks of frames as workers send them: as stores keep them (`chunk.layout` says how), but with the description first, so
that places are counted from there."""

import struct

import numpy as np

from . import dtypes
from .chunk.crc32c import crc32c

_HEAD = struct.Struct("<4sIBBHIQ")
_BUFFER = struct.Struct("<QQII")
_COLUMN = struct.Struct("<HBBI")
_MAGIC, _VERSION, _FRAME = b"TPCH", 1, 2
_MISSING = 1
_ALIGNMENT_BYTES = 64


def read(data):
    """Columns by name: arrays, masked ones where values may be missing, and for texts arrays of objects with None. Raises
    `ValueError`."""
    try:
        return _Reader(memoryview(data)).columns()
    except struct.error:
        raise ValueError("a chunk that was cut off") from None


class _Reader:
    def __init__(self, data):
        self._data = data
        self._at = 0

    def columns(self):
        magic, version, kind, _, dims, count, rows = self._take(_HEAD)
        if (magic, version, kind, dims) != (_MAGIC, _VERSION, _FRAME, 1):
            raise ValueError("no frame, or one in a layout of a later version")
        found = {}
        for _ in range(count):
            length, number, flags, _ = self._take(_COLUMN)
            name = bytes(self._data[self._at : self._at + length]).decode()
            self._at += -(-length // 8) * 8
            if name in found:
                raise ValueError(f"column {name} twice")
            found[name] = self._column(name, dtypes.BY_NUMBER.get(number), rows, flags & _MISSING)
        return found

    def _column(self, name, dtype, rows, may_miss):
        if dtype is None:
            raise ValueError(f"column {name} is of no type that is known")
        if dtype == dtypes.TEXT:
            offsets, text = self._buffer(np.dtype("<u8"), rows + 1), self._buffer(np.dtype(np.uint8))
            valid = self._buffer(np.dtype(np.bool_), rows) if may_miss else None
            return _texts(name, offsets, text, valid)
        values = self._buffer(dtypes.BY_NAME[dtype], rows)
        if not may_miss:
            return values
        valid = self._buffer(np.dtype(np.bool_), rows)
        return values if valid.all() else np.ma.MaskedArray(values, ~valid)

    def _take(self, form):
        found = form.unpack_from(self._data, self._at)
        self._at += form.size
        return found

    def _buffer(self, dtype, count=None):
        place, size, checksum, _ = self._take(_BUFFER)
        if place % _ALIGNMENT_BYTES or place + size > len(self._data) or size % dtype.itemsize:
            raise ValueError("a buffer that is not within the chunk")
        if count is not None and size != count * dtype.itemsize:
            raise ValueError(f"a column of {count} rows has {size} bytes")
        array = np.frombuffer(self._data, dtype, size // dtype.itemsize, place) if size else np.empty(0, dtype)
        if crc32c(array) != checksum:
            raise ValueError("a buffer that is not what its checksum says")
        return array


def _texts(name, offsets, text, valid):
    if offsets[0] != 0 or offsets[-1] != len(text) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"column {name}: texts are not one after the other")
    places, text = offsets.tolist(), text.tobytes()
    found = np.empty(len(places) - 1, object)
    for row, (begin, end) in enumerate(zip(places, places[1:])):
        if valid is None or valid[row]:
            found[row] = text[begin:end].decode()
    return found
