"""Declared types of arguments and results, as the functions of 2016 had them."""

import functools

from .reference import ObjectRef


class Types:
    """What a function takes and returns."""

    def __init__(self, arguments, results):
        self.arguments = tuple(map(_checked, arguments))
        self.results = tuple(map(_checked, results))

    def check_arguments(self, name, call):
        """Raises `TypeError` if a value is of another type; `call` are positional ones and pairs of those by
        name. A function without declared arguments takes none."""
        positional, named = call
        values = (*positional, *(value for _, value in named))
        if values and not self.arguments:
            raise TypeError(f"{name} is declared without arguments, and was given {len(values)}")
        for place, value in enumerate(values):
            _check(value, self.arguments[min(place, len(self.arguments) - 1)], f"argument {place} of {name}")

    def check_results(self, name, returned):
        """The same for what the function returned."""
        values = (returned,) if len(self.results) == 1 else returned
        # Whether there are as many as declared is the worker's business.
        for place, (value, wanted) in enumerate(zip(values or (), self.results)):
            _check(value, wanted, f"result {place} of {name}")


class Typed:
    """A function as workers get it, with its types."""

    def __init__(self, function, types):
        functools.update_wrapper(self, function)
        self._call = function
        self._types = types

    def __call__(self, *args, **kwargs):
        name = f"{self.__module__}.{self.__qualname__}"
        self._types.check_arguments(name, (args, tuple(kwargs.items())))
        returned = self._call(*args, **kwargs)
        if len(self._types.results) == 1 or isinstance(returned, (tuple, list)):
            self._types.check_results(name, returned)
        return returned


def _checked(wanted):
    if wanted is None:
        return type(None)
    if not isinstance(wanted, type):
        raise TypeError(f"{wanted!r} is not a type")
    return wanted


def _check(value, wanted, what):
    if not isinstance(value, (wanted, ObjectRef)):
        raise TypeError(f"{what} is declared {wanted.__name__}, and is {type(value).__name__}")
