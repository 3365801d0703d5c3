"""Frames of what the program has: they travel with the graph, as files of CSV, or from some MiB on go to the workers before it.
A field that is empty is missing, so an empty text is, too."""

import csv
import glob
import io
import os
import re

import numpy as np

from .. import dtypes, put
from ..errors import UnsupportedError
from ..graph import FrameContent, Node

# Rows of a chunk, if the program does not say. A chunk travels within its task, so it has so many bytes at most.
CHUNK_ROWS = 1 << 20
CHUNK_BYTES_MAX = 512 << 10
# Rows from which types of columns are guessed.
SAMPLE_ROWS = 100_000
_COLUMNS_MAX, _NAME_BYTES_MAX = 4096, 256
_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_TRUTHS = ("true", "false")


def of_columns(data, chunk_rows=None):
    """A node of a dict of columns, or of a frame of pandas."""
    columns = [_column(str(name), data[name]) for name in data]
    _checked([name for name, _, _, _ in columns])
    rows = {len(values) for _, _, values, _ in columns}
    if len(rows) > 1:
        raise ValueError("All arrays must be of the same length")
    (rows,) = rows
    nbytes = sum(_bytes_of(dtype, values) for _, dtype, values, _ in columns)
    types = [(name, dtype) for name, dtype, _, _ in columns]
    if nbytes < put.PUT_BYTES_LEAST:
        return _node("csv", _files(columns, rows, chunk_rows), types)
    # What the program has may change, and files are made of it only if it cannot be put.
    columns = [(name, dtype, values.copy(), missing) for name, dtype, values, missing in columns]
    node = Node("read_frame", {}, (), FrameContent(types))

    def inline():
        files = _files(columns, rows, chunk_rows)
        return _attributes("csv", files, types), b"".join(files)

    node.brought = put.FrameData(columns, rows, chunk_rows, nbytes, inline)
    return node


def _bytes_of(dtype, values):
    return sum(map(len, values)) if dtype == dtypes.TEXT else values.nbytes


def _files(columns, rows, chunk_rows):
    """Files of CSV, each with the line of names."""
    fields = [_fields(dtype, values, missing) for _, dtype, values, missing in columns]
    files, step = [], chunk_rows or CHUNK_ROWS
    for begin in range(0, max(rows, 1), step):
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([name for name, _, _, _ in columns])
        writer.writerows(zip(*(one[begin : begin + step] for one in fields)))
        files.extend(_cut(text.getvalue().encode(), CHUNK_BYTES_MAX))
    return files


def read_csv(source, columns=None, dtype=None, chunk_bytes=None, sample_rows=SAMPLE_ROWS):
    """A node of files of CSV with a line of names: a path, a pattern, several of them, or bytes. Types are guessed from the
    first rows of the first file unless `dtype`, a dict of columns, says them."""
    files = [_read(one) for one in _paths(source)]
    if not files:
        raise FileNotFoundError(f"no file is {source!r}")
    guessed = _guess(files[0], sample_rows)
    wanted = list(guessed) if columns is None else list(columns)
    missing = [name for name in wanted if name not in guessed]
    if missing:
        raise KeyError(f"the file has no column {missing[0]!r}; it has {', '.join(guessed)}")
    told = {name: column_type(one) for name, one in (dtype or {}).items()}
    _checked(wanted)
    cut = [part for file in files for part in _cut(file, min(chunk_bytes or CHUNK_BYTES_MAX, CHUNK_BYTES_MAX))]
    return _node("csv", cut, [(name, told.get(name, guessed[name])) for name in wanted])


def read_parquet(source, columns):
    """A node of files of Parquet, whose workers need pyarrow. `columns` is a dict of their types."""
    files = [_read(one) for one in _paths(source)]
    if not files:
        raise FileNotFoundError(f"no file is {source!r}")
    _checked(list(columns))
    return _node("parquet", files, [(name, column_type(one)) for name, one in columns.items()])


def column_type(dtype):
    """The name of a type of a column."""
    if dtype in (str, dtypes.TEXT, "str", "string", object):
        return dtypes.TEXT
    if isinstance(dtype, str) and dtype in dtypes.BY_NAME:
        return dtype
    return dtypes.name_of(dtype)


def _node(form, files, columns):
    return Node("read_frame", _attributes(form, files, columns), (), FrameContent(columns), b"".join(files))


def _attributes(form, files, columns):
    return {
        "format": form,
        "files": [len(file) for file in files],
        "columns": [{"name": name, "dtype": dtype} for name, dtype in columns],
    }


def _checked(names):
    if not names:
        raise ValueError("a frame has a column at least")
    if len(names) > _COLUMNS_MAX:
        raise ValueError(f"{len(names)} columns, and a frame has {_COLUMNS_MAX} at most")
    for name in names:
        if not name or len(name.encode()) > _NAME_BYTES_MAX:
            raise ValueError(f"{name[:32]!r} cannot be the name of a column: it has 1 to {_NAME_BYTES_MAX} bytes")
    if len(set(names)) != len(names):
        raise ValueError("two columns have one name")
    return names


