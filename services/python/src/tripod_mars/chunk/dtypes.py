"""Types of elements: their names in operators, their numbers in objects (`mars.v1.ElementType`), and numpy's own."""

import numpy as np

TEXT = "text"
# As they lie in objects.
BY_NAME = {
    "bool": np.dtype(np.bool_),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
    "f32": np.dtype("<f4"),
    "f64": np.dtype("<f8"),
}
NUMBERS = {"bool": 1, "i32": 2, "i64": 3, "f32": 4, "f64": 5, TEXT: 6}
NAMES = {number: name for name, number in NUMBERS.items()}
# By type and byte order, since a big-endian array is one of these, too.
_NAMES_OF = {dtype.newbyteorder(order): name for name, dtype in BY_NAME.items() for order in "<>"}


def name_of(dtype):
    """Raises `TypeError` for a type that no chunk has."""
    try:
        return _NAMES_OF[dtype]
    except KeyError:
        raise TypeError(f"no chunk has elements of {dtype}") from None


def number(scalar):
    """A number among attributes: fractions are text, so that `nan` has a form."""
    return float(scalar) if isinstance(scalar, str) else scalar
