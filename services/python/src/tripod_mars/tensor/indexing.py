"""What is between the brackets of a tensor."""

import numpy as np

from .. import dtypes, parts
from ..errors import UnsupportedError
from .base import as_tensor, broadcast, check_axis, is_tensor, make, shown

_I64 = dtypes.BY_NAME["i64"]
# Places of one `take`.
_PLACES_MAX = 1 << 20


def getitem(tensor, index):
    """`tensor[index]`: slices, whole numbers, an ellipsis, new axes, and one mask or list of places."""
    basic, fancy = _parsed(tensor, index)
    result = _sliced(tensor, [one for one in basic if one is not None])
    # Axes that the slice has left, new ones among them, in the order of the index.
    place, fancy_axis = 0, None
    for at, one in enumerate(basic):
        if one is None:
            result = expand_dims(result, place)
        if fancy is not None and at == fancy[0]:
            fancy_axis = place
        if one is None or isinstance(one, slice):
            place += 1
    if fancy is None:
        return result
    picked = fancy[1]
    if is_tensor(picked):
        return _masked(result, picked, fancy_axis)
    return take(result, picked, fancy_axis)


def setitem(tensor, index, value):
    """What the tensor becomes by `tensor[index] = value`."""
    if _is_mask(index):
        return _set_mask(tensor, as_tensor(index), value)
    basic, fancy = _parsed(tensor, index)
    if fancy is not None:
        raise UnsupportedError("assignment by a list of places, or by a mask beside others, is not here; a mask alone is")
    if None in basic:
        raise UnsupportedError("assignment with new axes in the index is not here")
    picked = _shape(tensor.shape, basic)
    attributes = {"index": [_written(one) for one in basic]}
    if dtypes.is_scalar(value):
        dtypes.check_value(value, tensor.dtype)
        return make(
            "set_item", {**attributes, "value": {"scalar": dtypes.written(value)}}, [tensor], tensor.shape, tensor.dtype
        )
    value = as_tensor(value)
    extra = value.ndim - len(picked)
    if extra > 0 and picked and all(one == 1 for one in value.shape[:extra]):
        value = value[(0,) * extra]
    try:
        is_fitting = value.ndim <= len(picked) and broadcast(picked, value.shape) == picked
    except ValueError:
        is_fitting = False
    if not is_fitting and None not in (*picked, *value.shape):
        raise ValueError(
            f"could not broadcast input array from shape {shown(value.shape)} into shape {shown(picked)}"
        )
    return make("set_item", {**attributes, "value": "input"}, [tensor, value], tensor.shape, tensor.dtype)


def take(tensor, indices, axis=None):
    """Elements at a list of places along an axis; None: of all elements in their order."""
    tensor = as_tensor(tensor)
    places = np.asarray(indices)
    if places.size == 0:
        places = places.astype(np.int64)
    if places.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if axis is None:
        tensor, axis = tensor.reshape(-1), 0
    axis = check_axis(axis, tensor.ndim)
    if places.size > _PLACES_MAX:
        raise UnsupportedError(f"{places.size} places, and {_PLACES_MAX} can be taken at once")
    extent = tensor.shape[axis]
    if extent is not None and places.size:
        wrong = places[(places < -extent) | (places >= extent)]
        if wrong.size:
            raise IndexError(f"index {wrong.flat[0]} is out of bounds for axis {axis} with size {extent}")
    if places.ndim == 0:
        return _sliced(tensor, [slice(None)] * axis + [int(places)])
    shape = (*tensor.shape[:axis], places.size, *tensor.shape[axis + 1 :])
    attributes = {"indices": [int(one) for one in places.flat], "axis": axis}
    found = make("take", attributes, [tensor], shape, tensor.dtype)
    if places.ndim == 1:
        return found
    return found.reshape((*tensor.shape[:axis], *places.shape, *tensor.shape[axis + 1 :]))


def compress(condition, a, axis=None):
    """What is where the condition, of one axis, is true."""
    a, condition = as_tensor(a), as_tensor(condition)
    if axis is None:
        a, axis = a.reshape(-1), 0
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return _masked(a, condition.astype(bool), check_axis(axis, a.ndim))


