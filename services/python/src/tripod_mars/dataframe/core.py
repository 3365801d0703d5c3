"""A frame: columns under names, cut by rows."""

import numpy as np

from .. import dtypes
from ..errors import UnsupportedError
from ..graph import FrameContent, Node
from ..tensor.base import as_tensor, is_tensor, make
from ..tileable import Tileable
from . import source
from .grouping import GroupBy


class DataFrame(Tileable):
    """As a frame of pandas without an index, of which nothing is computed until `execute` is called."""

    def __init__(self, data, chunk_rows=None):
        """Of a dict of columns, or of a frame of pandas, whose index is left out. `chunk_rows`: rows of a chunk."""
        super().__init__(source.of_columns(data, chunk_rows))

    @classmethod
    def of(cls, node):
        """That a node makes."""
        made = cls.__new__(cls)
        Tileable.__init__(made, node)
        return made

    @property
    def columns(self):
        return [name for name, _ in self.node.content.columns]

    @property
    def dtypes(self):
        """Types by column; that of texts is `object`."""
        return {name: dtypes.BY_NAME.get(dtype, np.dtype(object)) for name, dtype in self.node.content.columns}

    @property
    def shape(self):
        """Rows, None where only execution tells, and columns."""
        return self.node.content.rows, len(self.node.content.columns)

    def type_of(self, name):
        """The name of a column's type. Raises `KeyError`."""
        for column, dtype in self.node.content.columns:
            if column == name:
                return dtype
        raise KeyError(f"{name!r} is no column; there are {', '.join(self.columns)}")

    def __getitem__(self, wanted):
        """A column as a tensor, several as a frame, or the rows where a mask is true."""
        if isinstance(wanted, str):
            return self._column(wanted)
        if is_tensor(wanted) or np.asarray(wanted).dtype.kind == "b":
            return self._filtered(as_tensor(wanted))
        return self._project(list(wanted))

    def head(self, n=5):
        """The first rows."""
        n = n.__index__()
        if n < 0:
            raise UnsupportedError("`head` of a negative number is not here")
        rows = self.node.content.rows
        content = FrameContent(self.node.content.columns, None if rows is None else min(rows, n))
        return DataFrame.of(Node("head", {"rows": n}, [self.node], content))

    def groupby(self, by, reducers=1):
        """Rows with equal values in a column, or in several. `reducers`: among how many chunks the groups are spread; with
        one they are in one chunk."""
        by = [by] if isinstance(by, str) else list(by)
        if not by:
            raise ValueError("No group keys passed!")
        for name in by:
            self.type_of(name)
        return GroupBy(self, by, _reducers(reducers))

    def shuffle(self, by, reducers):
        """The same rows; those with equal values in these columns are in one chunk."""
        by = [by] if isinstance(by, str) else list(by)
        for name in by:
            self.type_of(name)
        attributes = {"by": by, "reducers": _reducers(reducers)}
        return DataFrame.of(Node("shuffle", attributes, [self.node], FrameContent(self.node.content.columns)))

    def fetch(self, session=None):
        """As `to_pandas`; without pandas as `to_dict`. Raises `NotExecutedError`, `ChunkLostError`."""
        try:
            import pandas
        except ImportError:
            return self.to_dict(session)
        columns = self._session(session).read_frame(self.node)
        return pandas.DataFrame({name: _series(pandas, values) for name, values in columns.items()})

    def to_pandas(self, session=None):
        """A frame of pandas, executed first if it was not. Whole numbers and booleans of which some are missing have
        pandas' own types for that."""
        import pandas

        columns = self._executed(session)
        return pandas.DataFrame({name: _series(pandas, values) for name, values in columns.items()})

    def to_dict(self, session=None):
        """Arrays by column, executed first if it was not: masked ones where values are missing, and for texts arrays of
        objects with None."""
        return self._executed(session)

    def _executed(self, session):
        if not self.is_executed:
            self.execute(session)
        return self._session(session).read_frame(self.node)

    def __len__(self):
        if self.node.content.rows is None:
            raise UnsupportedError("how many rows there are only execution tells; next: call `execute` first")
        return self.node.content.rows

    def __repr__(self):
        rows = "?" if self.node.content.rows is None else self.node.content.rows
        return f"DataFrame({rows} rows, {self.node.content})"

    def _column(self, name):
        dtype = self.type_of(name)
        if dtype == dtypes.TEXT:
            raise UnsupportedError(f"column {name} has texts, and tensors have none; next: take a frame, df[[{name!r}]]")
        return make("column", {"name": name}, [self], (self.node.content.rows,), dtypes.BY_NAME[dtype], name=name)

    def _project(self, names):
        content = FrameContent([(name, self.type_of(name)) for name in names], self.node.content.rows)
        if not names or len(set(names)) != len(names):
            raise ValueError("columns are named once each, and one at least")
        return DataFrame.of(Node("project", {"columns": names}, [self.node], content))

    def _filtered(self, mask):
        if mask.dtype.kind != "b" or mask.ndim != 1:
            raise UnsupportedError("rows are picked by a mask: booleans along one axis")
        rows = self.node.content.rows
        if None not in (rows, mask.shape[0]) and rows != mask.shape[0]:
            raise ValueError(f"Item wrong length {mask.shape[0]} instead of {rows}.")
        placed = self.node.placed
        if placed is not None and mask.shape[0] is not None and None not in placed.splits[0] and 0 not in placed.splits[0]:
            # A mask that was not made of the frame is cut in its own way.
            mask = mask.rechunk([placed.splits[0]])
        content = FrameContent(self.node.content.columns)
        return DataFrame.of(Node("filter_rows", {}, [self.node, mask.node], content))


def _reducers(reducers):
    reducers = reducers.__index__()
    if not 1 <= reducers <= 4096:
        raise ValueError("there are between 1 and 4096 reducers")
    return reducers


def _series(pandas, values):
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data, mask = np.ma.getdata(values).copy(), np.ma.getmaskarray(values)
    if data.dtype.kind == "b":
        return pandas.arrays.BooleanArray(data, mask)
    if data.dtype.kind == "i":
        return pandas.arrays.IntegerArray(data, mask)
    data[mask] = np.nan
    return data
