from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from ..tileable import execute as execute
from ..tileable import fetch as fetch
from .core import DataFrame as DataFrame
from .grouping import GroupBy as GroupBy

__all__ = ["DataFrame", "GroupBy", "execute", "fetch", "read_csv", "read_parquet"]

# A path, a pattern, several of them, or bytes.
_Files = str | PathLike[str] | bytes | Iterable[str | PathLike[str] | bytes]

def read_csv(
    source_files: _Files,
    columns: Iterable[str] | None = None,
    dtype: Mapping[str, Any] | None = None,
    chunk_bytes: int | None = None,
    sample_rows: int = 100_000,
) -> DataFrame: ...
def read_parquet(source_files: _Files, columns: Mapping[str, Any]) -> DataFrame: ...
