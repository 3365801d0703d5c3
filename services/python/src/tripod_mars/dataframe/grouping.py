"""Rows with equal values in some columns, and what is made of them."""

from .. import dtypes
from ..errors import UnsupportedError
from ..graph import FrameContent, Node

FUNCTIONS = ("sum", "count", "min", "max", "mean")


class GroupBy:
    """A frame and the columns by which its rows are grouped."""

    def __init__(self, frame, by, reducers, selected=None):
        self._frame = frame
        self._by = by
        self._reducers = reducers
        self._selected = selected

    def __getitem__(self, columns):
        """Of these columns alone."""
        columns = [columns] if isinstance(columns, str) else list(columns)
        for name in columns:
            self._frame.type_of(name)
        return GroupBy(self._frame, self._by, self._reducers, columns)

    def agg(self, functions=None, **named):
        """A frame with a row for each group: the columns by which it is grouped, and those that are made.

        `functions` is the name of one (sum, count, min, max, mean) for all columns, or a dict of columns with one or with a
        list; of several the columns are called `COLUMN_FUNCTION`. By name: `total=("v", "sum")`.
        """
        wanted = [*self._by_dict(functions), *((name, *pair) for name, pair in named.items())]
        if not wanted:
            raise TypeError("Must provide 'func' or tuples of '**kwargs'")
        return self._make(wanted)

    aggregate = agg

    def sum(self):
        return self.agg("sum")

    def count(self):
        return self.agg("count")

    def min(self):
        return self.agg("min")

    def max(self):
        return self.agg("max")

    def mean(self):
        return self.agg("mean")

    def _by_dict(self, functions):
        if functions is None:
            return
        if isinstance(functions, str):
            functions = dict.fromkeys(self._columns(functions), functions)
        elif isinstance(functions, (list, tuple)):
            functions = dict.fromkeys(self._columns(""), list(functions))
        for column, each in functions.items():
            if isinstance(each, str):
                yield column, column, each
            else:
                yield from ((f"{column}_{function}", column, function) for function in each)

    def _columns(self, function):
        """What is meant if no column is named."""
        if self._selected is not None:
            return self._selected
        others = [name for name in self._frame.columns if name not in self._by]
        if function in ("sum", "mean"):
            others = [name for name in others if self._frame.type_of(name) != dtypes.TEXT]
        return others

    def _make(self, wanted):
        columns = [(name, self._frame.type_of(name)) for name in self._by]
        aggregates = []
        for name, column, function in wanted:
            columns.append((name, _type(function, column, self._frame.type_of(column))))
            aggregates.append({"column": column, "function": function, "name": name})
        names = [name for name, _ in columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"two columns of the result are called {twice[0]}; next: name them, `{twice[0]}_2=(...)`")
        attributes = {"by": self._by, "aggregates": aggregates, "reducers": self._reducers}
        node = Node("group_by", attributes, [self._frame.node], FrameContent(columns))
        return type(self._frame).of(node)


def _type(function, column, dtype):
    if function not in FUNCTIONS:
        raise UnsupportedError(f"groups have no `{function}`; there are {', '.join(FUNCTIONS)}")
    if function == "count":
        return "i64"
    if function in ("min", "max"):
        return dtype
    if dtype == dtypes.TEXT:
        raise UnsupportedError(f"texts, as in column {column}, have no `{function}`")
    of = dtypes.BY_NAME[dtype]
    return dtypes.name_of(dtypes.summed(of) if function == "sum" else dtypes.fractional(of))
