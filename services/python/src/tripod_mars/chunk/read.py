"""Frames of files that a client sent.

CSV is UTF-8 with commas and quotes as in RFC 4180. The first line names the columns; those that are wanted are found by
name, others are left out. An empty field is missing: NaN among fractions.
"""

import csv
import io

import numpy as np

from . import dtypes
from .frame import Column, Frame
from .text import Text

# Characters of one field. The module has 128 KiB otherwise.
_FIELD_CHARS_MOST = 1 << 30
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def read_frame(node, _inputs):
    form = node.operator["format"]
    if form == "csv":
        return _read_csv(node.data, node.columns)
    if form == "parquet":
        return _read_parquet(node.data, node.columns)
    raise ValueError(f"files of format {form!r} are not read")


def _read_csv(data, wanted):
    csv.field_size_limit(_FIELD_CHARS_MOST)
    lines = csv.reader(io.StringIO(bytes(data).decode("utf-8-sig"), newline=""), strict=True)
    names = next(lines, [])
    rows = [fields for fields in lines if fields]
    for number, fields in enumerate(rows, 1):
        if len(fields) != len(names):
            raise ValueError(f"row {number} has {len(fields)} fields; there are {len(names)} columns")
    by_column = dict(zip(names, zip(*rows) if rows else [()] * len(names)))
    columns = []
    for name, dtype in wanted:
        if name not in by_column:
            raise ValueError(f"the file has no column {name!r}; it has {names[:32]}")
        try:
            columns.append(_parsed(by_column[name], dtype))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"column {name!r}: {error}") from error
    return Frame([name for name, _ in wanted], columns)


def _parsed(fields, dtype):
    valid = np.fromiter(map(bool, fields), np.bool_, len(fields))
    if dtype == dtypes.TEXT:
        values = Text.of(fields)
    elif dtype in ("f32", "f64"):
        return Column(dtype, np.array([float(field) if field else np.nan for field in fields], dtypes.BY_NAME[dtype]))
    elif dtype == "bool":
        values = np.array([_truth(field) for field in fields], np.bool_)
    else:
        # Numpy refuses what does not fit.
        values = np.array([int(field) if field else 0 for field in fields], dtypes.BY_NAME[dtype])
    return Column(dtype, values, None if valid.all() else valid)


def _truth(field):
    if not field:
        return False
    try:
        return _TRUTHS[field.strip().lower()]
    except KeyError:
        raise ValueError(f"{field!r} is neither true nor false") from None


def _read_parquet(data, wanted):
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise RuntimeError("UNIMPLEMENTED: operator read_frame of parquet: this worker has no pyarrow") from None
    table = parquet.read_table(pyarrow.BufferReader(data), columns=[name for name, _ in wanted])
    types = {
        "bool": pyarrow.bool_(),
        "i32": pyarrow.int32(),
        "i64": pyarrow.int64(),
        "f32": pyarrow.float32(),
        "f64": pyarrow.float64(),
        dtypes.TEXT: pyarrow.string(),
    }
    columns = []
    for name, dtype in wanted:
        array = table.column(name).cast(types[dtype])
        valid = None
        if array.null_count:
            valid = array.is_valid().to_numpy()
            array = array.fill_null({"bool": False, dtypes.TEXT: ""}.get(dtype, np.nan if dtype[0] == "f" else 0))
        values = Text.of(array.to_pylist()) if dtype == dtypes.TEXT else array.to_numpy()
        if dtype in ("f32", "f64"):
            valid = None
        columns.append(Column(dtype, values, valid))
    return Frame([name for name, _ in wanted], columns)


OPERATORS = {"read_frame": read_frame}
