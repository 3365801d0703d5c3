"""Random tensors. What they are depends on their seed and on how they are cut, and not on who computes them; without a seed
each tensor has one of its own, in the order that `seed` begins anew."""

import hashlib
import secrets
import threading

import numpy as np

from .. import dtypes
from ..errors import UnsupportedError
from .base import check_shape, chunking, make

__all__ = [
    "RandomState",
    "default_rng",
    "normal",
    "rand",
    "randn",
    "random",
    "random_sample",
    "seed",
    "standard_normal",
    "uniform",
]


class RandomState:
    """A sequence of seeds, one for each tensor."""

    def __init__(self, seed=None):
        self._lock = threading.Lock()
        self.seed(seed)

    def seed(self, seed=None):
        """Begins anew; None: with something that nobody knows."""
        with self._lock:
            self._seed = secrets.token_bytes(16) if seed is None else str(int(seed)).encode()
            self._count = 0

    def _next(self):
        with self._lock:
            self._count += 1
            text = self._seed + b"/%d" % self._count
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    def uniform(self, low=0.0, high=1.0, size=None, dtype=float, chunk_size=None, seed=None):
        """Fractions that are at least `low` and below `high`. `seed`, a whole number of 64 bits, is this tensor's own."""
        return self._make("rand_uniform", {"low": low, "high": high}, size, dtype, chunk_size, seed)

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=float, chunk_size=None, seed=None):
        if float(scale) < 0:
            raise ValueError("scale < 0")
        return self._make("rand_normal", {"mean": loc, "deviation": scale}, size, dtype, chunk_size, seed)

    def random(self, size=None, dtype=float, chunk_size=None, seed=None):
        return self.uniform(0.0, 1.0, size, dtype, chunk_size, seed)

    random_sample = random

    def standard_normal(self, size=None, dtype=float, chunk_size=None, seed=None):
        return self.normal(0.0, 1.0, size, dtype, chunk_size, seed)

    def rand(self, *shape, dtype=float, chunk_size=None, seed=None):
        """Between 0 and 1, of that shape."""
        return self.random(shape, dtype, chunk_size, seed)

    def randn(self, *shape, dtype=float, chunk_size=None, seed=None):
        return self.standard_normal(shape, dtype, chunk_size, seed)

    def _make(self, op, numbers, size, dtype, chunk_size, seed):
        shape = check_shape(() if size is None else size)
        dtype = dtypes.BY_NAME[dtypes.name_of(dtype)]
        if dtype.kind != "f":
            raise UnsupportedError(f"random numbers are fractions, and not {dtype}")
        for name, value in numbers.items():
            if np.ndim(value):
                raise UnsupportedError(f"`{name}` is one number")
            numbers[name] = dtypes.written(float(value))
        seed = self._next() if seed is None else seed.__index__()
        if not 0 <= seed < 2**64:
            raise ValueError("a seed is a whole number of 64 bits without a sign")
        attributes = {"seed": seed, **numbers, "shape": list(shape), "dtype": dtypes.name_of(dtype)}
        return make(op, {**attributes, **chunking(chunk_size, shape)}, (), shape, dtype)


_state = RandomState()
seed = _state.seed
uniform = _state.uniform
normal = _state.normal
random = random_sample = _state.random
standard_normal = _state.standard_normal
rand = _state.rand
randn = _state.randn


def default_rng(seed=None):
    """A sequence of seeds of its own."""
    return RandomState(seed)
