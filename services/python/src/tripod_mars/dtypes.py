"""Types of elements: the five that tensors have, texts as columns of frames, and what comes of two types as numpy 2 has
it. A number of Python has a kind but no width; one of numpy has a width."""

import numpy as np

from .chunk.dtypes import BY_NAME, NUMBERS, TEXT
from .chunk.dtypes import NAMES as BY_NUMBER
from .errors import UnsupportedError

# Those of chunks are the client's, too.
__all__ = ["BY_NAME", "BY_NUMBER", "NAMES", "NUMBERS", "TEXT"]

# What tensors have.
NAMES = tuple(BY_NAME)

_NAME_OF = {dtype: name for name, dtype in BY_NAME.items()}
_I32, _I64 = np.iinfo(np.int32), np.iinfo(np.int64)


def name_of(dtype):
    """The name of a type, which may be anything that `np.dtype` takes. Raises `UnsupportedError`."""
    found = np.dtype(dtype)
    name = _NAME_OF.get(found.newbyteorder("="))
    if name is None:
        raise UnsupportedError(
            f"elements of type {found} are not among bool, int32, int64, float32 and float64; next: convert them with "
            "`astype` first"
        )
    return name


def is_scalar(value):
    """Whether it is a number of Python, without a width."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def written(value):
    """A number as it stands among attributes."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        value = int(value)
        if not _I64.min <= value <= _I64.max:
            raise OverflowError(f"Python integer {value} out of bounds for int64")
        return value
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    raise UnsupportedError(f"{type(value).__name__} is no number of Python or numpy that tensors have")


def promote(left, right):
    """What two arrays of these types have in common."""
    return np.promote_types(left, right)


def with_scalar(dtype, value):
    """What an array of a type and a number of Python have in common."""
    if isinstance(value, bool) or dtype.kind == "f":
        return dtype
    if isinstance(value, int):
        if dtype == BY_NAME["i32"] and not _I32.min <= value <= _I32.max:
            raise OverflowError(f"Python integer {value} out of bounds for int32")
        if not _I64.min <= value <= _I64.max:
            raise OverflowError(f"Python integer {value} out of bounds for int64")
        return BY_NAME["i64"] if dtype.kind == "b" else dtype
    return BY_NAME["f64"]


def of_scalar(value):
    """What numpy makes of a number alone."""
    if isinstance(value, bool):
        return BY_NAME["bool"]
    if isinstance(value, int):
        written(value)
        return BY_NAME["i64"]
    return BY_NAME["f64"]


def fractional(dtype):
    """What a quotient or a root of such elements is."""
    return dtype if dtype == BY_NAME["f32"] else BY_NAME["f64"]


def summed(dtype):
    """What a sum or a product of such elements is."""
    return dtype if dtype.kind == "f" else BY_NAME["i64"]


def check_value(value, dtype):
    """Whether elements of a type can hold a number. Raises `OverflowError`."""
    if dtype.kind != "i":
        return
    bounds = np.iinfo(dtype)
    if isinstance(value, float):
        if value != value or not bounds.min <= int(value if abs(value) < 2**70 else 2**70) <= bounds.max:
            raise OverflowError(f"{value} has no place in {dtype}")
    elif not bounds.min <= value <= bounds.max:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
