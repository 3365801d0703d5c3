"""Rows, or groups, on their way to the reducer of their keys.

Which one that is must be the same in all processes and for ever, because maps of one shuffle run anywhere and are run
again when they are lost. So it is a function of values alone, written down here: for each column a word of 64 bits (a
whole number itself, a fraction's bits as f64, with one zero and one NaN, the CRC-32 of a text), mixed as splitmix64 ends.
"""

import zlib

import numpy as np

from .frame import Frame
from .groups import frame_of, partial_of
from .partial import Partial, flattened, framed

KIND = "shuffled"
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MISSING = np.uint64(0x6E756C6C)
# As in services/tile.
_REDUCERS_MOST = 4096


def shuffle_map(node, inputs):
    operator = node.operator
    by, reducers = operator["by"], operator["reducers"]
    if not 1 <= reducers <= _REDUCERS_MOST:
        raise ValueError(f"{reducers} reducers")
    (value,) = inputs
    is_groups = isinstance(value, Partial)
    frame = frame_of(value) if is_groups else value
    to = reducers_of([frame.column(name) for name in by], reducers)
    # Rows stay in their order.
    frame = frame.take(np.argsort(to, kind="stable"))
    bounds = np.zeros(reducers + 1, np.int64)
    np.cumsum(np.bincount(to, minlength=reducers), out=bounds[1:])
    described, arrays = flattened(frame)
    return Partial(KIND, {"groups": is_groups, "frame": described}, [bounds, *arrays])


def shuffle_reduce(node, inputs):
    reducer = node.operator["reducer"]
    parts = []
    for partial in inputs:
        bounds, *arrays = partial.check(KIND).arrays
        frame = framed(partial.attributes["frame"], arrays)
        parts.append(frame.slice(int(bounds[reducer]), int(bounds[reducer + 1])))
    frame = Frame.joined(parts)
    return partial_of(frame) if inputs[0].attributes["groups"] else frame


def reducers_of(columns, reducers):
    """The number of each row's reducer."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = _mixed((hashes ^ _words(column)) + _STEP)
    return (hashes % np.uint64(reducers)).astype(np.int64)


def _words(column):
    values = column.values
    if column.is_text:
        words = np.fromiter(map(zlib.crc32, values.values()), np.uint64, len(values))
    elif values.dtype.kind == "f":
        # A negative zero becomes the other one.
        words = (values.astype(np.float64) + 0.0).view(np.uint64)
    else:
        words = values.astype(np.int64).view(np.uint64)
    missing = column.missing()
    return words if missing is None else np.where(missing, _MISSING, words)


def _mixed(words):
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


OPERATORS = {"shuffle_map": shuffle_map, "shuffle_reduce": shuffle_reduce}
