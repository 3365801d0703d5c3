"""Programs of Mars at a cluster, round after round until a file says that it is enough; every result must be numpy's.

    python mars_demonstrations.py ENDPOINTS FILE

Prints a step when a round begins and when it has ended. What is executed once is used in all rounds. The package is the one
that is installed in the environment of the interpreter, as its users have it.
"""

import io
import pathlib
import sys

import numpy as np
import pyarrow
from pyarrow import parquet
from steps import emit

import tripod_mars as mars
import tripod_mars.dataframe as md
import tripod_mars.tensor as mt
from tripod_mars.graph import Sent, new_key

SEED, VALUES, CHUNK = 11, 400_000, 20_000


def product(kept):
    """The product of a tensor with its own transpose."""
    whole, tensor = kept["square"]
    found = ((tensor + 1) @ tensor.T).sum(axis=0).execute().fetch()
    np.testing.assert_allclose(found, ((whole + 1) @ whole.T).sum(axis=0), rtol=1e-13)


def moments(kept):
    """Mean and variance of many random values."""
    tensor = mt.random.rand(VALUES, chunk_size=CHUNK, seed=SEED)
    mean, variance = mt.execute(tensor.mean(), tensor.var())
    parts = [np.random.Generator(np.random.Philox(key=[SEED, part])) for part in range(VALUES // CHUNK)]
    whole = np.concatenate([part.uniform(0, 1, CHUNK) for part in parts])
    np.testing.assert_allclose([mean.fetch(), variance.fetch()], [whole.mean(), whole.var()], rtol=1e-12)


def regression(kept):
    """Gradient descent: each step is a graph that uses chunks of the one before."""
    (points, x), (values, y) = kept["points"], kept["values"]
    weights, expected = mt.zeros(4), np.zeros(4)
    for _ in range(20):
        weights = (weights - 0.5 * (x.T @ (x @ weights - y)) / len(values)).execute()
        expected = expected - 0.5 * (points.T @ (points @ expected - values)) / len(values)
    np.testing.assert_allclose(weights.fetch(), expected, rtol=1e-12)


def masked(kept):
    """Extents that only execution tells."""
    whole, tensor = kept["square"]
    flat = tensor.reshape(64)
    found = (flat[flat > 0.5] * 2).execute().fetch()
    np.testing.assert_array_equal(found, whole.reshape(64)[whole.reshape(64) > 0.5] * 2)


def fused(kept):
    """A chain of functions of each element: as one task of each chunk it gives what its steps give, bit for bit."""
    whole, tensor = kept["square"]
    results, subtasks = {}, {}
    for fuse in (False, True):
        chain = mt.exp(mt.tanh(tensor * 3 - 1))
        subtasks[fuse] = subtasks_of(chain, fuse)
        results[fuse] = chain.execute(fuse=fuse).fetch()
    np.testing.assert_array_equal(results[True].view(np.uint64), results[False].view(np.uint64))
    np.testing.assert_allclose(results[True], np.exp(np.tanh(whole * 3 - 1)), rtol=1e-15)
    # Four functions of each of four chunks.
    assert subtasks == {False: 16, True: 4}, subtasks


def subtasks_of(tensor, fuse):
    """How many tasks workers had executed when a graph was done. What it made is given up."""
    session = mars.get_default_session()
    context, key, sent = session.context, new_key(), Sent([tensor.node], session.session_id)
    context.submit_tileable_graph(session.session_id, sent.message, key, sent.target_keys, {"fuse": fuse})
    _, info = context.wait_tileable_graph(session.session_id, key)
    context.delete_tileable_graph(session.session_id, key)
    return info.subtask_counts.succeeded


SALES = {
    "shop": ["north", "south", None, "north", "", "south"],
    "sold": [3, 5, 7, 2, 4, 1],
    "price": [1.5, 2.25, None, 4.0, 0.1, 3.0],
    "open": [True, None, False, True, True, False],
}


def sales():
    """Two files of Parquet with three rows each."""
    table = pyarrow.table(SALES)
    for rows in (table.slice(0, 3), table.slice(3)):
        file = io.BytesIO()
        parquet.write_table(rows, file)
        yield file.getvalue()


def files_of_parquet(kept):
    """Columns of files that the workers' pyarrow reads: texts, numbers, what is missing; and what is made of them."""
    frame = kept["sales"]
    found = frame.to_dict()
    assert list(found) == ["price", "shop", "sold", "open"] and found["sold"].dtype == np.int32
    texts_and_truths = {name: found[name].tolist() for name in ("shop", "sold", "open")}
    assert texts_and_truths == {name: SALES[name] for name in ("shop", "sold", "open")}, texts_and_truths
    prices = np.array([np.nan if price is None else price for price in SALES["price"]])
    np.testing.assert_array_equal(np.ma.filled(found["price"], np.nan), prices)
    dear = frame[frame["price"] > 2].to_dict()
    assert dear["sold"].tolist() == [5, 2, 1], dear
    sums = frame.groupby("shop").agg({"sold": "sum"}).to_dict()
    assert dict(zip(sums["shop"].tolist(), sums["sold"].tolist())) == {"": 4, "north": 5, "south": 6}, sums


def main(endpoints, enough):
    place = pathlib.Path(mars.__file__)
    assert pathlib.Path(sys.prefix) in place.parents, f"{place} is not what is installed"
    session = mars.new_session(endpoints)
    chance = np.random.default_rng(3)
    square, points = chance.random((8, 8)), chance.random((60, 4))
    values = points @ np.array([1.0, -2, 3, 0.5])
    kept = {
        "square": (square, mt.tensor(square, chunk_size=4).execute()),
        "points": (points, mt.tensor(points, chunk_size=(16, 4)).execute()),
        "values": (values, mt.tensor(values, chunk_size=16).execute()),
        "sales": md.read_parquet(
            list(sales()), {"price": "f64", "shop": str, "sold": "i32", "open": "bool"}
        ).execute(),
    }
    rounds = 0
    while not pathlib.Path(enough).exists():
        emit(step="begins", round=rounds)
        for demonstration in (product, moments, regression, masked, fused, files_of_parquet):
            demonstration(kept)
            emit(step="is right", round=rounds, what=demonstration.__name__)
        emit(step="ends", round=rounds)
        rounds += 1
    session.destroy()
    emit(step="done", rounds=rounds)


if __name__ == "__main__":
    main(*sys.argv[1:])