def _column(name, values):
    """Its name, its type, its values (texts as a list), and where values are missing; None: nowhere."""
    missing = None
    if hasattr(values, "isna"):
        missing = values.isna().to_numpy()
        kind = getattr(values.dtype, "numpy_dtype", values.dtype)
        text = not isinstance(kind, np.dtype) or kind.kind in "OUT"
        if text and str(values.dtype) not in ("object", "str", "string"):
            raise UnsupportedError(f"column {name}: {values.dtype} is not here; next: convert it with `astype` first")
        if text:
            values = values.to_numpy(dtype=object)
        else:
            values = values.to_numpy(dtype=kind, na_value=np.nan if kind.kind == "f" else 0)
    array = np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
    if array.ndim != 1:
        raise ValueError(f"column {name} has {array.ndim} axes")
    if array.dtype == object:
        array, missing = _numbers(array)
    if array.dtype.kind in "OUT":
        return name, dtypes.TEXT, [_text(name, one) for one in array.tolist()], None
    if array.dtype.kind == "f":
        missing = np.isnan(array) if missing is None else missing | np.isnan(array)
    return name, dtypes.name_of(array.dtype), array, missing


def _fields(dtype, values, missing):
    """A column as it is written."""
    if dtype == dtypes.TEXT:
        return values
    fields = values.tolist()
    if dtype in ("f32", "f64"):
        fields = [repr(one) for one in fields]
    elif dtype == "bool":
        fields = ["true" if one else "false" for one in fields]
    if missing is not None and missing.any():
        fields = ["" if gone else one for one, gone in zip(fields, missing.tolist())]
    return fields


def _numbers(array):
    """Objects as numbers, and where there is none; what is no number stays as it is."""
    values = array.tolist()
    missing = np.array([one is None for one in values], bool)
    there = [one for one in values if one is not None]
    for kinds, dtype in ((bool, np.bool_), (int, np.int64), ((int, float), np.float64)):
        if there and all(isinstance(one, kinds) and isinstance(one, bool) == (kinds is bool) for one in there):
            filled = [0 if one is None else one for one in values]
            return np.array(filled, dtype), missing
    return array, None


def _text(name, value):
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    raise UnsupportedError(f"column {name}: {type(value).__name__} among texts")


def _paths(source):
    if isinstance(source, (bytes, bytearray)) or hasattr(source, "read"):
        return [source]
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
        return sorted(glob.glob(text)) if any(sign in text for sign in "*?[") else [text]
    return [one for each in source for one in _paths(each)]


def _read(source):
    if isinstance(source, (bytes, bytearray)):
        return bytes(source)
    if hasattr(source, "read"):
        data = source.read()
        return data.encode() if isinstance(data, str) else data
    with open(source, "rb") as file:
        return file.read()


def _guess(file, sample_rows):
    """Types by column."""
    lines = csv.reader(io.TextIOWrapper(io.BytesIO(file), "utf-8-sig", newline=""), strict=True)
    names = next(lines, [])
    kinds = [set() for _ in names]
    for number, fields in enumerate(lines):
        if number == sample_rows:
            break
        for kind, field in zip(kinds, fields):
            if field:
                kind.add(_kind(field))
    return {name: _common(kind) for name, kind in zip(names, kinds)}


def _kind(field):
    if _WHOLE.match(field):
        return "i64" if -(2**63) <= int(field) < 2**63 else dtypes.TEXT
    if field.strip().lower() in _TRUTHS:
        return "bool"
    try:
        float(field)
    except ValueError:
        return dtypes.TEXT
    return "f64"


def _common(kinds):
    if not kinds or kinds == {"i64", "f64"}:
        return "f64"
    return kinds.pop() if len(kinds) == 1 else dtypes.TEXT


def _cut(file, chunk_bytes):
    """Parts of a file of so many bytes, each with the line of names; rows are not cut, nor are texts with lines in them."""
    if len(file) <= chunk_bytes:
        return [file]
    end_of_names = _row_end(file, 0)
    names, begin, parts = file[:end_of_names], end_of_names, []
    while begin < len(file):
        end = _row_end(file, begin, begin + max(1, chunk_bytes - len(names)))
        parts.append(names + file[begin:end])
        begin = end
    return parts


def _row_end(file, begin, least=0):
    """The end of the first row that ends at `least` or behind; a row begins at `begin`."""
    at, quotes = begin, 0
    while True:
        end = file.find(b"\n", max(at, least - 1))
        end = len(file) if end < 0 else end + 1
        quotes += file.count(b'"', at, end)
        # Within quotes a line ends, and no row.
        if quotes % 2 == 0 or end == len(file):
            return end
        at = end
