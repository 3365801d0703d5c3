"""All operators, by name. What each means says `ChunkOperator` of services/tile.

An operator is a function of a `Node` and its inputs (arrays, frames, partial results), and of nothing else, so that a
chunk that is lost is computed again as it was.
"""

import math
import os

import numpy as np

from . import elementwise, frames, groups, helpers, linear, pieces, read, reduce, several, shuffle, sources
from .node import Node

OPERATORS = {
    **sources.OPERATORS,
    **elementwise.OPERATORS,
    **pieces.OPERATORS,
    **linear.OPERATORS,
    **reduce.OPERATORS,
    **read.OPERATORS,
    **frames.OPERATORS,
    **groups.OPERATORS,
    **shuffle.OPERATORS,
    **helpers.OPERATORS,
}


# The memory of the machine. What has inputs is about as large as they are; what has none is as large as a graph says, and
# the operating system promises memory that it ends the worker for using.
_BYTES_MOST = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class UnknownOperatorError(Exception):
    """This worker has no such operator; another one may."""

    def __init__(self, name):
        super().__init__(f"UNIMPLEMENTED: operator {name}")


def run(node, inputs):
    """What the node is of its inputs. Raises `UnknownOperatorError`, and what the operator raises."""
    # Quotients by zero and the like are values, and nobody reads a worker's warnings.
    with np.errstate(all="ignore"):
        return _run(node, inputs)


def _run(node, inputs):
    """The same for whoever has turned warnings off."""
    operator = OPERATORS.get(node.name)
    if operator is None:
        raise UnknownOperatorError(node.name)
    if not inputs:
        _check_size(node)
    value = operator(node, inputs)
    content = node.content
    if isinstance(content, dict) and "tensor" in content:
        dtype = node.dtype
        if type(value) is not np.ndarray or value.dtype != dtype:
            # Numpy gives functions of arrays without axes as numbers.
            value = np.asarray(value).astype(dtype, copy=False)
    return value


def _fused(node, inputs):
    return _stepped(node.operator["steps"], inputs, node.data)


def _chains(node, _inputs):
    """One chain after the other, so that there is the memory of one at a time."""
    partials, size = [], 0
    for steps in node.operator["chains"]:
        made = several.apart(_stepped(steps, [], b""))
        size += sum(array.nbytes for one in made for array in one.arrays)
        if size > _BYTES_MOST:
            raise MemoryError(f"partial results of {size} bytes; this machine has {_BYTES_MOST}")
        partials += made
    return several.together(partials)


def _stepped(steps, inputs, data):
    """One operator after the other: each has what the one before has made, as it would have come from a store."""
    if not steps:
        raise ValueError("a chain has no steps")
    for place, step in enumerate(steps):
        if place and type(value) is np.ndarray and not value.flags.c_contiguous:
            # Sums of fractions depend on the order of elements in memory.
            value = np.ascontiguousarray(value)
        one = Node.of(step, b"" if place else data)
        value = _run(one, [value] if place else inputs)
    return value


OPERATORS["fused"] = _fused
OPERATORS["chains"] = _chains


def _check_size(node):
    if isinstance(node.content, dict) and "tensor" in node.content and None not in node.extents:
        size = math.prod(node.extents) * node.dtype.itemsize
        if size > _BYTES_MOST:
            raise MemoryError(f"a chunk of {size} bytes; this machine has {_BYTES_MOST}")
