"""Functions of numpy that are called with tensors: those that tensors have are theirs, and the others are refused by name,
so that nothing is fetched unseen."""

import numpy as np

from ..errors import UnsupportedError

_UFUNCS = {
    "absolute", "add", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "exp", "floor_divide", "greater",
    "greater_equal", "invert", "isnan", "less", "less_equal", "log", "logical_and", "logical_not", "logical_or",
    "logical_xor", "matmul", "maximum", "minimum", "multiply", "negative", "not_equal", "power", "reciprocal",
    "remainder", "sqrt", "square", "subtract", "tanh",
}  # fmt: skip
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_FUNCTIONS = {
    "all", "amax", "amin", "any", "argmax", "argmin", "array_split", "clip", "compress", "concatenate", "count_nonzero",
    "dot", "expand_dims", "full_like", "max", "mean", "min", "moveaxis", "ones_like", "prod", "ravel", "reshape", "split",
    "squeeze", "stack", "std", "sum", "swapaxes", "take", "transpose", "var", "where", "zeros_like",
}  # fmt: skip


def ufunc(called, method, inputs, kwargs):
    """For `__array_ufunc__`."""
    from . import elementwise, reduction

    name = called.__name__
    if method == "reduce" and name in _REDUCTIONS:
        # For a ufunc the default is the first axis, and not all of them.
        axis = kwargs.pop("axis", 0)
        return getattr(reduction, _REDUCTIONS[name])(inputs[0], axis=axis, **_given(name, kwargs))
    if method != "__call__" or name not in _UFUNCS:
        raise _missing(name if method == "__call__" else f"{name}.{method}")
    if _given(name, kwargs):
        raise UnsupportedError(f"`{', '.join(kwargs)}` of numpy's `{name}` is not here")
    if name in _BITS:
        return elementwise.bitwise(_BITS[name], *inputs)
    return getattr(reduction if name == "matmul" else elementwise, name)(*inputs)


def function(called, args, kwargs):
    """For `__array_function__`."""
    import tripod_mars.tensor as tensors

    name = called.__name__
    is_top = getattr(np, name, None) is called
    if not is_top or name not in _FUNCTIONS:
        raise _missing(name if is_top else f"{called.__module__}.{name}".replace("numpy.", "", 1))
    try:
        return getattr(tensors, name)(*args, **_given(name, kwargs))
    except TypeError as error:
        if "unexpected keyword" in str(error):
            raise UnsupportedError(f"numpy's `{name}`: {error}") from None
        raise


def _given(name, kwargs):
    """What was really given: numpy passes on what it has defaults for."""
    if kwargs.get("out", None) is not None:
        raise UnsupportedError(f"`out` of numpy's `{name}` is not here: a tensor is what an operator makes")
    return {key: value for key, value in kwargs.items() if key != "out" and value is not np._NoValue}


def _missing(name):
    return UnsupportedError(
        f"numpy's `{name}` is not among the functions of tensors; next: call it with `np.asarray(tensor)`, which executes "
        "and fetches the tensor"
    )
