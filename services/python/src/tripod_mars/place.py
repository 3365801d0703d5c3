"""The line of the program that made a tensor: the nearest one outside of this package and of numpy."""

import linecache
import os
import sys

import numpy as np

_INSIDE = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, np.__file__)
)


class Line:
    """A file and a number; the text is read when somebody wants to see it."""

    __slots__ = ("file", "number", "function")

    def __init__(self, file, number, function):
        self.file = file
        self.number = number
        self.function = function

    def __str__(self):
        text = linecache.getline(self.file, self.number).strip()
        where = f"{self.file}:{self.number}, in {self.function}"
        return f"{where}\n    {text}" if text else where


def here():
    """The line that is running outside."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_INSIDE):
            return Line(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return Line("?", 0, "?")
