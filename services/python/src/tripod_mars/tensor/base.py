"""How tensors are made of operators, and what of shapes is known before anything is computed."""

import numpy as np

from .. import dtypes
from ..errors import UnsupportedError
from ..graph import Node, TensorContent


def make(op, attributes, inputs, shape, dtype, data=b"", name=""):
    """A tensor that an operator makes of others."""
    from .core import Tensor

    return Tensor(Node(op, attributes, [one.node for one in inputs], TensorContent(shape, dtype), data, name))


def is_tensor(value):
    from .core import Tensor

    return isinstance(value, Tensor)


def as_tensor(value):
    """A tensor, or one with the elements of what numpy makes an array of."""
    if is_tensor(value):
        return value
    from .source import tensor

    return tensor(value)


def operand(value):
    """One side of an operator of several tensors: how it is written, and the tensor, if it is one."""
    if dtypes.is_scalar(value):
        return {"scalar": dtypes.written(value)}, None
    return "input", as_tensor(value)


def common_type(values):
    """What tensors and numbers of Python have in common."""
    tensors = [value.dtype for value in values if is_tensor(value)]
    found = tensors[0] if tensors else None
    for dtype in tensors[1:]:
        found = dtypes.promote(found, dtype)
    for value in values:
        if not is_tensor(value):
            found = dtypes.of_scalar(value) if found is None else dtypes.with_scalar(found, value)
    return found


def shown(shape):
    """As numpy writes a shape."""
    return "(" + ",".join("?" if one is None else str(one) for one in shape) + ("," if len(shape) == 1 else "") + ")"


def broadcast(*shapes):
    """What several shapes become together. An extent that is unknown may be 1, or that of the others. Raises
    `ValueError`."""
    dims = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(-dims, 0):
        extents = [shape[axis] for shape in shapes if len(shape) >= -axis]
        known = {extent for extent in extents if extent is not None and extent != 1}
        if len(known) > 1:
            raise ValueError(
                f"operands could not be broadcast together with shapes {' '.join(map(shown, shapes))}"
            )
        result.append(known.pop() if known else None if None in extents else 1)
    return tuple(result)


def check_axis(axis, dims):
    """The place of an axis, which may count from the last one. Raises `numpy.exceptions.AxisError`."""
    axis = axis.__index__()
    if not -dims <= axis < dims:
        raise _axis_error(axis, dims)
    return axis % dims


def check_axes(axes, dims):
    """Places of one axis or of several, each once; None: all of them."""
    if axes is None:
        return list(range(dims))
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    found = [check_axis(axis, dims) for axis in axes]
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def _axis_error(axis, dims):
    # In numpy 1 it is elsewhere.
    kind = getattr(np, "exceptions", np).AxisError
    return kind(axis, dims)


def check_shape(shape):
    """Extents as a tuple. Raises `TypeError`, `ValueError`."""
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    shape = tuple(one.__index__() for one in shape)
    if any(one < 0 for one in shape):
        raise ValueError("negative dimensions are not allowed")
    if len(shape) > 32:
        raise ValueError(f"{len(shape)} axes, which is more than 32")
    return shape


def chunking(chunk_size, shape):
    """How a tensor is to be cut: None, one extent, one for each axis, or all parts of each axis. Raises `ValueError`."""
    if chunk_size is None:
        return {}
    if hasattr(chunk_size, "__index__"):
        if chunk_size.__index__() < 1:
            raise ValueError("a chunk has an extent of 1 at least")
        return {"chunks": chunk_size.__index__()}
    sizes = [one.__index__() if hasattr(one, "__index__") else [part.__index__() for part in one] for one in chunk_size]
    if len(sizes) != len(shape):
        raise ValueError(f"chunk_size of {len(sizes)} axes for {len(shape)} axes")
    if all(isinstance(one, int) for one in sizes):
        if any(one < 1 for one in sizes):
            raise ValueError("a chunk has an extent of 1 at least")
        return {"chunks": sizes}
    # Both forms among the axes: all of them become parts.
    for axis, (one, extent) in enumerate(zip(sizes, shape)):
        if isinstance(one, int):
            if extent is None:
                raise ValueError(f"the parts of axis {axis} are needed, whose extent is not known yet")
            sizes[axis] = [min(one, extent - begin) for begin in range(0, extent, one)] or [0]
        elif extent is not None and sum(one) != extent:
            raise ValueError(f"the parts of axis {axis} are {sum(one)} together, and its extent is {extent}")
    return {"chunks": sizes}


def known_shape(tensor, why):
    """Its shape, of which everything must be known. Raises `UnsupportedError`."""
    if None in tensor.shape:
        raise UnsupportedError(
            f"{why} needs the shape {shown(tensor.shape)}, which only execution tells; next: call `execute` on it first"
        )
    return tensor.shape


def refuse_out(out):
    if out is not None:
        raise UnsupportedError("`out` is not here: a tensor is what an operator makes")