def expand_dims(a, axis):
    """With one more axis, or with several."""
    a = as_tensor(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for one in sorted(check_axis(one, a.ndim + len(axes)) for one in axes):
        shape = (*a.shape[:one], 1, *a.shape[one:])
        a = make("expand_dims", {"axis": one}, [a], shape, a.dtype)
    return a


def _parsed(tensor, index):
    """The index with an item for each axis, and new ones as None; and of what is no slice and no number the place and the
    picked, or None. Its axis has a whole slice."""
    index = index if isinstance(index, tuple) else (index,)
    if sum(one is Ellipsis for one in index) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    index = [_item(one) for one in index]
    used = sum(_axes_of(one) for one in index)
    if used > tensor.ndim:
        raise IndexError(f"too many indices for array: array is {tensor.ndim}-dimensional, but {used} were indexed")
    whole = [slice(None)] * (tensor.ndim - used)
    at = next((place for place, one in enumerate(index) if one is Ellipsis), None)
    index = index + whole if at is None else index[:at] + whole + index[at + 1 :]
    fancy = [place for place, one in enumerate(index) if _is_fancy(one)]
    if len(fancy) > 1:
        raise UnsupportedError("several lists of places or masks in one index are not here; next: index twice")
    if not fancy:
        return index, None
    place = fancy[0]
    picked, numbers = index[place], [at for at, one in enumerate(index) if isinstance(one, int)]
    if numbers and not is_tensor(picked):
        # Numbers and lists of places are one thing to numpy, whose axes may move.
        raise UnsupportedError("whole numbers beside a list of places are not here; next: index twice")
    if numbers:
        raise UnsupportedError("whole numbers beside a mask are not here; next: index twice")
    if is_tensor(picked):
        _check_mask(tensor, index, place, picked)
    return index[:place] + [slice(None)] * _axes_of(picked) + index[place + 1 :], (place, picked)


def _item(one):
    if one is None or one is Ellipsis:
        return one
    if isinstance(one, slice):
        bounds = [None if bound is None else bound.__index__() for bound in (one.start, one.stop, one.step)]
        if bounds[2] == 0:
            raise ValueError("slice step cannot be zero")
        return slice(*bounds)
    if isinstance(one, (bool, np.bool_)):
        raise UnsupportedError("`True` and `False` as an index are not here")
    if is_tensor(one):
        if one.dtype.kind != "b":
            raise UnsupportedError("a tensor of places as an index is not here; next: fetch it, or use a mask")
        return one
    if hasattr(one, "__index__") and not isinstance(one, np.ndarray):
        return int(one.__index__())
    if isinstance(one, (list, np.ndarray)):
        array = np.asarray(one)
        if array.dtype.kind == "b":
            return as_tensor(array)
        return array if array.ndim else int(array)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
        "indices"
    )


def _is_fancy(one):
    return is_tensor(one) or isinstance(one, np.ndarray)


def _axes_of(one):
    if one is None or one is Ellipsis:
        return 0
    return one.ndim if is_tensor(one) else 1


def _is_mask(index):
    index = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(index, (list, np.ndarray)):
        return np.asarray(index).dtype.kind == "b" and np.ndim(index) > 0
    return is_tensor(index) and index.dtype.kind == "b" and index.ndim > 0


def _check_mask(tensor, index, place, mask):
    if mask.ndim == 0:
        raise UnsupportedError("a mask without axes is not here")
    first = sum(_axes_of(one) for one in index[:place])
    for axis, extent in enumerate(mask.shape):
        own = tensor.shape[first + axis]
        if None not in (extent, own) and extent != own:
            raise IndexError(
                f"boolean index did not match indexed array along axis {first + axis}; size of axis is {own} but size of "
                f"corresponding boolean axis is {extent}"
            )


def _masked(tensor, mask, axis):
    """Where a mask of one or more axes, of which `axis` is the first, is true."""
    if mask.ndim > 1:
        rest = tensor.shape[axis + mask.ndim :]
        kept = tensor.shape[:axis]
        if None in (*rest, *kept):
            raise UnsupportedError(f"a mask of several axes needs the shape {shown(tensor.shape)}; next: execute it first")
        tensor, mask = tensor.reshape((*kept, -1, *rest)), mask.reshape(-1)
    extents = (tensor.shape[axis], mask.shape[0])
    if None not in extents and extents[0] != extents[1]:
        raise ValueError(f"a mask of {extents[1]} elements for {extents[0]}")
    shape = (*tensor.shape[:axis], None, *tensor.shape[axis + 1 :])
    return make("compress", {"axis": axis}, [tensor, mask], shape, tensor.dtype)


def _set_mask(tensor, mask, value):
    from .elementwise import where

    if dtypes.is_scalar(value):
        dtypes.check_value(value, tensor.dtype)
    elif as_tensor(value).ndim:
        raise UnsupportedError("assignment of several values by a mask is not here; one number is")
    _check_mask(tensor, [mask], 0, mask)
    if mask.ndim > tensor.ndim:
        raise IndexError(f"too many indices for array: array is {tensor.ndim}-dimensional, but {mask.ndim} were indexed")
    for _ in range(tensor.ndim - mask.ndim):
        mask = expand_dims(mask, mask.ndim)
    return where(mask, value, tensor).astype(tensor.dtype)


def _sliced(tensor, index):
    """The operator, for slices and numbers alone; the tensor itself if it picks everything."""
    shape = _shape(tensor.shape, index)
    if all(isinstance(one, slice) and one == slice(None) for one in index):
        return tensor
    return make("slice", {"index": [_written(one) for one in index]}, [tensor], shape, tensor.dtype)


def _shape(shape, index):
    """The shape that is picked. Raises `IndexError`."""
    found = []
    for axis, (extent, one) in enumerate(zip(shape, index)):
        if isinstance(one, int):
            if extent is not None and not -extent <= one < extent:
                raise IndexError(f"index {one} is out of bounds for axis {axis} with size {extent}")
        elif extent is None:
            found.append(None)
        else:
            found.append(parts.resolve(one, extent)[2])
    return (*found, *shape[len(index) :])


def _written(one):
    if isinstance(one, int):
        return one
    bounds = {"start": one.start, "stop": one.stop, "step": one.step}
    return {name: _clamped(bound) for name, bound in bounds.items() if bound is not None}


def _clamped(bound):
    """Within 64 bits, beyond which no axis reaches."""
    return max(-(2**63), min(bound, 2**63 - 1))
