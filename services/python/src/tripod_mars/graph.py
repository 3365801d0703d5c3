"""What is to be computed: nodes, each of which knows its operator and its inputs, and graphs of them as they are sent.

A node never changes what it is. When it has been executed it forgets its inputs and is where its chunks are, so that a loop
of many executions holds no more than its last one; in later graphs it is a `fetch` of those chunks.
"""

import itertools
import json
import os
import secrets
import threading

import numpy as np

from . import dtypes, place, wire
from .errors import SessionError

_lock = threading.Lock()
_count = itertools.count()
_prefix = secrets.token_hex(8)


def _renew():
    """A process that was forked makes keys of its own."""
    global _lock, _count, _prefix
    _lock, _count, _prefix = threading.Lock(), itertools.count(), secrets.token_hex(8)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def new_key():
    """A key that no other process and no other call has."""
    with _lock:
        return f"t{_prefix}-{next(_count)}"


class TensorContent:
    """Elements of a type; an extent that only execution tells is None."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape, dtype):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)

    @property
    def dims(self):
        return len(self.shape)

    def written(self):
        return {"tensor": dtypes.name_of(self.dtype)}

    def __str__(self):
        shape = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"{self.dtype} [{shape}]"


class FrameContent:
    """Columns, as pairs of a name and the name of a type. Rows are None if only execution tells how many."""

    __slots__ = ("columns", "rows")

    def __init__(self, columns, rows=None):
        self.columns = tuple(columns)
        self.rows = rows

    @property
    def shape(self):
        return (self.rows,)

    @property
    def dims(self):
        return 1

    def written(self):
        return {"frame": [{"name": name, "dtype": dtype} for name, dtype in self.columns]}

    def __str__(self):
        return "frame " + ", ".join(f"{name}: {dtype}" for name, dtype in self.columns)


class Node:
    """One tileable."""

    __slots__ = ("key", "op", "attributes", "inputs", "data", "content", "name", "line", "placed", "brought", "__weakref__")

    def __init__(self, op, attributes, inputs, content, data=b"", name=""):
        self.key = new_key()
        self.op = op
        self.attributes = attributes
        self.inputs = tuple(inputs)
        self.data = data
        self.content = content
        self.name = name
        self.line = place.here()
        # Where the chunks are, once it was executed.
        self.placed = None
        # Data of the program that may go to the workers before the graph: see `put`.
        self.brought = None

    def settle(self, placed):
        """It was executed: what it is made of is forgotten, unless that is nothing."""
        self.placed = placed
        if isinstance(self.content, TensorContent):
            self.content = TensorContent(placed.shape, self.content.dtype)
        else:
            self.content = FrameContent(self.content.columns, placed.shape[0])
        if self.inputs:
            self.op, self.attributes, self.inputs, self.data = "fetch", {}, (), b""

    def placed_in(self, session_id):
        """Where it is in a session, or None: it has to be computed. Raises `SessionError` if it cannot be."""
        if self.placed is None:
            return None
        if self.placed.session_id == session_id:
            return self.placed
        if self.op == "fetch":
            raise SessionError(
                f"{self.content} was executed in session {self.placed.session_id} and is used in {session_id}; next: "
                f"execute all of it in one session, or fetch it\n  made at {self.line}"
            )
        return None


def ancestors(targets, session_id):
    """All nodes that have to be sent for some targets, inputs first, each once."""
    found, order = set(), []
    # Not by recursion: loops of thousands of steps build chains of that length.
    stack = [(node, False) for node in reversed(targets)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
            continue
        if node.key in found:
            continue
        found.add(node.key)
        stack.append((node, True))
        if node.placed_in(session_id) is None:
            stack.extend((one, False) for one in reversed(node.inputs))
    return order


class Sent:
    """A graph as it is sent, and the nodes by their keys in it."""

    def __init__(self, targets, session_id):
        self.message = wire.TileableGraph()
        self.nodes = {}
        self.target_keys = []
        keys = {}
        for node in ancestors(targets, session_id):
            placed = node.placed_in(session_id)
            # Each graph has keys of its own: what an earlier one made of the same node may still be there.
            key = new_key()
            keys[node.key] = key
            self.nodes[key] = node
            self._add(key, node, placed, [keys[one.key] for one in node.inputs] if placed is None else [])
        self.target_keys = [keys[node.key] for node in targets]

    def _add(self, key, node, placed, inputs):
        op, attributes, data = node.op, node.attributes, node.data
        if placed is None and node.brought is not None:
            attributes, data = node.brought.inline(node)
        if placed is not None:
            op = "fetch"
            attributes = {
                "content": node.content.written(),
                "splits": placed.splits,
                "chunks": placed.chunk_keys,
            }
        message = self.message.nodes.add(
            key=key, op_type=op, payload=json.dumps(attributes).encode(), inputs=inputs, name=node.name
        )
        if placed is None and data:
            message.data = data
        if isinstance(node.content, TensorContent):
            message.dtype = dtypes.NUMBERS[dtypes.name_of(node.content.dtype)]
            message.shape.extents.extend(-1 if one is None else one for one in node.content.shape)


class Placed:
    """Where the chunks of an executed tileable are: their keys, by the grid that they are cut into."""

    __slots__ = ("session", "key", "splits", "chunk_keys", "_hold")

    def __init__(self, session, key, splits, chunk_keys, hold=None):
        self.session = session
        self.key = key
        # Extents of the parts of each axis; None where nobody knows.
        self.splits = splits
        self.chunk_keys = chunk_keys
        # Ends with this, and then the cluster is told.
        self._hold = hold

    @property
    def session_id(self):
        return self.session.session_id

    @property
    def shape(self):
        return tuple(None if None in parts else sum(parts) for parts in self.splits)

    @classmethod
    def of(cls, session, meta, hold=None):
        """From a `TileableMeta`."""
        splits = [[None if one < 0 else one for one in axis.extents] for axis in meta.nsplits]
        return cls(session, meta.key, splits, list(meta.chunk_keys), hold)


def session_of(nodes):
    """The session in which some of what nodes are made of was executed, or None."""
    found, stack = set(), list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node.key in found:
            continue
        found.add(node.key)
        if node.placed is not None:
            return node.placed.session
        stack.extend(node.inputs)
    return None
