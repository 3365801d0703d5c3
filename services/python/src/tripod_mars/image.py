"""Chunks of frames as workers send them: as stores keep them, with the description first."""

import numpy as np

from .chunk import layout
from .chunk.frame import Frame


def read(data):
    """Columns by name: arrays, masked ones where values are missing, and for texts arrays of objects with None. Raises
    `ValueError`."""
    frame = layout.unpack(memoryview(data), 0)
    if not isinstance(frame, Frame):
        raise ValueError("a chunk that is no frame")
    if len(set(frame.names)) != len(frame.names):
        raise ValueError("two columns have one name")
    return {name: _values(column) for name, column in zip(frame.names, frame.columns)}


def _values(column):
    valid = column.valid
    if column.is_text:
        texts = column.values.values()
        found = np.empty(len(texts), object)
        for row, text in enumerate(texts):
            if valid is None or valid[row]:
                found[row] = text.decode()
        return found
    if valid is None or valid.all():
        return column.values
    return np.ma.MaskedArray(column.values, ~valid)
