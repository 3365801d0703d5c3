"""Functions whose arguments and results are bytes of their own kind, and no values of Python.

    raw.register("tripod.mars.chunk", function)

Workers of this process execute the function under that name. It is called with the bytes of the first argument, which
must be in the task itself and are never unpickled, and with views of the objects that are the other ones. Its result is
written by itself, where it is to lie.
"""

from collections.abc import Callable
from operator import index
from typing import NamedTuple, Optional

__all__ = ["Function", "RawInput", "RawResult", "find", "names", "register"]

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
    write: Callable[[memoryview], object]
    metadata_offset: int
    shape: "tuple[int, ...]"
    element_type: int
    bytes: int

    def checked(self) -> "RawResult":
        """The same with integers of Python. Raises `TypeError` or `ValueError` if there can be no such object."""
        size, metadata_offset = index(self.size), index(self.metadata_offset)
        element_type, size_bytes = index(self.element_type), index(self.bytes)
        shape = tuple(map(index, self.shape))
        told = f"size {size}, metadata at {metadata_offset}, shape {shape}, type {element_type}, {size_bytes} bytes"
        if not all(0 <= number < 2**63 for number in (size, metadata_offset, element_type, size_bytes, *shape)):
            raise ValueError(f"a raw result has a number that there cannot be: {told}")
        if metadata_offset % 8 or metadata_offset > size:
            raise ValueError(f"the metadata of a raw result has no place in it that is a multiple of 8: {told}")
        if len(shape) > _AXES_MAX or element_type > _ELEMENT_TYPE_MAX:
            raise ValueError(f"a raw result is more than the cluster takes: {told}")
        return RawResult(size, self.write, metadata_offset, shape, element_type, size_bytes)


# Of an argument's bytes and the inputs.
Function = Callable[[bytes, list[RawInput]], RawResult]

_functions: "dict[str, Function]" = {}


def register(name: str, function: Function) -> None:
    """Workers of this process that begin later execute `function(argument: bytes, inputs: list[RawInput]) -> RawResult`
    under the name. An exception is a failed task."""
    if not callable(function):
        raise TypeError("only functions can be registered")
    _functions[name] = function


def find(name: str) -> "Optional[Function]":
    """The function of a name, or None."""
    return _functions.get(name)


def names() -> "list[str]":
    """All of them, ascending."""
    return sorted(_functions)
