"""Tensors that are computed by a cluster, with the functions of numpy.

    import tripod_mars.tensor as mt

    a = mt.random.rand(10_000, 10_000, chunk_size=2_000)
    print(((a + 1) @ a.T).sum(axis=0).execute().fetch())

Nothing is computed until `execute`. Shapes and types are known before, but for extents that masks leave open (None).
"""

from ..tileable import execute, fetch
from . import random
from .core import Tensor
from .elementwise import (
    abs,
    absolute,
    add,
    astype,
    clip,
    divide,
    equal,
    exp,
    floor_divide,
    greater,
    greater_equal,
    invert,
    isnan,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    reciprocal,
    relu,
    remainder,
    sigmoid,
    sqrt,
    square,
    subtract,
    tanh,
    true_divide,
    where,
)
from .indexing import compress, take
from .reduction import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    dot,
    matmul,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from .shaping import (
    array_split,
    concatenate,
    expand_dims,
    moveaxis,
    ravel,
    rechunk,
    reshape,
    split,
    squeeze,
    stack,
    swapaxes,
    transpose,
)
from .source import (
    arange,
    array,
    asarray,
    empty,
    eye,
    full,
    full_like,
    identity,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)

newaxis = None

__all__ = [name for name in dir() if not name.startswith("_")]
