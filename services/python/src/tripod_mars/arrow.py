"""Streams of Arrow with the columns that frames have, read without a library.

A stream is a message with the schema, messages with batches of rows, and an end. A message is `u32 0xFFFFFFFF | u32 bytes of
what follows | a flatbuffer | the body`, and a flatbuffer is tables that point at others. What is read: columns of whole
numbers of 32 and 64 bits with a sign, fractions of 32 and 64 bits, booleans, and texts; not compressed, no dictionaries.
Anything else is refused by name.
"""

import struct

import numpy as np

_CONTINUES = 0xFFFFFFFF
# Numbers of the format.
_SCHEMA, _BATCH = 1, 3
_INT, _FLOAT, _TEXT, _BOOL, _LARGE_TEXT = 2, 3, 5, 6, 20
_FRACTIONS = {1: "<f4", 2: "<f8"}
# Columns of a frame, and batches of a chunk, beyond which it is no stream of ours.
_COLUMNS_MAX, _BATCHES_MAX = 4096, 1 << 16


def read(data):
    """Columns by name: arrays, masked ones where values may be missing, and for texts arrays of objects with None. Raises
    `ValueError`."""
    try:
        return _read(memoryview(data))
    except struct.error:
        raise ValueError("a stream of Arrow that was cut off") from None


def _read(data):
    fields, batches, at = None, [], 0
    while at + 8 <= len(data):
        continues, size = struct.unpack_from("<II", data, at)
        if continues != _CONTINUES:
            raise ValueError("no message of Arrow")
        at += 8
        if size == 0:
            break
        message = _Table.root(data[at : at + size])
        at += size
        kind, header, body_bytes = message.u8(1), message.table(2), message.i64(3)
        if body_bytes < 0 or at + body_bytes > len(data):
            raise ValueError("a body that was cut off")
        body = data[at : at + body_bytes]
        at += body_bytes
        if kind == _SCHEMA and fields is None:
            fields = [_Field(field) for field in header.tables(1)]
        elif kind == _BATCH and fields is not None:
            batches.append(_columns(fields, header, body))
        else:
            raise ValueError(f"a message of kind {kind}, where none is expected")
        if len(batches) > _BATCHES_MAX:
            raise ValueError("more batches than a chunk has")
    if fields is None:
        raise ValueError("a stream without a schema")
    if not batches:
        return {field.name: field.empty() for field in fields}
    return {field.name: _joined([batch[place] for batch in batches]) for place, field in enumerate(fields)}


def _joined(parts):
    if len(parts) == 1:
        return parts[0]
    is_masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    return (np.ma if is_masked else np).concatenate(parts)


def _columns(fields, header, body):
    rows, nodes, places = header.i64(0), header.structs(1, 16), header.structs(2, 16)
    if header.table(3) is not None:
        raise ValueError("bodies that are compressed")
    buffers = iter([body[at : at + size] for at, size in (struct.unpack("<qq", place) for place in places)])
    found = []
    try:
        for field, node in zip(fields, nodes):
            length, missing = struct.unpack("<qq", node)
            if length != rows or length < 0:
                raise ValueError(f"column {field.name} has {length} rows of {rows}")
            found.append(field.column(rows, missing, buffers))
    except StopIteration:
        raise ValueError("fewer buffers than columns need") from None
    if len(found) != len(fields):
        raise ValueError("fewer columns than the schema has")
    return found


