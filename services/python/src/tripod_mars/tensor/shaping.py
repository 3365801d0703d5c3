"""Other shapes, and tensors of several tensors."""

from .. import dtypes
from ..errors import UnsupportedError
from .base import as_tensor, check_axis, check_axes, check_shape, chunking, make, shown
from .elementwise import count_of
from .indexing import expand_dims

__all__ = [
    "array_split",
    "concatenate",
    "expand_dims",
    "moveaxis",
    "ravel",
    "rechunk",
    "reshape",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "transpose",
]


def transpose(a, axes=None):
    """With its axes in another order; None: the last one first."""
    a = as_tensor(a)
    axes = list(range(a.ndim))[::-1] if axes is None else check_axes(tuple(axes), a.ndim)
    if len(axes) != a.ndim:
        raise ValueError("axes don't match array")
    return make("transpose", {"axes": axes}, [a], [a.shape[axis] for axis in axes], a.dtype)


def swapaxes(a, axis1, axis2):
    """With two axes exchanged."""
    a = as_tensor(a)
    axes = list(range(a.ndim))
    first, second = check_axis(axis1, a.ndim), check_axis(axis2, a.ndim)
    axes[first], axes[second] = second, first
    return transpose(a, axes)


def moveaxis(a, source, destination):
    """With axes at other places."""
    a = as_tensor(a)
    source, destination = check_axes(source, a.ndim), check_axes(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    axes = [axis for axis in range(a.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        axes.insert(to, axis)
    return transpose(a, axes)


def squeeze(a, axis=None):
    """Without axes of one element; None: without any."""
    a = as_tensor(a)
    if axis is None:
        if None in a.shape:
            raise UnsupportedError(f"`squeeze` needs the shape {shown(a.shape)}; next: name the axis, or execute it first")
        axes = [axis for axis, extent in enumerate(a.shape) if extent == 1]
    else:
        axes = check_axes(axis, a.ndim)
    if any(a.shape[axis] not in (1, None) for axis in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a[tuple(0 if axis in axes else slice(None) for axis in range(a.ndim))] if axes else a


def reshape(a, shape, *more):
    """The same elements in another shape; one extent may be -1."""
    a = as_tensor(a)
    wanted = (shape, *more) if more else (shape,) if hasattr(shape, "__index__") else tuple(shape)
    wanted = [one.__index__() for one in wanted]
    if wanted.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    check_shape([one for one in wanted if one != -1])
    count = count_of(a.shape)
    known = count_of([one for one in wanted if one != -1])
    into = shown(wanted).replace("-1", "newaxis")
    refused = ValueError(f"cannot reshape array of size {count} into shape {into}")
    if count is None:
        shape = [None if one == -1 else one for one in wanted]
    elif -1 in wanted:
        if known == 0 or count % known:
            raise refused
        shape = [count // known if one == -1 else one for one in wanted]
    elif known != count:
        raise refused
    else:
        shape = wanted
    if tuple(shape) == a.shape and None not in shape:
        return a
    return make("reshape", {"shape": wanted}, [a], shape, a.dtype)


def ravel(a):
    """All elements along one axis."""
    return reshape(a, -1)


def rechunk(a, chunk_size):
    """Cut in another way: one extent for all axes, one for each, or the parts of each."""
    a = as_tensor(a)
    return make("rechunk", chunking(chunk_size, a.shape), [a], a.shape, a.dtype)


def concatenate(tensors, axis=0):
    """One after the other along an axis; None: all elements along one."""
    tensors = [as_tensor(one) for one in tensors]
    if not tensors:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        tensors, axis = [ravel(one) for one in tensors], 0
    first = tensors[0]
    if first.ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = check_axis(axis, first.ndim)
    shape = list(first.shape)
    for at, one in enumerate(tensors[1:], start=1):
        if one.ndim != first.ndim:
            raise ValueError(
                "all the input arrays must have same number of dimensions, but the array at "
                f"index 0 has {first.ndim} dimension(s) and the array at index {at} has {one.ndim} dimension(s)"
            )
        for other, extent in enumerate(one.shape):
            if other == axis:
                continue
            if None not in (extent, shape[other]) and extent != shape[other]:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but along "
                    f"dimension {other}, the array at index 0 has size {shape[other]} and the array at index {at} has "
                    f"size {extent}"
                )
            shape[other] = shape[other] if extent is None else extent
    lengths = [one.shape[axis] for one in tensors]
    shape[axis] = None if None in lengths else sum(lengths)
    return make("concat", {"axis": axis}, tensors, shape, _common(tensors))


def stack(tensors, axis=0):
    """Along a new axis, in which each has one place."""
    tensors = [as_tensor(one) for one in tensors]
    if not tensors:
        raise ValueError("need at least one array to stack")
    first = tensors[0]
    for one in tensors[1:]:
        fits = one.ndim == first.ndim and all(
            None in pair or pair[0] == pair[1] for pair in zip(one.shape, first.shape)
        )
        if not fits:
            raise ValueError("all input arrays must have the same shape")
    axis = check_axis(axis, first.ndim + 1)
    shape = [next((one.shape[at] for one in tensors if one.shape[at] is not None), None) for at in range(first.ndim)]
    return make("stack", {"axis": axis}, tensors, [*shape[:axis], len(tensors), *shape[axis:]], _common(tensors))


def _common(tensors):
    found = tensors[0].dtype
    for one in tensors[1:]:
        found = dtypes.promote(found, one.dtype)
    return found


def array_split(a, sections, axis=0):
    """Parts along an axis: so many, of which the first ones may be longer, or between places."""
    a = as_tensor(a)
    axis = check_axis(axis, a.ndim)
    if not hasattr(sections, "__index__"):
        places = [None, *(one.__index__() for one in sections), None]
        cuts = [slice(begin, end) for begin, end in zip(places, places[1:])]
        return [a[(slice(None),) * axis + (cut,)] for cut in cuts]
    sections = sections.__index__()
    if sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    extent = a.shape[axis]
    found = []
    for part in range(sections):
        length = None if extent is None else extent // sections + (part < extent % sections)
        shape = (*a.shape[:axis], length, *a.shape[axis + 1 :])
        attributes = {"sections": sections, "part": part, "axis": axis}
        found.append(make("split", attributes, [a], shape, a.dtype))
    return found


def split(a, sections, axis=0):
    """The same; so many parts are equal."""
    a = as_tensor(a)
    extent = a.shape[check_axis(axis, a.ndim)]
    if hasattr(sections, "__index__") and extent is not None and sections.__index__() > 0:
        if extent % sections.__index__():
            raise ValueError("array split does not result in an equal division")
    return array_split(a, sections, axis)
