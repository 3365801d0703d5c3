"""What programs write, for a checker of types: it is not run. Lines that are wrong say so, and the checker complains if
they are not."""

from typing import Any

import numpy as np
import tripod_mars as mars
import tripod_mars.dataframe as md
import tripod_mars.tensor as mt
from typing_extensions import assert_type

with mars.new_session("node1:7700", compressions=("zstd",)) as session:
    assert_type(session, mars.Session)
    a = mt.random.rand(1_000, 1_000, chunk_size=250, seed=1)
    assert_type(a, mt.Tensor)
    b = ((a + 1) @ a.T).sum(axis=0).execute(fuse=True, timeout_s=60)
    assert_type(b, mt.Tensor)
    assert_type(b[2:5].fetch(), "np.ndarray[Any, Any]")
    assert_type(a > 1, mt.Tensor)
    assert_type(a == b, mt.Tensor)
    assert_type(a.shape, "tuple[int | None, ...]")
    assert_type(mt.where(a > 0.5, a, 0), mt.Tensor)
    assert_type(mt.split(a, 2)[0], mt.Tensor)
    assert_type(1 - a * np.ones(3), mt.Tensor)
    a[1:3] = 5
    first, second = session.execute(a, b)
    assert_type(second, mt.Tensor)
    print(np.asarray(a), mt.newaxis, mars.execute(a, b))

    sales = md.read_csv("sales-*.csv", columns=["shop", "price"])
    assert_type(sales["price"], mt.Tensor)
    assert_type(sales[sales["price"] > 100], md.DataFrame)
    assert_type(sales[["shop"]].groupby("shop").agg({"price": ["sum", "mean"]}), md.DataFrame)
    assert_type(sales.groupby("shop").agg(total=("price", "sum")).execute(), md.DataFrame)

    written = session.create_mutable_tensor("name", (10, 10), "f8", chunk_size=5)
    assert_type(written, mars.MutableTensor)
    written[1:3] = 5
    assert_type(written.seal(), mt.Tensor)
    assert_type(session.context.count_workers(), int)

try:
    a.execute(session)
except mars.ExecutionError as error:
    assert_type(error.line, str)

md.DataFrame({"a": [1]}).no_such  # type: ignore[attr-defined]
mars.new_session(7700)  # type: ignore[arg-type]
a.sum(axis="rows")  # type: ignore[arg-type]
sales.groupby(5)  # type: ignore[arg-type]
mt.no_such  # type: ignore[attr-defined]
