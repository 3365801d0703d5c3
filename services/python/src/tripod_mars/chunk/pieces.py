"""Parts of tensors, tensors of parts, and other shapes. What can be a view of its input is one."""

import numpy as np

from .elementwise import operands


def fetch(_node, inputs):
    return inputs[0]


def _slice(one):
    """Of a range: all of whose elements are there."""
    if one == "whole":
        return slice(None)
    part = one["part"]
    start, step, count = part["start"], part["step"], part["count"]
    if count == 0:
        return slice(0, 0)
    stop = start + step * count
    return slice(start, stop if stop >= 0 else None, step)


def _index(ranges, drop):
    """What numpy picks with; dropped axes have one element."""
    index = [_slice(one) for one in ranges]
    for axis in drop:
        index[axis] = index[axis].start or 0
    return tuple(index)


def slice_(node, inputs):
    return inputs[0][_index(node.operator["ranges"], node.operator["drop"])]


def assemble(node, inputs):
    operator = node.operator
    grid = operator["grid"]
    pieces = [array[_index(ranges, ())] for array, ranges in zip(inputs, operator["pieces"])]
    if len(pieces) == 1:
        return pieces[0]
    begins, shape = [], []
    for axis, count in enumerate(grid):
        # Those at the edge tell how long the others are along this axis, too.
        below = int(np.prod(grid[axis + 1 :], dtype=np.int64))
        extents = [pieces[at * below].shape[axis] for at in range(count)]
        begins.append([0, *np.cumsum(extents).tolist()])
        shape.append(begins[axis][-1])
    result = np.empty(shape, node.dtype)
    for place, piece in zip(np.ndindex(*grid), pieces):
        result[tuple(slice(ends[at], ends[at + 1]) for ends, at in zip(begins, place))] = piece
    return result


def gather(node, inputs):
    axis, source = node.operator["axis"], node.operator["from"]
    if len(inputs) == 1:
        return inputs[0].take(np.array([at for _, at in source], np.int64), axis)
    pairs = np.array(source, np.int64).reshape(-1, 2)
    shape = list(inputs[0].shape)
    shape[axis] = len(pairs)
    result = np.empty(shape, node.dtype)
    before = (slice(None),) * axis
    for number, array in enumerate(inputs):
        places = np.flatnonzero(pairs[:, 0] == number)
        result[(*before, places)] = array.take(pairs[places, 1], axis)
    return result


def assign(node, inputs):
    operator = node.operator
    (value,) = operands((operator["value"],), inputs[1:])
    result = inputs[0].copy()
    result[_index(operator["ranges"], operator["drop"])] = value
    return result


def compress(node, inputs):
    array, mask = inputs
    axis = node.operator["axis"]
    if len(mask) != array.shape[axis]:
        raise ValueError(f"a mask of {len(mask)} elements for {array.shape[axis]}")
    return np.compress(mask, array, axis)


def transpose(node, inputs):
    return inputs[0].transpose(node.operator["axes"])


def expand_dims(node, inputs):
    return np.expand_dims(inputs[0], node.operator["axis"])


def reshape(node, inputs):
    return inputs[0].reshape([-1 if extent is None else extent for extent in node.extents])


OPERATORS = {
    "fetch": fetch,
    "slice": slice_,
    "assemble": assemble,
    "gather": gather,
    "assign": assign,
    "compress": compress,
    "transpose": transpose,
    "expand_dims": expand_dims,
    "reshape": reshape,
}
