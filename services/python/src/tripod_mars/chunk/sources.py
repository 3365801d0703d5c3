"""Tensors that are made of nothing."""

import numpy as np

from .dtypes import number


def full(node, _inputs):
    return np.full(node.extents, number(node.operator["value"]), node.dtype)


def eye(node, _inputs):
    rows, columns = node.extents
    diagonal = node.operator["diagonal"]
    # Of diagonals far away numpy computes places that are no places.
    if not -rows < diagonal < columns:
        return np.zeros((rows, columns), node.dtype)
    return np.eye(rows, columns, diagonal, node.dtype)


def arange(node, _inputs):
    (count,) = node.extents
    operator = node.operator
    start, delta, offset = number(operator["start"]), number(operator["delta"]), operator["offset"]
    if node.dtype.kind == "f":
        return float(start) + (offset + np.arange(count, dtype=np.float64)) * float(delta)
    if count == 0:
        return np.empty(0, node.dtype)
    # Of the first element Python knows all bits; steps from there on may overflow on the way, but not where they end.
    return start + offset * delta + np.arange(count, dtype=np.int64) * np.int64(delta)


def linspace(node, _inputs):
    (count,) = node.extents
    operator = node.operator
    offset = operator["offset"]
    array = (offset + np.arange(count, dtype=np.float64)) * number(operator["step"]) + number(operator["start"])
    last = operator["num"] - 1 - offset
    if operator["last"] is not None and 0 <= last < count:
        array[last] = number(operator["last"])
    return array


def _generator(operator):
    key = np.array([operator["seed"], operator["stream"]], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def rand_uniform(node, _inputs):
    operator = node.operator
    low, high = float(number(operator["low"])), float(number(operator["high"]))
    if low == 0 and high == 1:
        # The same numbers, without the time to multiply each by one and to add zero to it.
        return _generator(operator).random(node.extents)
    return _generator(operator).uniform(low, high, node.extents)


def rand_normal(node, _inputs):
    operator = node.operator
    mean, deviation = float(number(operator["mean"])), float(number(operator["deviation"]))
    return _generator(operator).normal(mean, deviation, node.extents)


def from_bytes(node, _inputs):
    if not node.data:
        return np.empty(node.extents, node.dtype)
    return np.frombuffer(node.data, node.dtype).reshape(node.extents)


OPERATORS = {
    "full": full,
    "eye": eye,
    "arange": arange,
    "linspace": linspace,
    "rand_uniform": rand_uniform,
    "rand_normal": rand_normal,
    "from_bytes": from_bytes,
}