class _Field:
    """A column of the schema."""

    def __init__(self, table):
        self.name = table.text(0)
        self.kind = table.u8(2)
        kind = table.table(3)
        self.dtype = None
        if self.kind == _INT:
            bits, is_signed = kind.i32(0), bool(kind.u8(1))
            if bits not in (32, 64) or not is_signed:
                raise ValueError(f"column {self.name}: whole numbers of {bits} bits")
            self.dtype = np.dtype(f"<i{bits // 8}")
        elif self.kind == _FLOAT:
            precision = kind.i16(0)
            if precision not in _FRACTIONS:
                raise ValueError(f"column {self.name}: fractions of precision {precision}")
            self.dtype = np.dtype(_FRACTIONS[precision])
        elif self.kind == _BOOL:
            self.dtype = np.dtype(np.bool_)
        elif self.kind not in (_TEXT, _LARGE_TEXT):
            raise ValueError(f"column {self.name}: type {self.kind} of Arrow")

    def empty(self):
        return np.empty(0, object if self.dtype is None else self.dtype)

    def column(self, rows, missing, buffers):
        valid = next(buffers)
        valid = _bits(valid, rows) if missing and len(valid) else None
        if self.dtype is None:
            return self._texts(rows, valid, next(buffers), next(buffers))
        data = next(buffers)
        if self.kind == _BOOL:
            values = _bits(data, rows)
        else:
            values = np.frombuffer(data, self.dtype, rows)
        return values if valid is None else np.ma.MaskedArray(values, ~valid)

    def _texts(self, rows, valid, offsets, text):
        if rows == 0:
            return self.empty()
        offsets = np.frombuffer(offsets, "<i4" if self.kind == _TEXT else "<i8", rows + 1).tolist()
        text, found = bytes(text), np.empty(rows, object)
        if offsets[0] < 0 or offsets[-1] > len(text) or any(a > b for a, b in zip(offsets, offsets[1:])):
            raise ValueError(f"column {self.name}: offsets that are not those of its text")
        for row in range(rows):
            if valid is None or valid[row]:
                found[row] = text[offsets[row] : offsets[row + 1]].decode()
        return found


def _bits(data, count):
    if len(data) * 8 < count:
        raise ValueError("fewer bits than rows")
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little", count=count).astype(np.bool_)


class _Table:
    """A table of a flatbuffer: fields by their numbers."""

    def __init__(self, data, at):
        self._data, self._at = data, at
        self._fields = at - struct.unpack_from("<i", data, at)[0]
        if self._fields < 0:
            raise ValueError("a table whose fields are outside")
        self._size = struct.unpack_from("<H", data, self._fields)[0]

    @classmethod
    def root(cls, data):
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _place(self, field):
        entry = 4 + 2 * field
        offset = struct.unpack_from("<H", self._data, self._fields + entry)[0] if entry < self._size else 0
        return self._at + offset if offset else None

    def _number(self, field, form):
        place = self._place(field)
        return 0 if place is None else struct.unpack_from(form, self._data, place)[0]

    def u8(self, field):
        return self._number(field, "<B")

    def i16(self, field):
        return self._number(field, "<h")

    def i32(self, field):
        return self._number(field, "<i")

    def i64(self, field):
        return self._number(field, "<q")

    def _there(self, field):
        """Where a field points at."""
        place = self._place(field)
        return None if place is None else place + struct.unpack_from("<I", self._data, place)[0]

    def table(self, field):
        there = self._there(field)
        return None if there is None else _Table(self._data, there)

    def text(self, field):
        there = self._there(field)
        if there is None:
            return ""
        size = struct.unpack_from("<I", self._data, there)[0]
        return bytes(self._data[there + 4 : there + 4 + size]).decode()

    def _vector(self, field):
        there = self._there(field)
        if there is None:
            return 0, 0
        count = struct.unpack_from("<I", self._data, there)[0]
        if count > 8 * _COLUMNS_MAX:
            raise ValueError("a list longer than frames have")
        return there + 4, count

    def tables(self, field):
        begin, count = self._vector(field)
        places = range(begin, begin + 4 * count, 4)
        return [_Table(self._data, at + struct.unpack_from("<I", self._data, at)[0]) for at in places]

    def structs(self, field, size_bytes):
        begin, count = self._vector(field)
        return [bytes(self._data[at : at + size_bytes]) for at in range(begin, begin + size_bytes * count, size_bytes)]
