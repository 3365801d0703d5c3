"""Functions of all elements along some axes, in one step or by partial results.

All elements of a partial result come of equally many elements, so how many, and whether there were any, are single
numbers. Partial results keep their reduced axes, of extent 1. Fractions of means and variances have 64 bits on the way;
sums and products have those of the result.
"""

import math

import numpy as np

from . import several
from .partial import Partial

KIND = "reduction"
# Merged by a function of two arrays, without anything beside them.
_SIMPLE = {
    "sum": np.add,
    "prod": np.multiply,
    "any": np.logical_or,
    "all": np.logical_and,
    "count": np.add,
}
_EXTREMES = {"max": np.maximum, "min": np.minimum}


def reduce(node, inputs):
    operator = node.operator
    reduction = operator["reduction"]
    if operator["takes"] == "values":
        if operator["gives"] == "result":
            return _whole(reduction, operator, inputs[0], node)
        state = _state(reduction, operator, inputs[0], {})
    else:
        state = _merged(reduction["function"], inputs)
    if operator["gives"] == "partial":
        return state
    return _finished(reduction, state, node.dtype)


def reduce_several(node, inputs):
    """Partial results of one chunk. What two of them need is computed once."""
    totals = {}
    parts = node.operator["parts"]
    return several.together([_state(part["reduction"], part, inputs[0], totals) for part in parts])


def reduce_tree(node, inputs):
    """Partial results, merged as nodes of their own would merge them."""
    operator = node.operator
    function = operator["reduction"]["function"]
    apart = [several.apart(partial) for partial in inputs]
    merged = [apart[place][part] for place, part in operator["leaves"]]
    for group in operator["groups"]:
        if any(merged[place] is None for place in group):
            raise ValueError(f"the group {group} merges again what was merged before")
        merged.append(_merged(function, [merged[place] for place in group]))
        # Each is merged once, and need not stay.
        for place in group:
            merged[place] = None
    if operator["gives"] == "partial":
        return merged[-1]
    return _finished(operator["reduction"], merged[-1], node.dtype)


def _counted(array, axes):
    return math.prod(array.shape[axis] for axis in axes)


def _whole(reduction, operator, array, node):
    """All at once, and exactly as numpy."""
    function, axes, keepdims = reduction["function"], tuple(reduction["axes"]), reduction["keepdims"]
    if function == "count":
        return np.count_nonzero(array, axis=axes, keepdims=keepdims)
    if function == "mean":
        total = np.sum(array, axis=axes, keepdims=keepdims, dtype=node.dtype)
        return np.true_divide(total, _counted(array, axes), dtype=node.dtype)
    # Numpy warns of variances of too few elements. Where places are found, axes are one or all.
    fewest = {"var": reduction["ddof"], "max": 0, "min": 0}.get(function, -1)
    if _counted(array, axes) <= fewest or function in ("argmax", "argmin"):
        return _finished(reduction, _state(reduction, operator, array, {}), node.dtype)
    if function == "var":
        return np.var(array, axis=axes, keepdims=keepdims, ddof=reduction["ddof"])
    return getattr(np, function)(array, axis=axes, keepdims=keepdims)


# ---- What is known of the elements of one chunk ----


def _state(reduction, operator, array, totals):
    """`totals`: sums of this chunk as fractions, by axes, which means and variances share."""
    function, axes = reduction["function"], tuple(reduction["axes"])
    if function in _SIMPLE:
        make = np.count_nonzero if function == "count" else getattr(np, function)
        return _partial(function, {}, [make(array, axis=axes, keepdims=True)])
    count = _counted(array, axes)
    if function in _EXTREMES:
        if count == 0:
            return _partial(function, {"seen": False}, [_nothing(array, axes)])
        return _partial(function, {"seen": True}, [getattr(np, function)(array, axis=axes, keepdims=True)])
    if function in ("mean", "var"):
        total = totals.get(axes)
        if total is None:
            total = totals[axes] = np.sum(array, axis=axes, keepdims=True, dtype=np.float64)
        if function == "mean":
            return _partial(function, {"count": count}, [total])
        mean = total / count if count else np.zeros_like(total)
        squares = array - mean
        squares *= squares
        squares = np.sum(squares, axis=axes, keepdims=True)
        return _partial(function, {"count": count}, [mean, squares])
    if count == 0:
        nothing = _nothing(array, axes)
        return _partial(function, {"seen": False}, [nothing, np.zeros(nothing.shape, np.int64)])
    find = np.argmax if function == "argmax" else np.argmin
    return _partial(function, {"seen": True}, _found(find, array, axes, operator))


