"""Chunks as objects of a store, little-endian. The object's metadata offset, a multiple of 8, points at

    "TPCH" | u32 version 1 | u8 kind (1 tensor, 2 frame, 3 partial) | u8 type of elements (0 for frames and partials)
    | u16 dimensions | u32 columns | dimensions x u64 extents | parts

A buffer is `u64 place | u64 bytes | u32 CRC-32C | u32 zero`, its place a multiple of 64. A tensor has one, in C order. A
frame has one dimension, its rows, and for each column

    u16 bytes of the name | u8 type | u8 flags (1: values may be missing) | u32 zero | name, zero-padded to a multiple of 8
    | buffer of values; of texts u64 offsets, one more than rows | texts only: buffer of UTF-8 | with the flag: buffer of u8

A partial has one buffer (`partial`). Arrays are views of the object, never copies, and are read-only; checksums are
looked at whenever an object is read.
"""

import functools
import struct

import numpy as np

from . import dtypes
from .crc32c import PLAIN_BYTES_MOST, crc32c
from .frame import Column, Frame
from .partial import Partial
from .text import Text

ALIGNMENT_BYTES = 64
# As tiling has them, in services/tile.
DIMS_MOST = 32
COLUMNS_MOST = 4096
TENSOR, FRAME, PARTIAL = 1, 2, 3
_MAGIC = b"TPCH"
_VERSION = 1
_HEAD = struct.Struct("<4sIBBHI")
_BUFFER = struct.Struct("<QQII")
_COLUMN = struct.Struct("<HBBI")
_ROWS = struct.Struct("<Q")
_MISSING = 1
_OFFSET = np.dtype("<u8")
_BYTE = np.dtype(np.uint8)
_TRUTH = np.dtype(np.bool_)


class DamagedChunkError(ValueError):
    """An object is no chunk, or not as it was written."""


class Packed:
    """A chunk that is ready to be written. `shape`, `element_type` and `data_bytes` are what is told of it."""

    __slots__ = ("size_bytes", "metadata_offset", "shape", "element_type", "data_bytes", "_pieces")

    def __init__(self, size_bytes, metadata_offset, shape, element_type, data_bytes, pieces):
        self.size_bytes = size_bytes
        self.metadata_offset = metadata_offset
        self.shape = shape
        self.element_type = element_type
        self.data_bytes = data_bytes
        # In their order, without gaps.
        self._pieces = pieces

    def write(self, view):
        """Writes it into memory of its size."""
        at = 0
        for piece in self._pieces:
            end = at + len(piece)
            view[at:end] = piece
            at = end


def pack(value):
    """An array, a `Frame` or a `Partial`. Raises `TypeError` for a type that no chunk has."""
    if isinstance(value, np.ndarray):
        return _pack_tensor(value)
    if isinstance(value, Frame):
        return _pack_frame(value)
    buffer = value.encoded()
    head = _HEAD.pack(_MAGIC, _VERSION, PARTIAL, 0, 0, 0)
    return _pack_one(buffer, head + _BUFFER.pack(0, len(buffer), crc32c(buffer), 0), (), 0)


def unpack(view, metadata_offset):
    """What `pack` was given. Raises `DamagedChunkError`."""
    if metadata_offset == 0 and bytes(view[:4]) != _MAGIC:
        raise DamagedChunkError("the object is no chunk, but a value")
    try:
        magic, version, kind, number, dims, columns = _HEAD.unpack_from(view, metadata_offset)
        if magic != _MAGIC or version != _VERSION or dims > DIMS_MOST or columns > COLUMNS_MOST:
            raise DamagedChunkError("the object is no chunk, or in a layout of a later version")
        if kind == TENSOR:
            return _unpack_tensor(view, metadata_offset, dtypes.NAMES.get(number), dims)
        if kind == FRAME and dims == 1:
            return _unpack_frame(view, metadata_offset, columns)
        if kind == PARTIAL:
            return Partial.decoded(_buffer(view, _BYTE, *_BUFFER.unpack_from(view, metadata_offset + _HEAD.size)))
    except DamagedChunkError:
        raise
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise DamagedChunkError(f"the object is damaged: {error}") from error
    raise DamagedChunkError(f"the object is of no kind that is known: {kind}")


@functools.lru_cache(maxsize=None)
def _tensor_metadata(dims):
    """Head, extents and buffer of a tensor."""
    return struct.Struct(f"<4sIBBHI{dims}QQQII")


def _pack_tensor(array):
    name = dtypes.name_of(array.dtype)
    shape = array.shape
    number, dims = dtypes.NUMBERS[name], len(shape)
    if dims > DIMS_MOST:
        raise ValueError(f"a tensor of {dims} axes; a chunk has {DIMS_MOST} at most")
    flat = _flat(array, dtypes.BY_NAME[name])
    checksum = crc32c(flat)
    metadata = _tensor_metadata(dims).pack(
        _MAGIC, _VERSION, TENSOR, number, dims, 0, *shape, 0, len(flat), checksum, 0
    )
    return _pack_one(flat, metadata, shape, number)


