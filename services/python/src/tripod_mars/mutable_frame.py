"""Frames that are written in place, by rows and columns; the rules of times are those of mutable tensors."""

import time

import numpy as np

from . import dtypes, parts, wire
from .chunk import layout
from .chunk.frame import Column, Frame
from .chunk.text import Text
from .context import scalar
from .errors import MutableError, RefusedError, UnsupportedError
from .graph import FrameContent
from .mutable import BATCH_BYTES_MAX, Mutable, each, get_info, mutable_error, rows_of
from .scheduler import new_id

_WHAT = "mutable frame"


class MutableDataFrame(Mutable):
    """One mutable frame. Handles of several programs may write at the same time."""

    what = _WHAT

    def _take(self, info):
        super()._take(info)
        self._types = [(column.name, dtypes.BY_NUMBER[column.dtype]) for column in info.columns]
        self._rows = sum(self.splits[0])

    @property
    def columns(self):
        return [name for name, _ in self._types]

    @property
    def dtypes(self):
        """Types by column; that of texts is `object`."""
        return {name: dtypes.BY_NAME.get(dtype, np.dtype(object)) for name, dtype in self._types}

    @property
    def shape(self):
        return self._rows, len(self._types)

    def write(self, rows, data, timestamp=None):
        """Writes columns of some rows: a slice, a whole number, a list of those or an ellipsis. `data` is a dict of columns or
        a frame of pandas; each column is one value for all rows, or as many as rows; None (and NaN among texts) is missing.
        All columns of a row count at once. `timestamp` in nanoseconds; None: now. Returns when all of it is durable at its
        workers; after an error some chunks may have been written. Raises `IndexError`, `KeyError`, `ValueError`,
        `MutableError`."""
        timestamp = time.time_ns() if timestamp is None else int(timestamp)
        count, wanted = self._pieces(rows)
        types = dict(self._types)
        names = [str(name) for name in data]
        unknown = [name for name in names if name not in types]
        if unknown:
            raise KeyError(f"{unknown[0]!r} is no column; there are {', '.join(self.columns)}")
        frame = Frame(names, [_column(name, types[name], data[key], count) for name, key in zip(names, data)])
        if not names or not count:
            return

        def write(piece):
            place, ask, where = piece
            for batch in self._cut(place, ask, frame.take(where), timestamp):
                self._put(place, batch)

        each(write, wanted)

    def read(self, rows=..., timestamp=None):
        """Arrays by column, as of a time in nanoseconds; None: everything that was written. Masked ones where values are
        missing, and for texts arrays of objects with None. Raises `IndexError`, `MutableError`."""
        count, wanted = self._pieces(rows)
        arrays = {name: np.zeros(count, dtypes.BY_NAME.get(dtype, object)) for name, dtype in self._types}
        for name, dtype in self._types:
            if dtype == dtypes.TEXT:
                arrays[name][:] = None
        missing = {name: np.zeros(count, bool) for name in arrays}

        def read(piece):
            place, ask, where = piece
            for name, values in self._get(place, ask, timestamp).items():
                arrays[name][where] = np.ma.getdata(values)
                missing[name][where] = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else False

        each(read, wanted)
        return {
            name: np.ma.MaskedArray(array, missing[name]) if missing[name].any() else array
            for name, array in arrays.items()
        }

    def seal(self, timestamp=None):
        """A frame with the values as of a time in nanoseconds; None: everything that was written. Later writes are refused,
        and the name is free again."""
        from .dataframe.core import DataFrame

        return DataFrame.of(self._sealed(timestamp, FrameContent(self._types, self._rows)))

    def __len__(self):
        return self._rows

    def __repr__(self):
        return f"MutableDataFrame({self.name!r}, {self._rows} rows, {', '.join(self.columns)}, {self.state})"

    def _pieces(self, rows):
        """How many rows are meant; and for each chunk that has some its place, its index, and which of those rows they are."""
        if rows is Ellipsis:
            rows = slice(None)
        if isinstance(rows, slice):
            (count,), wanted = parts.pieces(self.splits, (rows,))
            everyone = np.arange(count)
            return count, [(place, ask or parts.message([None]), everyone[where]) for place, ask, where in wanted]
        places = np.asarray(rows)
        if places.dtype.kind not in "iu" and places.size:
            raise UnsupportedError(f"{rows!r} are no rows: a mutable frame takes slices, whole numbers and lists of those")
        places = np.atleast_1d(places).astype(np.int64)
        if places.ndim > 1:
            raise UnsupportedError("rows are along one axis")
        for place in places[(places < -self._rows) | (places >= self._rows)].tolist():
            raise IndexError(f"index {place} is out of bounds for axis 0 with size {self._rows}")
        places = np.where(places < 0, places + self._rows, places)
        wanted, begin = [], 0
        for place, extent in enumerate(self.splits[0]):
            (where,) = np.nonzero((places >= begin) & (places < begin + extent))
            if len(where):
                ask = wire.Index()
                ask.dims.add().list.integers.extend((places[where] - begin).tolist())
                wanted.append((place, ask, where))
            begin += extent
        return len(places), wanted

    def _cut(self, place, ask, frame, timestamp):
        """Batches of what goes to one chunk."""
        image = layout.image(frame)
        step = max(1, frame.rows * BATCH_BYTES_MAX // max(1, len(image)))
        if step >= frame.rows:
            yield self._batch(place, timestamp, image, slab={"index": ask, "values": image})
            return
        for begin in range(0, frame.rows, step):
            end = min(begin + step, frame.rows)
            if ask.dims[0].WhichOneof("index") == "list":
                some = wire.Index()
                some.dims.add().list.integers.extend(ask.dims[0].list.integers[begin:end])
            else:
                some = rows_of(ask, begin, end - begin, self._extents(place))
            image = layout.image(frame.slice(begin, end))
            yield self._batch(place, timestamp, image, slab={"index": some, "values": image})


def create_mutable_dataframe(session, name, rows, columns, default_values, chunk_rows, replicas, if_not_exist):
    from .dataframe.source import column_type

    types = {str(column): column_type(dtype) for column, dtype in dict(columns).items()}
    defaults = {str(column): value for column, value in dict(default_values or {}).items()}
    unknown = [column for column in defaults if column not in types]
    if unknown:
        raise KeyError(f"{unknown[0]!r} is no column; there are {', '.join(types)}")
    nothing = {dtypes.TEXT: "", "bool": False}
    values = [scalar(defaults.get(column, nothing.get(dtype, 0))) for column, dtype in types.items()]
    try:
        answer = session.scheduler.call(
            "CreateMutableDataFrame",
            request_id=new_id(),
            session_id=session.session_id,
            name=name or "",
            rows=rows,
            columns=[wire.Column(name=column, dtype=dtypes.NUMBERS[dtype]) for column, dtype in types.items()],
            default_values=values,
            chunk_rows=chunk_rows,
            replicas=replicas,
            if_not_exist=if_not_exist,
        )
    except RefusedError as error:
        raise mutable_error(_WHAT, name, error) from None
    return MutableDataFrame(session, answer.info.name, answer.info)


def get_mutable_dataframe(session, name):
    info = get_info(session, name, _WHAT)
    if not info.columns:
        raise MutableError(f"{_WHAT} {name}: it is a tensor")
    return MutableDataFrame(session, name, info)


def _column(name, dtype, value, count):
    """A column of so many rows. Raises `TypeError`, `ValueError`."""
    if dtype == dtypes.TEXT:
        values = [value] * count if value is None or isinstance(value, str) else list(value)
        # pandas has its own word for what is missing.
        gone = value.isna().tolist() if hasattr(value, "isna") else [one is None or one != one for one in values]
        valid = ~np.array(gone, bool)
        for one in (one for one, is_there in zip(values, valid) if is_there and not isinstance(one, str)):
            raise TypeError(f"column {name}: {type(one).__name__} among texts")
        _check_count(name, len(values), count)
        texts = Text.of([one if is_there else "" for one, is_there in zip(values, valid)])
        return Column(dtype, texts, None if valid.all() else valid)
    missing = None
    if hasattr(value, "isna"):
        # A column of pandas, whose whole numbers may be missing.
        missing, value = value.isna().to_numpy(), value.to_numpy(dtype=object)
    if isinstance(value, np.ma.MaskedArray):
        missing, value = np.ma.getmaskarray(value), np.ma.getdata(value)
    array = np.asarray(value)
    if array.dtype == object:
        gone = np.frompyfunc(lambda one: one is None, 1, 1)(array).astype(bool)
        missing = gone if missing is None else missing | gone
        array = np.where(missing, 0, array)
    if array.dtype.kind in "UST":
        raise TypeError(f"column {name} has no texts")
    array = array.astype(dtypes.BY_NAME[dtype])
    if array.ndim:
        _check_count(name, len(array), count)
    array = np.array(np.broadcast_to(array, (count,)))
    if missing is None or not np.any(missing):
        return Column(dtype, array)
    valid = ~np.broadcast_to(missing, (count,))
    if dtype in ("f32", "f64"):
        array[~valid] = np.nan
        return Column(dtype, array)
    return Column(dtype, array, valid)


def _check_count(name, is_, count):
    if is_ != count:
        raise ValueError(f"column {name} has {is_} values for {count} rows")
