"""Whole objects: as they lie in an object store.

With a metadata offset of 0 an object is one encoded `Obj`. Otherwise it is ours, and all numbers are
little-endian:

    buffers, each at a multiple of 64 | pickle, protocol 5 | at the metadata offset, a multiple of 8:
    "TPYB" | u32 version 1 | u64 place of the pickle | u64 its length | u32 buffers | u32 ids
    | for each buffer u64 place, u64 length | for each id inside the object u64

A reader maps the object and hands slices of the mapping to pickle as out-of-band buffers, so numpy arrays are
the shared memory itself.
"""

import mmap
import os
import struct

from . import values
from .wire import Obj

ALIGNMENT_BYTES = 64
_MAGIC = b"TPYB"
_HEAD = struct.Struct("<4sIQQII")
_SPAN = struct.Struct("<QQ")


class Packed:
    """A value that is ready to be stored: pieces of memory and where they go. The handles in it stay alive
    with it."""

    __slots__ = ("size_bytes", "metadata_offset", "refs", "pieces")

    def __init__(self, size_bytes, metadata_offset, refs, pieces):
        self.size_bytes = size_bytes
        self.metadata_offset = metadata_offset
        self.refs = refs
        # Pairs of a place and something with a buffer, in ascending order.
        self.pieces = pieces

    def whole(self):
        """The object in one piece."""
        if len(self.pieces) == 1 and len(self.pieces[0][1]) == self.size_bytes:
            return bytes(self.pieces[0][1])
        data = bytearray(self.size_bytes)
        for place, piece in self.pieces:
            data[place : place + len(piece)] = piece
        return bytes(data)

    def write_to(self, descriptor):
        """Writes it into memory that has its size and nothing in it."""
        for place, piece in self.pieces:
            view = memoryview(piece).cast("B")
            while len(view):
                written = os.pwrite(descriptor, view, place)
                view, place = view[written:], place + written


class Filled:
    """An object that a function writes, where it is to lie: `write(memory)` fills all of it."""

    __slots__ = ("size_bytes", "metadata_offset", "_write")

    def __init__(self, size_bytes, metadata_offset, write):
        self.size_bytes = size_bytes
        self.metadata_offset = metadata_offset
        self._write = write

    def whole(self):
        data = bytearray(self.size_bytes)
        self._write(memoryview(data))
        return bytes(data)

    def write_to(self, descriptor):
        mapping = mmap.mmap(descriptor, self.size_bytes, flags=mmap.MAP_SHARED)
        memory = memoryview(mapping)
        # If this raises, what it was about may still refer to the memory, and the mapping ends with that.
        self._write(memory)
        try:
            memory.release()
            mapping.close()
        except BufferError:
            # Whoever reads the object would see what is written later.
            raise ValueError("what wrote the object keeps its memory") from None


def pack(value):
    """Serialises a value for a store. Raises what pickling raises."""
    obj, refs = Obj(), []
    if values.write_simple(obj, value, refs):
        return _pack_obj(obj, refs)
    buffers = []
    return pack_pickle(values.dumps(value, refs, buffers), buffers, refs)


def pack_pickle(data, buffers, refs):
    """An object of a pickle, its out-of-band buffers and the handles in it."""
    if buffers:
        return _pack_buffers(data, [buffer.raw() for buffer in buffers], refs)
    obj = Obj()
    values.write_pickle(obj, data, refs)
    return _pack_obj(obj, refs)


def pack_error(error):
    """What is stored in place of the results of a task that failed."""
    obj = Obj()
    values.write_error(obj, error)
    return _pack_obj(obj, [])


def unpack(view, metadata_offset, handle):
    """The value of an object. `handle(id)` makes a handle of an id inside it. Raises `TaskError` or
    `ObjectLostError` if the object stands for a failure, and `ValueError` if it is damaged or in a layout of
    others."""
    if metadata_offset == 0:
        return values.read(Obj.FromString(bytes(view)), handle)
    view = memoryview(view)
    if (
        metadata_offset + _HEAD.size > len(view)
        or bytes(view[metadata_offset : metadata_offset + 4]) != _MAGIC
    ):
        raise ValueError("the object is in a layout that this package does not know")
    _, version, place, length, spans, ids = _HEAD.unpack_from(view, metadata_offset)
    at = metadata_offset + _HEAD.size
    if version != 1 or at + spans * _SPAN.size + ids * 8 > len(view):
        raise ValueError("the object's metadata is damaged")
    buffers = []
    for _ in range(spans):
        start, size = _SPAN.unpack_from(view, at)
        buffers.append(view[start : start + size].toreadonly())
        at += _SPAN.size
    refs = [handle(objectid) for objectid in struct.unpack_from(f"<{ids}Q", view, at)]
    return values.loads(view[place : place + length], refs, buffers)


def _pack_obj(obj, refs):
    data = obj.SerializeToString()
    return Packed(len(data), 0, refs, [(0, data)])


def _pack_buffers(data, buffers, refs):
    pieces, spans, at = [], [], 0
    for buffer in buffers:
        at = _up(at, ALIGNMENT_BYTES)
        pieces.append((at, buffer))
        spans.append(_SPAN.pack(at, len(buffer)))
        at += len(buffer)
    place = at
    pieces.append((place, data))
    at = _up(at + len(data), 8)
    head = _HEAD.pack(_MAGIC, 1, place, len(data), len(spans), len(refs))
    ids = struct.pack(f"<{len(refs)}Q", *(ref.id for ref in refs))
    pieces.append((at, b"".join((head, *spans, ids))))
    return Packed(at + len(pieces[-1][1]), at, refs, pieces)


def _up(number, multiple):
    return -(-number // multiple) * multiple
