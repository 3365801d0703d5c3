"""Tensors that are made of nothing, or of what the program has."""

import math

import numpy as np

from .. import dtypes, put
from ..errors import UnsupportedError
from .base import check_shape, chunking, is_tensor, known_shape, make

# Bytes of a chunk that travels within its task.
INLINE_CHUNK_BYTES_MAX = 512 << 10


def tensor(data, dtype=None, chunk_size=None, name=""):
    """One with the elements of an array, or of anything that numpy makes one of. They travel with the graph; from some MiB on
    they go to the workers before it, if these keep such chunks."""
    if is_tensor(data):
        made = data if dtype is None else data.astype(dtype)
        return made if chunk_size is None else made.rechunk(chunk_size)
    array = np.asarray(data, dtype)
    # numpy makes whole numbers of the machine of these; what is not among the five types is refused by name.
    name_of = dtypes.name_of(array.dtype)
    wanted = chunking(chunk_size, array.shape)
    largest = _chunk_bytes(array, wanted.get("chunks"))
    fits = largest <= INLINE_CHUNK_BYTES_MAX
    chunks = wanted if fits else {"chunks": _small(array)}
    attributes = {"shape": list(array.shape), "dtype": name_of, **chunks}
    data = array.astype(dtypes.BY_NAME[name_of], copy=False).tobytes()
    small = make("from_bytes", attributes, (), array.shape, dtypes.BY_NAME[name_of], data, name)
    # It is put together by workers.
    made = small if fits else make("rechunk", wanted or {"chunks": None}, [small], array.shape, small.dtype, name=name)
    if array.nbytes >= put.PUT_BYTES_LEAST:
        # Chunks that are too large to be put are put together, too.
        is_whole = wanted and largest > put.CHUNK_BYTES_MAX
        brought = put.TensorData(data, array.shape, name_of, None if is_whole else wanted.get("chunks"))
        (small if is_whole else made).node.brought = brought
    return made


array = asarray = tensor


def full(shape, fill_value, dtype=None, chunk_size=None):
    """A tensor of one number."""
    shape = check_shape(shape)
    if is_tensor(fill_value) or np.ndim(fill_value):
        raise UnsupportedError("`full` takes one number")
    fill_value = fill_value.item() if isinstance(fill_value, (np.generic, np.ndarray)) else fill_value
    dtype = dtypes.BY_NAME[dtypes.name_of(np.asarray(fill_value).dtype if dtype is None else dtype)]
    dtypes.check_value(fill_value, dtype)
    attributes = {"value": dtypes.written(fill_value), **_of(shape, dtype, chunk_size)}
    return make("full", attributes, (), shape, dtype)


def zeros(shape, dtype=float, chunk_size=None):
    return _filled("zeros", shape, dtype, chunk_size)


def ones(shape, dtype=float, chunk_size=None):
    return _filled("ones", shape, dtype, chunk_size)


def empty(shape, dtype=float, chunk_size=None):
    """Zeros: nothing is cheaper for a worker."""
    return _filled("zeros", shape, dtype, chunk_size)


def zeros_like(other, dtype=None, chunk_size=None):
    return zeros(known_shape(other, "zeros_like"), dtype or other.dtype, chunk_size)


def ones_like(other, dtype=None, chunk_size=None):
    return ones(known_shape(other, "ones_like"), dtype or other.dtype, chunk_size)


def full_like(other, fill_value, dtype=None, chunk_size=None):
    return full(known_shape(other, "full_like"), fill_value, dtype or other.dtype, chunk_size)


def eye(N, M=None, k=0, dtype=float, chunk_size=None):
    """Ones on a diagonal: 0 the main one, positive above it."""
    shape = check_shape((N, N if M is None else M))
    dtype = dtypes.BY_NAME[dtypes.name_of(dtype)]
    attributes = {"rows": shape[0], "columns": shape[1], "diagonal": k.__index__(), "dtype": dtypes.name_of(dtype)}
    return make("eye", {**attributes, **chunking(chunk_size, shape)}, (), shape, dtype)


def identity(n, dtype=float, chunk_size=None):
    return eye(n, dtype=dtype, chunk_size=chunk_size)


def arange(start, stop=None, step=1, dtype=None, chunk_size=None):
    """As `numpy.arange`; elements are int32, int64 or float64."""
    if stop is None:
        start, stop = 0, start
    bounds = [_number(one) for one in (start, stop, step)]
    if dtype is None:
        dtype = np.result_type(*(np.asarray(one).dtype for one in bounds))
        dtype = np.float64 if np.dtype(dtype).kind == "f" else np.int64
    dtype = dtypes.BY_NAME[dtypes.name_of(dtype)]
    if dtype.kind == "b" or dtype == dtypes.BY_NAME["f32"]:
        raise UnsupportedError(f"`arange` of {dtype}; next: make one of int64 or float64, and convert it with `astype`")
    if bounds[2] == 0:
        raise ZeroDivisionError("division by zero")
    if dtype.kind == "i":
        if any(isinstance(one, float) and one != int(one) for one in bounds):
            raise UnsupportedError("`arange` of whole numbers with bounds that are fractions")
        bounds = [int(one) for one in bounds]
        count = len(range(*bounds))
        if count:
            dtypes.check_value(bounds[0], dtype)
            dtypes.check_value(bounds[0] + (count - 1) * bounds[2], dtype)
    else:
        bounds = [float(one) for one in bounds]
        count = max(0, int(np.ceil((bounds[1] - bounds[0]) / bounds[2])))
    attributes = dict(zip(("start", "stop", "step"), map(dtypes.written, bounds)))
    attributes = {**attributes, "dtype": dtypes.name_of(dtype), **chunking(chunk_size, (count,))}
    return make("arange", attributes, (), (count,), dtype)


def linspace(start, stop, num=50, endpoint=True, chunk_size=None):
    """So many numbers of float64 between two."""
    num = num.__index__()
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    attributes = {"start": dtypes.written(_number(start)), "stop": dtypes.written(_number(stop)), "num": num}
    attributes = {**attributes, "endpoint": bool(endpoint), **chunking(chunk_size, (num,))}
    return make("linspace", attributes, (), (num,), np.float64)


def _chunk_bytes(array, chunks):
    """Of the largest chunk of an array that is cut so."""
    if chunks is None:
        return array.nbytes
    sizes = [chunks] * array.ndim if isinstance(chunks, int) else chunks
    longest = [one if isinstance(one, int) else max(one) for one in sizes]
    return array.itemsize * math.prod(min(one, extent) for one, extent in zip(longest, array.shape))


def _small(array):
    """Extents of chunks that travel within their tasks: the longest axis is halved until they do."""
    sizes = list(array.shape)
    while array.itemsize * math.prod(sizes) > INLINE_CHUNK_BYTES_MAX:
        longest = sizes.index(max(sizes))
        sizes[longest] = -(-sizes[longest] // 2)
    return sizes


def _number(value):
    value = value.item() if isinstance(value, np.generic) else value
    if not dtypes.is_scalar(value):
        raise UnsupportedError(f"a number of Python or numpy is needed, and {type(value).__name__} is none")
    return value


def _filled(op, shape, dtype, chunk_size):
    shape = check_shape(shape)
    dtype = dtypes.BY_NAME[dtypes.name_of(dtype)]
    return make(op, _of(shape, dtype, chunk_size), (), shape, dtype)


def _of(shape, dtype, chunk_size):
    return {"shape": list(shape), "dtype": dtypes.name_of(dtype), **chunking(chunk_size, shape)}
