"""Functions whose arguments and results are bytes of their own kind, and no values of Python.

    raw.register("tripod.mars.chunk", function)

Workers of this process execute the function under that name. It is called with the bytes of the first argument, which
must be in the task itself and are never unpickled, and with views of the objects that are the other ones. Its result is
written by itself, where it is to lie.
"""

from collections.abc import Callable
from typing import NamedTuple

# As the scheduler takes them: what it cannot read at all would end the worker's registration.
_AXES_MAX = 64
_ELEMENT_TYPE_MAX = 255


class RawInput(NamedTuple):
    """An object as it lies in the store. It may be looked at as long as something refers to `data`."""

    data: memoryview
    metadata_offset: int


class RawResult(NamedTuple):
    """An object of `size` bytes. `write(memory)` fills all of it, and keeps nothing that refers to it. `shape`,
    `element_type` (a number of `mars.v1.ElementType`; 0: no tensor) and `bytes`, those of its elements, are told to the
    cluster for who asks about the object without reading it."""

    size: int
    write: Callable
    metadata_offset: int
    shape: tuple
    element_type: int
    bytes: int

    def check(self):
        """Raises `ValueError` if it cannot be such an object."""
        numbers = (self.size, self.metadata_offset, self.element_type, self.bytes, *self.shape)
        if not all(isinstance(number, int) and 0 <= number < 2**63 for number in numbers):
            raise ValueError(f"a raw result has a number that is none, or is negative: {self._replace(write=None)}")
        placed = self.metadata_offset % 8 == 0 and self.metadata_offset <= self.size
        if not placed or len(self.shape) > _AXES_MAX or self.element_type > _ELEMENT_TYPE_MAX:
            raise ValueError(f"a raw result is wrong: {self._replace(write=None)}")


_functions = {}


def register(name, function):
    """Workers of this process that begin later execute `function(argument: bytes, inputs: list[RawInput]) -> RawResult`
    under the name. An exception is a failed task."""
    if not callable(function):
        raise TypeError("only functions can be registered")
    _functions[name] = function


def find(name):
    """The function of a name, or None."""
    return _functions.get(name)


def names():
    """All of them, ascending."""
    return sorted(_functions)
