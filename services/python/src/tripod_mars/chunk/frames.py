"""Rows and columns of frames."""

import numpy as np

from .frame import Frame


def project(node, inputs):
    names = node.operator["columns"]
    return Frame(names, [inputs[0].column(name) for name in names])


def column(node, inputs):
    """As a tensor, in which nothing is missing but fractions, which become NaN."""
    name = node.operator["name"]
    found = inputs[0].column(name)
    if found.is_text:
        raise TypeError(f"column {name!r} has texts, and a tensor has none")
    missing = found.missing()
    if missing is None:
        return found.values
    if found.values.dtype.kind != "f":
        raise ValueError(f"{int(missing.sum())} values of column {name!r} are missing, and a tensor has all")
    return np.where(missing, np.asarray(np.nan, found.values.dtype), found.values)


def filter_rows(_node, inputs):
    frame, mask = inputs
    if len(mask) != frame.rows:
        raise ValueError(f"a mask of {len(mask)} elements for {frame.rows} rows")
    return frame.take(np.flatnonzero(mask))


def head(node, inputs):
    left, some = node.operator["rows"], []
    for frame in inputs:
        # The first one tells the columns, too.
        if left or not some:
            some.append(frame.slice(0, min(left, frame.rows)))
            left -= some[-1].rows
    return Frame.joined(some)


OPERATORS = {"project": project, "column": column, "filter_rows": filter_rows, "head": head}
