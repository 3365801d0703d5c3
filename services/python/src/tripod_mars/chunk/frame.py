"""Frames: columns of equal length, by rows. A value may be missing (null); among fractions NaN is missing, too."""

import numpy as np

from . import dtypes
from .text import Text


class Column:
    """`values` is a `Text` or an array of `dtype`; what stands where `valid` is false has no meaning. Without `valid`
    nothing is missing but NaN."""

    __slots__ = ("dtype", "values", "valid")

    def __init__(self, dtype, values, valid=None):
        self.dtype = dtype
        self.values = values
        self.valid = valid

    def __len__(self):
        return len(self.values)

    @property
    def is_text(self):
        return self.dtype == dtypes.TEXT

    def take(self, rows):
        values = self.values.take(rows) if self.is_text else self.values[rows]
        return Column(self.dtype, values, None if self.valid is None else self.valid[rows])

    def slice(self, begin, end):
        values = self.values.slice(begin, end) if self.is_text else self.values[begin:end]
        return Column(self.dtype, values, None if self.valid is None else self.valid[begin:end])

    def missing(self):
        """Where there is no value, or None if there is one everywhere."""
        missing = None if self.valid is None else ~self.valid
        if self.dtype in ("f32", "f64"):
            nan = np.isnan(self.values)
            missing = nan if missing is None else missing | nan
        return missing if missing is not None and missing.any() else None

    @staticmethod
    def joined(columns):
        """One after the other."""
        dtype = columns[0].dtype
        if any(column.dtype != dtype for column in columns):
            raise TypeError("parts of a column have different types")
        join = Text.joined if dtype == dtypes.TEXT else np.concatenate
        valid = None
        if any(column.valid is not None for column in columns):
            valid = np.concatenate([np.ones(len(c), np.bool_) if c.valid is None else c.valid for c in columns])
        return Column(dtype, join([column.values for column in columns]), valid)


class Frame:
    """Columns under their names."""

    __slots__ = ("names", "columns")

    def __init__(self, names, columns):
        self.names = names
        self.columns = columns

    @property
    def rows(self):
        return len(self.columns[0]) if self.columns else 0

    def column(self, name):
        """The first one of that name. Raises `KeyError`."""
        try:
            return self.columns[self.names.index(name)]
        except ValueError:
            raise KeyError(f"the frame has no column {name!r}") from None

    def take(self, rows):
        return Frame(self.names, [column.take(rows) for column in self.columns])

    def slice(self, begin, end):
        return Frame(self.names, [column.slice(begin, end) for column in self.columns])

    @staticmethod
    def joined(frames):
        """Rows of all, one after the other."""
        if len(frames) == 1:
            return frames[0]
        if any(frame.names != frames[0].names for frame in frames):
            raise ValueError("parts of a frame have different columns")
        return Frame(frames[0].names, [Column.joined(parts) for parts in zip(*(f.columns for f in frames))])
