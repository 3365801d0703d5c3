"""Functions of all elements along some axes, and products of matrices."""

import builtins

from .. import dtypes
from ..errors import UnsupportedError
from .base import as_tensor, check_axis, check_axes, make, refuse_out, shown
from .elementwise import sqrt

# Types of results that are the same for all elements.
_RESULTS = {"any": "bool", "all": "bool", "count": "i64", "argmax": "i64", "argmin": "i64"}


def reduce(function, a, axis=None, keepdims=False, ddof=0):
    """One of the operators `reduce`."""
    a = as_tensor(a)
    is_place = function in ("argmax", "argmin")
    if is_place and axis is not None:
        axis = check_axis(axis, a.ndim)
    axes = check_axes(axis, a.ndim)
    if function in ("max", "min", "argmax", "argmin"):
        _check_some(function, a, axes)
    if not isinstance(ddof, int) or ddof < 0:
        raise UnsupportedError("`ddof` is a whole number that is not negative")
    if keepdims:
        shape = [1 if at in axes else extent for at, extent in enumerate(a.shape)]
    else:
        shape = [extent for at, extent in enumerate(a.shape) if at not in axes]
    attributes = {"function": function, "axes": None if axis is None else axes, "keepdims": bool(keepdims), "ddof": ddof}
    return make("reduce", attributes, [a], shape, _type(function, a.dtype))


def _check_some(function, a, axes):
    """As numpy: also where the result would have no elements. Of extents that only execution tells the worker says so."""
    if builtins.all(a.shape[axis] != 0 for axis in axes):
        return
    if function in ("argmax", "argmin"):
        raise ValueError(f"attempt to get {function} of an empty sequence")
    name = {"max": "maximum", "min": "minimum"}[function]
    raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def _type(function, dtype):
    if function in _RESULTS:
        return dtypes.BY_NAME[_RESULTS[function]]
    if function in ("sum", "prod"):
        return dtypes.summed(dtype)
    if function in ("mean", "var"):
        return dtypes.fractional(dtype)
    return dtype


def _function(function, doc):
    def call(a, axis=None, dtype=None, out=None, keepdims=False):
        refuse_out(out)
        a = as_tensor(a)
        return reduce(function, a if dtype is None else a.astype(dtype), axis, keepdims)

    call.__name__, call.__doc__ = function, doc
    return call


def _plain_function(function, doc):
    def call(a, axis=None, out=None, keepdims=False):
        refuse_out(out)
        return reduce(function, a, axis, keepdims)

    call.__name__, call.__doc__ = function, doc
    return call


sum = _function("sum", "The sum along axes; `dtype`: of which type the elements are added.")
prod = _function("prod", "The product along axes.")
mean = _function("mean", "The mean along axes.")
max = amax = _plain_function("max", "The largest one.")
min = amin = _plain_function("min", "The smallest one.")
any = _plain_function("any", "Whether one of them is not zero.")
all = _plain_function("all", "Whether none of them is zero.")
argmax = _plain_function("argmax", "The place of the first one of the largest.")
argmin = _plain_function("argmin", "The place of the first one of the smallest.")


def count_nonzero(a, axis=None, keepdims=False):
    """How many are not zero."""
    return reduce("count", a, axis, keepdims)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    """The variance; `ddof` is taken from the number of elements."""
    refuse_out(out)
    a = as_tensor(a)
    return reduce("var", a if dtype is None else a.astype(dtype), axis, keepdims, ddof)


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    """The root of the variance."""
    return sqrt(var(a, axis, dtype, out, ddof, keepdims))


def matmul(a, b):
    """The product of tensors of one or two axes."""
    a, b = as_tensor(a), as_tensor(b)
    for place, one in enumerate((a, b)):
        if one.ndim == 0:
            raise ValueError(f"matmul: Input operand {place} does not have enough dimensions")
        if one.ndim > 2:
            raise UnsupportedError("`matmul` of more than two axes is not here")
    inner = (a.shape[-1], b.shape[0])
    if None not in inner and inner[0] != inner[1]:
        raise ValueError(
            f"matmul: shapes {shown(a.shape)} and {shown(b.shape)} not aligned: {inner[0]} (dim {a.ndim - 1}) != "
            f"{inner[1]} (dim 0)"
        )
    return make("matmul", {}, [a, b], (*a.shape[:-1], *b.shape[1:]), dtypes.promote(a.dtype, b.dtype))


def dot(a, b):
    """The same, and a product with a number."""
    if dtypes.is_scalar(a) or dtypes.is_scalar(b) or not as_tensor(a).ndim or not as_tensor(b).ndim:
        from .elementwise import multiply

        return multiply(a, b)
    return matmul(a, b)
