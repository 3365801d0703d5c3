"""Several partial results as one, for whoever takes one of them."""

from .partial import Partial

KIND = "several"


def together(partials):
    """One partial result that has all of them."""
    described = [(one.kind, one.attributes, len(one.arrays)) for one in partials]
    return Partial(KIND, described, [array for one in partials for array in one.arrays])


def apart(partial):
    """All that it has: itself, if it is a single one."""
    if partial.kind != KIND:
        return [partial]
    found, begin = [], 0
    for kind, attributes, count in partial.attributes:
        found.append(Partial(kind, attributes, partial.arrays[begin : begin + count]))
        begin += count
    return found
