"""Frames that are computed by a cluster, with some of the functions of pandas.

    import tripod_mars.dataframe as md

    sales = md.read_csv("sales-*.csv")
    large = sales[sales["price"] > 100]
    print(large.groupby("shop").agg({"price": ["sum", "mean"]}).to_pandas())

A column is a tensor (`tripod_mars.tensor`). Frames have no index, and no column is put into one.
"""

from ..tileable import execute, fetch
from . import source
from .core import DataFrame
from .grouping import GroupBy

__all__ = ["DataFrame", "GroupBy", "execute", "fetch", "read_csv", "read_parquet"]


def __dir__():
    """What programs may use. The modules behind it are found by their names."""
    return list(__all__)


def read_csv(source_files, columns=None, dtype=None, chunk_bytes=None, sample_rows=source.SAMPLE_ROWS):
    """Files of CSV with a line of names, which this program reads and sends: a path, a pattern, several of them, or bytes.
    Files are cut into chunks of `chunk_bytes`, 512 KiB at most. Types are guessed from the first `sample_rows` of the first
    file unless `dtype` says them: i32, i64, f32, f64, bool or text by column. A field that is empty is missing."""
    return DataFrame.of(source.read_csv(source_files, columns, dtype, chunk_bytes, sample_rows))


def read_parquet(source_files, columns):
    """Files of Parquet, for workers that have pyarrow. `columns` is a dict of the types of those that are wanted."""
    return DataFrame.of(source.read_parquet(source_files, columns))