def _partial(function, attributes, arrays):
    # As they would come from a store.
    arrays = [np.asarray(array, order="C") for array in arrays]
    return Partial(KIND, {"function": function, **attributes}, arrays)


def _nothing(array, axes):
    shape = [1 if axis in axes else extent for axis, extent in enumerate(array.shape)]
    return np.zeros(shape, array.dtype)


def _found(find, array, axes, operator):
    """The first of the extreme elements, and its place in the whole: along the axis, or among all in C order."""
    # Without axes they are not there.
    begin, whole = operator.get("begin", ()), operator.get("whole", ())
    if len(axes) == 1:
        (axis,) = axes
        places = find(array, axis=axis, keepdims=True)
        return [np.take_along_axis(array, places, axis), places + begin[0]]
    if len(axes) != array.ndim:
        raise ValueError("a place is found along one axis or all")
    index = np.unravel_index(find(array), array.shape) if array.ndim else ()
    place = 0
    for at, first, extent in zip(index, begin, whole):
        place = place * extent + first + int(at)
    shape = (1,) * array.ndim
    return [np.asarray(array[index]).reshape(shape), np.full(shape, place, np.int64)]


# ---- Merging, from the first to the last ----


def _merged(function, partials):
    for partial in partials:
        if partial.check(KIND).attributes["function"] != function:
            raise TypeError(f"a partial result of {partial.attributes['function']} where {function} is expected")
    if function in _SIMPLE:
        (total,) = partials[0].arrays
        for partial in partials[1:]:
            total = _SIMPLE[function](total, partial.arrays[0])
        return _partial(function, {}, [total])
    if function in ("mean", "var"):
        return _merged_moments(function, partials)
    # Those without elements count for nothing; if all are, any of them is like the others.
    seen = [partial for partial in partials if partial.attributes["seen"]]
    if len(seen) < 2:
        return (seen or partials)[0]
    arrays = seen[0].arrays
    for partial in seen[1:]:
        if function in _EXTREMES:
            arrays = [_EXTREMES[function](arrays[0], partial.arrays[0])]
        else:
            arrays = _better(function, arrays, partial.arrays)
    return _partial(function, {"seen": True}, arrays)


def _merged_moments(function, partials):
    count, arrays = partials[0].attributes["count"], partials[0].arrays
    for partial in partials[1:]:
        other = partial.attributes["count"]
        if function == "mean":
            arrays = [arrays[0] + partial.arrays[0]]
        elif other:
            (mean, squares), (other_mean, other_squares) = arrays, partial.arrays
            delta = other_mean - mean
            mean = mean + delta * (other / (count + other))
            squares = squares + other_squares + delta * delta * (count * other / (count + other))
            arrays = [mean, squares]
        count += other
    return _partial(function, {"count": count}, arrays)


def _better(function, one, two):
    """Of equal values the one of the lowest place. As with numpy, NaN is more extreme than all numbers."""
    (value, place), (other, other_place) = one, two
    wins = other > value if function == "argmax" else other < value
    equal = other == value
    if value.dtype.kind == "f":
        nan, other_nan = np.isnan(value), np.isnan(other)
        wins = (wins & ~nan) | (other_nan & ~nan)
        equal |= nan & other_nan
    wins |= equal & (other_place < place)
    return [np.where(wins, other, value), np.where(wins, other_place, place)]


# ---- The result ----


def _finished(reduction, state, dtype):
    function, arrays = reduction["function"], state.arrays
    if not state.attributes.get("seen", True):
        raise ValueError(f"{function} of no elements, along axes {reduction['axes']}")
    result = arrays[1] if function in ("argmax", "argmin") else arrays[0]
    if function == "mean":
        result = np.true_divide(result, state.attributes["count"])
    elif function == "var":
        result = np.true_divide(arrays[1], max(state.attributes["count"] - reduction["ddof"], 0))
    result = np.asarray(result).astype(dtype, copy=False)
    if reduction["keepdims"]:
        return result
    return result.reshape([e for axis, e in enumerate(result.shape) if axis not in reduction["axes"]])


OPERATORS = {"reduce": reduce, "reduce_several": reduce_several, "reduce_tree": reduce_tree}
