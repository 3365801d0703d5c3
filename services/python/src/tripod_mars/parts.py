"""What an index picks of a tensor that is cut into chunks: of which chunks, which part of each, and where that goes."""

import itertools

from . import wire


def resolve(index, extent):
    """The first element, the step and the number of elements that a slice picks."""
    start, stop, step = index.indices(extent)
    count = len(range(start, stop, step))
    return start, step, count


class Piece:
    """What an axis gives from one of its parts: `local` in the chunk, which is a slice, an int or None for all of it, and
    `where` in the result, None if the axis is dropped."""

    __slots__ = ("part", "local", "where")

    def __init__(self, part, local, where):
        self.part = part
        self.local = local
        self.where = where


def axis_pieces(extents, index):
    """Pieces of one axis of such parts, and the extent of the result, None if the axis is dropped."""
    total = sum(extents)
    if isinstance(index, int):
        if not -total <= index < total:
            raise IndexError(f"index {index} is out of bounds for an axis with size {total}")
        place, begin = index % total, 0
        for part, extent in enumerate(extents):
            if place < begin + extent:
                return [Piece(part, place - begin, None)], None
            begin += extent
    start, step, count = resolve(index, total)
    places = range(start, start + step * count, step) if count else range(0)
    pieces, begin = [], 0
    for part, extent in enumerate(extents):
        within = _within(places, begin, begin + extent)
        if len(within):
            first = places.index(within[0])
            picked = len(within)
            whole = picked == extent and step == 1
            last = within[-1] - begin
            stop = last + (1 if step > 0 else -1)
            local = None if whole else slice(within[0] - begin, None if stop < 0 else stop, step)
            pieces.append(Piece(part, local, slice(first, first + picked)))
        begin += extent
    return pieces, count


def _within(places, low, high):
    """Those of a range of places that are at least `low` and below `high`, in their order."""
    if not len(places) or low >= high:
        return range(0)
    step = places.step
    if step > 0:
        first = max(0, -(-(low - places.start) // step))
        end = max(0, -(-(high - places.start) // step))
    else:
        first = max(0, -(-(places.start - (high - 1)) // -step))
        end = max(0, -(-(places.start - (low - 1)) // -step))
    return places[min(first, len(places)) : min(end, len(places))]


def pieces(splits, index):
    """The shape of the result, and for each chunk that has some of it: its place among the chunks (the last axis first), what
    to ask of it (None: all) and where that goes. `index` has a slice or an int for each axis, or for the first ones."""
    index = tuple(index) + (slice(None),) * (len(splits) - len(index))
    axes, shape = [], []
    for extents, one in zip(splits, index):
        found, extent = axis_pieces(extents, one)
        axes.append(found)
        if extent is not None:
            shape.append(extent)
    wanted = []
    for combination in itertools.product(*axes):
        place = 0
        for piece, extents in zip(combination, splits):
            place = place * len(extents) + piece.part
        where = tuple(piece.where for piece in combination if piece.where is not None)
        locals_ = [piece.local for piece in combination]
        ask = None if all(one is None for one in locals_) else message(locals_)
        wanted.append((place, ask, where))
    return tuple(shape), wanted


def message(index):
    """An `Index`; None among them is everything."""
    found = wire.Index()
    for one in index:
        dim = found.dims.add()
        if one is None:
            dim.slice.SetInParent()
        elif isinstance(one, slice):
            dim.slice.SetInParent()
            for name in ("start", "stop", "step"):
                value = getattr(one, name)
                if value is not None:
                    setattr(dim.slice, name, value)
        elif isinstance(one, int):
            dim.integer = one
        else:
            dim.list.integers.extend(int(place) for place in one)
    return found
