"""Streams of Arrow, as a worker writes frames: flatbuffers by hand, parents before their children."""

import struct

import numpy as np


class Table:
    """Fields by number: pairs of a form of `struct` and a number, or a `Table`, a text, a list of tables or `Structs`."""

    def __init__(self, **fields):
        self.fields = {int(name[1:]): value for name, value in fields.items()}


class Structs:
    def __init__(self, rows):
        self.rows = rows


class _Writer:
    def __init__(self):
        self.data = bytearray(4)

    def root(self, table):
        struct.pack_into("<I", self.data, 0, self.table(table))
        self.data.extend(bytes(-len(self.data) % 8))
        return bytes(self.data)

    def align(self, size, ahead=0):
        self.data.extend(bytes(-(len(self.data) + ahead) % size))

    def table(self, table):
        count = max(table.fields, default=-1) + 1
        self.align(8)
        vtable = len(self.data)
        self.data.extend(bytes(4 + 2 * count))
        self.align(8)
        at, children = len(self.data), []
        self.data.extend(struct.pack("<i", at - vtable))
        for number, value in table.fields.items():
            form, content = value if isinstance(value, tuple) else ("<I", 0)
            self.align(struct.calcsize(form))
            struct.pack_into("<H", self.data, vtable + 4 + 2 * number, len(self.data) - at)
            if not isinstance(value, tuple):
                children.append((len(self.data), value))
            self.data.extend(struct.pack(form, content))
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * count, len(self.data) - at)
        for place, child in children:
            struct.pack_into("<I", self.data, place, self.child(child) - place)
        return at

    def child(self, value):
        if isinstance(value, Table):
            return self.table(value)
        if isinstance(value, str):
            self.align(4)
            at, text = len(self.data), value.encode()
            self.data.extend(struct.pack("<I", len(text)) + text + b"\0")
            return at
        if isinstance(value, Structs):
            self.align(8, 4)
            at = len(self.data)
            self.data.extend(struct.pack("<I", len(value.rows)))
            for row in value.rows:
                self.data.extend(struct.pack("<qq", *row))
            return at
        self.align(4)
        at = len(self.data)
        self.data.extend(struct.pack("<I", len(value)) + bytes(4 * len(value)))
        for number, one in enumerate(value):
            place = at + 4 + 4 * number
            struct.pack_into("<I", self.data, place, self.child(one) - place)
        return at


def _message(kind, header, body=b""):
    # Version 5 of the format is number 4.
    flat = _Writer().root(Table(_0=("<h", 4), _1=("<B", kind), _2=header, _3=("<q", len(body))))
    return struct.pack("<II", 0xFFFFFFFF, len(flat)) + flat + body


def _field(name, values):
    if values.dtype == object:
        kind, table = 20, Table()
    elif values.dtype.kind == "i":
        kind, table = 2, Table(_0=("<i", values.dtype.itemsize * 8), _1=("<B", 1))
    elif values.dtype.kind == "f":
        kind, table = 3, Table(_0=("<h", {4: 1, 8: 2}[values.dtype.itemsize]))
    else:
        kind, table = 6, Table()
    return Table(_0=name, _1=("<B", 1), _2=("<B", kind), _3=table, _5=[])


def _bits(values):
    return np.packbits(np.asarray(values, np.uint8), bitorder="little").tobytes()


def write(columns):
    """A stream of columns by name: arrays, masked arrays, and of texts arrays of objects with None."""
    body, places, nodes = bytearray(), [], []

    def add(data):
        places.append((len(body), len(data)))
        body.extend(data + bytes(-len(data) % 8))

    rows = 0
    for values in columns.values():
        rows = len(values)
        if values.dtype == object:
            missing = np.array([value is None for value in values], bool)
        else:
            missing = np.ma.getmaskarray(values)
        nodes.append((rows, int(missing.sum())))
        add(_bits(~missing) if missing.any() else b"")
        if values.dtype == object:
            texts = [(value or "").encode() for value in values]
            add(np.cumsum([0, *map(len, texts)]).astype("<i8").tobytes())
            add(b"".join(texts))
        elif values.dtype.kind == "b":
            add(_bits(np.ma.getdata(values)))
        else:
            add(np.ma.getdata(values).tobytes())
    schema = Table(_1=[_field(name, values) for name, values in columns.items()])
    batch = Table(_0=("<q", rows), _1=Structs(nodes), _2=Structs(places))
    return _message(1, schema) + _message(3, batch, bytes(body)) + struct.pack("<II", 0xFFFFFFFF, 0)
