"""Functions of single elements, with numpy's broadcasting and numpy 2's types."""

import numpy as np

from .. import dtypes
from ..errors import UnsupportedError
from .base import as_tensor, broadcast, common_type, is_tensor, make, operand, refuse_out

_BOOL = dtypes.BY_NAME["bool"]
_NEGATIVE = (
    "The numpy boolean negative, the `-` operator, is not supported, use the `~` operator or the logical_not function "
    "instead."
)
_SUBTRACT = (
    "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` operator, or the "
    "logical_xor function instead."
)


def unary(function, value):
    """One of the operators `unary` of a tensor."""
    value = as_tensor(value)
    return make("unary", {"function": function}, [value], value.shape, _unary_type(function, value.dtype))


def _unary_type(function, dtype):
    if function == "not":
        return _BOOL
    if function == "abs":
        return dtype
    if function == "neg" and dtype == _BOOL:
        raise TypeError(_NEGATIVE)
    if dtype == _BOOL:
        raise UnsupportedError(f"`{function}` of bool, which numpy makes another type of; next: use `astype` first")
    return dtype if function in ("neg", "relu") else dtypes.fractional(dtype)


def binary(function, left, right):
    """One of the operators `binary`; one side at least is a tensor, or an array."""
    if dtypes.is_scalar(left) and dtypes.is_scalar(right):
        left = as_tensor(left)
    (left_is, left), (right_is, right) = (_side(left), _side(right))
    common = common_type([left, right])
    if function == "pow" and common.kind == "i" and not is_tensor(right) and right < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    inputs = [side for side in (left, right) if is_tensor(side)]
    attributes = {"function": function, "left": left_is, "right": right_is}
    return make("binary", attributes, inputs, broadcast(*(one.shape for one in inputs)), _type(function, common))


def _side(value):
    written, tensor = operand(value)
    return written, value if tensor is None else tensor


def _type(function, common):
    if function in ("eq", "ne", "lt", "le", "gt", "ge", "and", "or"):
        return _BOOL
    if function == "div":
        return dtypes.fractional(common)
    if common == _BOOL and function == "sub":
        raise TypeError(_SUBTRACT)
    if common == _BOOL and function in ("floordiv", "mod", "pow"):
        raise UnsupportedError(f"`{function}` of bool, which numpy makes an int8 of; next: use `astype` first")
    return common


def _unary_function(function, doc):
    def call(x, out=None):
        refuse_out(out)
        return unary(function, x)

    call.__name__, call.__doc__ = function, doc
    return call


def _binary_function(function, doc):
    def call(x1, x2, out=None):
        refuse_out(out)
        return binary(function, x1, x2)

    call.__name__, call.__doc__ = function, doc
    return call


negative = _unary_function("neg", "-x")
absolute = abs = _unary_function("abs", "The value without its sign.")
sqrt = _unary_function("sqrt", "The root.")
exp = _unary_function("exp", "e to the power of x.")
log = _unary_function("log", "The natural logarithm.")
tanh = _unary_function("tanh", "The hyperbolic tangent.")
sigmoid = _unary_function("sigmoid", "1 / (1 + exp(-x))")
relu = _unary_function("relu", "maximum(x, 0)")
logical_not = _unary_function("not", "Whether it is zero.")

add = _binary_function("add", "x1 + x2")
subtract = _binary_function("sub", "x1 - x2")
multiply = _binary_function("mul", "x1 * x2")
divide = true_divide = _binary_function("div", "x1 / x2")
floor_divide = _binary_function("floordiv", "x1 // x2")
mod = remainder = _binary_function("mod", "x1 % x2, with the sign of x2.")
power = _binary_function("pow", "x1 ** x2")
maximum = _binary_function("max", "The larger one.")
minimum = _binary_function("min", "The smaller one.")
equal = _binary_function("eq", "x1 == x2")
not_equal = _binary_function("ne", "x1 != x2")
less = _binary_function("lt", "x1 < x2")
less_equal = _binary_function("le", "x1 <= x2")
greater = _binary_function("gt", "x1 > x2")
greater_equal = _binary_function("ge", "x1 >= x2")
logical_and = _binary_function("and", "Whether neither is zero.")
logical_or = _binary_function("or", "Whether one of them is not zero.")


def logical_xor(x1, x2):
    """Whether one of them is zero, and the other one is not."""
    return binary("ne", logical_not(x1), logical_not(x2))


def square(x):
    """x * x"""
    return binary("mul", as_tensor(x), x)


def reciprocal(x):
    """1 / x, of fractions."""
    if as_tensor(x).dtype.kind != "f":
        raise UnsupportedError("`reciprocal` of whole numbers, which numpy makes whole numbers of; next: use 1 / x")
    return binary("div", 1, x)


def isnan(x):
    """Whether it is no number."""
    return binary("ne", as_tensor(x), x)


def clip(a, a_min=None, a_max=None):
    """Not below `a_min` and not above `a_max`."""
    found = as_tensor(a)
    found = found if a_min is None else binary("max", found, a_min)
    return found if a_max is None else binary("min", found, a_max)


def bitwise(function, left, right):
    """`&`, `|` and `^`, which are here for booleans alone."""
    sides = [one if dtypes.is_scalar(one) else as_tensor(one) for one in (left, right)]
    if any(common_type([one]) != _BOOL for one in sides):
        raise UnsupportedError(f"`{function}` of bits of whole numbers is not here; between booleans it is")
    return {"&": logical_and, "|": logical_or, "^": not_equal}[function](left, right)


def invert(x):
    """`~`, of booleans."""
    if as_tensor(x).dtype != _BOOL:
        raise UnsupportedError("`~` of bits of whole numbers is not here; of booleans it is")
    return logical_not(x)


def astype(x, dtype):
    """The same elements as another type; the same tensor if they have it."""
    x = as_tensor(x)
    name = dtypes.name_of(dtype)
    if dtypes.BY_NAME[name] == x.dtype:
        return x
    return make("cast", {"dtype": name}, [x], x.shape, dtypes.BY_NAME[name])


def where(condition, x=None, y=None):
    """`x` where the condition is true, else `y`."""
    if x is None or y is None:
        raise UnsupportedError("`where` of a condition alone, which gives places, is not here; next: give both values")
    condition = as_tensor(condition)
    (yes, x), (no, y) = _side(x), _side(y)
    others = [one for one in (x, y) if is_tensor(one)]
    shape = broadcast(condition.shape, *(one.shape for one in others))
    return make("where", {"yes": yes, "no": no}, [condition, *others], shape, common_type([x, y]))


def count_of(values):
    """How many elements a shape has; None if nobody knows."""
    return None if None in values else int(np.prod(values, dtype=object)) if values else 1
