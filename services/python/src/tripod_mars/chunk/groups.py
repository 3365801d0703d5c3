"""Rows with equal values, together.

As with pandas: groups are in the order of their keys, rows in which a key is missing are in none, and values that are
missing count for nothing. So the sum of nothing is 0, and the least of nothing is missing.

A partial result is a frame: the keys, and for each aggregate one column, or sum and count for a mean. Sums of fractions
have 64 bits in it.
"""

import numpy as np

from . import dtypes
from .frame import Column, Frame
from .partial import Partial, flattened, framed
from .text import Text

KIND = "groups"


def group_by(node, inputs):
    operator = node.operator
    by, aggregates = operator["by"], operator["aggregates"]
    if operator["takes"] == "values":
        keys = [inputs[0].column(name) for name in by]
        values = [inputs[0].column(aggregate["column"]) for aggregate in aggregates]
        steps = [_STEPS[aggregate["function"]] for aggregate in aggregates]
    else:
        frame = Frame.joined([frame_of(partial) for partial in inputs])
        keys, values = frame.columns[: len(by)], frame.columns[len(by) :]
        steps = [(_MERGES[kind],) for aggregate in aggregates for kind in _KINDS[aggregate["function"]]]
    keys, rows = _complete(keys)
    groups = _Groups(keys)
    columns = list(groups.keys)
    for value, step in zip(values, steps):
        value = value if rows is None else value.take(rows)
        columns.extend(function(groups, value) for function in step)
    if operator["gives"] == "partial":
        names = by + [f"{at}" for at in range(len(columns) - len(by))]
        return partial_of(Frame(names, columns))
    return _finished(columns, len(by), aggregates, node.columns)


def partial_of(frame):
    described, arrays = flattened(frame)
    return Partial(KIND, described, arrays)


def frame_of(partial):
    return framed(partial.check(KIND).attributes, partial.arrays)


def _complete(keys):
    """Keys without rows in which one is missing, and which rows those are, or None: all."""
    missing = None
    for key in keys:
        is_missing = key.missing()
        if is_missing is not None:
            missing = is_missing if missing is None else missing | is_missing
    if missing is None:
        return keys, None
    rows = np.flatnonzero(~missing)
    return [key.take(rows) for key in keys], rows


class _Groups:
    """In which order rows are group by group, and where each group begins there."""

    def __init__(self, keys):
        ranks = [key.values.ranks()[1] if key.is_text else key.values for key in keys]
        # The last one decides first.
        self.order = np.lexsort(ranks[::-1])
        changes = np.zeros(len(self.order), np.bool_)
        changes[:1] = True
        for rank in ranks:
            rank = rank[self.order]
            changes[1:] |= rank[1:] != rank[:-1]
        self.begins = np.flatnonzero(changes)
        firsts = self.order[self.begins]
        self.keys = [Column(key.dtype, key.take(firsts).values) for key in keys]

    def reduce(self, function, values):
        """A function of two, of all values of each group."""
        if not len(self.begins):
            return values[:0]
        return function.reduceat(values[self.order], self.begins)


def _sum(groups, column):
    values, missing = column.values, column.missing()
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if missing is not None:
        values[missing] = 0
    return Column("f64" if values.dtype.kind == "f" else "i64", groups.reduce(np.add, values))


def _fractional_sum(groups, column):
    return _sum(groups, Column("f64", column.values.astype(np.float64), column.valid))


def _count(groups, column):
    missing = column.missing()
    there = np.ones(len(column), np.int64) if missing is None else (~missing).astype(np.int64)
    return Column("i64", groups.reduce(np.add, there))


def _extreme(groups, column, is_most):
    missing = column.missing()
    values, distinct = column.values, None
    if column.is_text:
        distinct, values = values.ranks(missing)
    if missing is not None:
        values = np.where(missing, _identity(values.dtype, is_most), values)
    found = groups.reduce(np.maximum if is_most else np.minimum, values)
    valid = None
    if missing is not None:
        valid = groups.reduce(np.logical_or, ~missing)
    if distinct is not None:
        if valid is not None:
            found = np.where(valid, found, 0)
            # There is something to take even if all texts are missing.
            distinct = distinct if len(distinct) else Text.of([b""])
        return Column(dtypes.TEXT, distinct.take(found), valid)
    if valid is not None and found.dtype.kind == "f":
        return Column(column.dtype, np.where(valid, found, np.asarray(np.nan, found.dtype)))
    return Column(column.dtype, found, valid)


def _identity(dtype, is_most):
    """What is chosen only if there is nothing else."""
    if dtype.kind == "b":
        return np.bool_(not is_most)
    if dtype.kind == "f":
        return dtype.type(-np.inf if is_most else np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if is_most else limits.max)


def _least(groups, column):
    return _extreme(groups, column, False)


def _most(groups, column):
    return _extreme(groups, column, True)


_STEPS = {
    "sum": (_sum,),
    "count": (_count,),
    "min": (_least,),
    "max": (_most,),
    "mean": (_fractional_sum, _count),
}
# What the columns of a partial result are, by function, and how each is merged.
_KINDS = {"sum": ("sum",), "count": ("sum",), "min": ("min",), "max": ("max",), "mean": ("sum", "sum")}
_MERGES = {"sum": _sum, "min": _least, "max": _most}


def _finished(columns, keys, aggregates, wanted):
    """The frame of the result, in the types that it has."""
    rest, results = iter(columns[keys:]), list(columns[:keys])
    for aggregate, (_, dtype) in zip(aggregates, wanted[keys:]):
        column = next(rest)
        if aggregate["function"] == "mean":
            column = Column("f64", column.values / next(rest).values)
        if column.dtype != dtype:
            column = Column(dtype, column.values.astype(dtypes.BY_NAME[dtype]), column.valid)
        results.append(column)
    return Frame([name for name, _ in wanted], results)


OPERATORS = {"group_by": group_by}
