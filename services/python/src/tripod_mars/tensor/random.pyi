from collections.abc import Sequence

from numpy.typing import DTypeLike

from .core import Tensor, _Chunks

class RandomState:
    def __init__(self, seed: int | None = None) -> None: ...
    def seed(self, seed: int | None = None) -> None: ...
    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = float,
        chunk_size: _Chunks = None,
        seed: int | None = None,
    ) -> Tensor: ...
    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = float,
        chunk_size: _Chunks = None,
        seed: int | None = None,
    ) -> Tensor: ...
    def random(
        self,
        size: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = float,
        chunk_size: _Chunks = None,
        seed: int | None = None,
    ) -> Tensor: ...
    def random_sample(
        self,
        size: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = float,
        chunk_size: _Chunks = None,
        seed: int | None = None,
    ) -> Tensor: ...
    def standard_normal(
        self,
        size: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = float,
        chunk_size: _Chunks = None,
        seed: int | None = None,
    ) -> Tensor: ...
    def rand(
        self, *shape: int, dtype: DTypeLike | None = float, chunk_size: _Chunks = None, seed: int | None = None
    ) -> Tensor: ...
    def randn(
        self, *shape: int, dtype: DTypeLike | None = float, chunk_size: _Chunks = None, seed: int | None = None
    ) -> Tensor: ...

def seed(seed: int | None = None) -> None: ...
def uniform(
    low: float = 0.0,
    high: float = 1.0,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = float,
    chunk_size: _Chunks = None,
    seed: int | None = None,
) -> Tensor: ...
def normal(
    loc: float = 0.0,
    scale: float = 1.0,
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = float,
    chunk_size: _Chunks = None,
    seed: int | None = None,
) -> Tensor: ...
def random(
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = float,
    chunk_size: _Chunks = None,
    seed: int | None = None,
) -> Tensor: ...
def random_sample(
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = float,
    chunk_size: _Chunks = None,
    seed: int | None = None,
) -> Tensor: ...
def standard_normal(
    size: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = float,
    chunk_size: _Chunks = None,
    seed: int | None = None,
) -> Tensor: ...
def rand(
    *shape: int, dtype: DTypeLike | None = float, chunk_size: _Chunks = None, seed: int | None = None
) -> Tensor: ...
def randn(
    *shape: int, dtype: DTypeLike | None = float, chunk_size: _Chunks = None, seed: int | None = None
) -> Tensor: ...
def default_rng(seed: int | None = None) -> RandomState: ...
