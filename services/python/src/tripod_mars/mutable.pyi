from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .tensor.core import Tensor

class Mutable:
    what: str
    name: str
    splits: list[list[int]]
    @property
    def state(self) -> str: ...
    def delete(self, if_exist: bool = False) -> None: ...

class MutableTensor(Mutable):
    # As `create_mutable_tensor` was told.
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    def write(self, index: Any, value: ArrayLike, timestamp: int | None = None) -> None: ...
    def read(self, index: Any = ..., timestamp: int | None = None) -> np.ndarray[Any, Any]: ...
    def seal(self, timestamp: int | None = None) -> Tensor: ...
    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]: ...
    def __setitem__(self, index: Any, value: ArrayLike) -> None: ...