def _pack_one(buffer, metadata, shape, element_type):
    """An object of one buffer."""
    size = len(buffer)
    offset = _metadata_offset(size)
    tail = bytes(offset - size) + metadata
    return Packed(size + len(tail), offset, shape, element_type, size, [buffer, tail])


def _metadata_offset(end):
    """Behind buffers that end there; never 0, which values that are no chunks have."""
    return max(8, _up(end, 8))


def image(frame):
    """A frame as it is sent, its description first: an object whose metadata offset is 0."""
    described = _HEAD.size + _ROWS.size
    for name, column in zip(frame.names, frame.columns):
        buffers = 1 + column.is_text + (column.valid is not None)
        described += _COLUMN.size + _up(len(name.encode()), 8) + buffers * _BUFFER.size
    before = _up(described, ALIGNMENT_BYTES)
    metadata, pieces, _, _ = _frame_parts(frame, before)
    return b"".join([*metadata, bytes(before - described), *pieces])


def _pack_frame(frame):
    metadata, pieces, at, data_bytes = _frame_parts(frame, 0)
    offset = _metadata_offset(at)
    tail = bytes(offset - at) + b"".join(metadata)
    pieces.append(tail)
    return Packed(at + len(tail), offset, (frame.rows,), 0, data_bytes, pieces)


def _frame_parts(frame, before):
    """The description of a frame and its buffers, which begin at `before`; where they end, counted from there, and how many
    bytes they are."""
    pieces, at, data_bytes = [], 0, 0
    metadata = [_HEAD.pack(_MAGIC, _VERSION, FRAME, 0, 1, len(frame.columns)), _ROWS.pack(frame.rows)]

    def add(array, dtype):
        nonlocal at, data_bytes
        flat = _flat(array, dtype)
        place = _up(at, ALIGNMENT_BYTES)
        pieces.extend((bytes(place - at), flat))
        metadata.append(_BUFFER.pack(before + place, len(flat), crc32c(flat), 0))
        at = place + len(flat)
        data_bytes += len(flat)

    for name, column in zip(frame.names, frame.columns):
        name = name.encode()
        flags = 0 if column.valid is None else _MISSING
        metadata.append(_COLUMN.pack(len(name), dtypes.NUMBERS[column.dtype], flags, 0))
        metadata.append(name + bytes(-len(name) % 8))
        if column.is_text:
            add(column.values.offsets, _OFFSET)
            add(column.values.data, _BYTE)
        else:
            add(column.values, dtypes.BY_NAME[column.dtype])
        if flags:
            add(column.valid, _TRUTH)
    return metadata, pieces, at, data_bytes


def _flat(array, dtype):
    """Its elements in C order, as bytes or an array of those."""
    if array.nbytes <= PLAIN_BYTES_MOST:
        return array.astype(dtype, copy=False).tobytes()
    return np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8)


def _unpack_tensor(view, metadata_offset, name, dims):
    dtype = dtypes.BY_NAME[name]
    fields = _tensor_metadata(dims).unpack_from(view, metadata_offset)
    shape = fields[6 : 6 + dims]
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    array = _buffer(view, dtype, *fields[6 + dims :])
    if array.nbytes != size:
        raise DamagedChunkError(f"a tensor of {shape} has {array.nbytes} bytes")
    return array if dims == 1 else array.reshape(shape)


def _unpack_frame(view, metadata_offset, count):
    at = metadata_offset + _HEAD.size
    (rows,) = _ROWS.unpack_from(view, at)
    at += _ROWS.size
    names, columns = [], []

    def take(dtype, elements):
        nonlocal at
        array = _buffer(view, dtype, *_BUFFER.unpack_from(view, at))
        at += _BUFFER.size
        if elements is not None and len(array) != elements:
            raise DamagedChunkError(f"a column of {rows} rows has {len(array)} values")
        return array

    for _ in range(count):
        length, number, flags, _ = _COLUMN.unpack_from(view, at)
        at += _COLUMN.size
        names.append(bytes(view[at : at + length]).decode())
        at += _up(length, 8)
        name = dtypes.NAMES[number]
        if name == dtypes.TEXT:
            values = _text(take(_OFFSET, rows + 1).view(np.int64), take(_BYTE, None))
        else:
            values = take(dtypes.BY_NAME[name], rows)
        columns.append(Column(name, values, take(_TRUTH, rows) if flags & _MISSING else None))
    return Frame(names, columns)


def _text(offsets, data):
    if offsets[0] != 0 or offsets[-1] != len(data) or (offsets[1:] < offsets[:-1]).any():
        raise DamagedChunkError("texts are not one after the other")
    return Text(offsets, data)


def _buffer(view, dtype, place, size, checksum, _):
    """The elements of a buffer, as an array that nobody writes."""
    if place % ALIGNMENT_BYTES or place + size > len(view) or size % dtype.itemsize:
        raise DamagedChunkError("a buffer is not within the object")
    array = np.frombuffer(view, dtype, size // dtype.itemsize, place) if size else np.empty(0, dtype)
    array.flags.writeable = False
    if crc32c(array) != checksum:
        raise DamagedChunkError("the checksum of a buffer is not that of its bytes")
    return array


def _up(number, multiple):
    return -(-number // multiple) * multiple
