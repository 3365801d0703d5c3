"""Programs of Mars at a cluster, round after round until a file says that it is enough; every result must be numpy's.

    python mars_demonstrations.py ENDPOINTS FILE

Prints a step when a round begins and when it has ended. What is executed once is used in all rounds.
"""

import pathlib
import sys

import numpy as np
from steps import emit

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "services" / "python" / "src"))

import tripod_mars as mars
import tripod_mars.tensor as mt

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


def main(endpoints, enough):
    session = mars.new_session(endpoints)
    chance = np.random.default_rng(3)
    square, points = chance.random((8, 8)), chance.random((60, 4))
    values = points @ np.array([1.0, -2, 3, 0.5])
    kept = {
        "square": (square, mt.tensor(square, chunk_size=4).execute()),
        "points": (points, mt.tensor(points, chunk_size=(16, 4)).execute()),
        "values": (values, mt.tensor(values, chunk_size=16).execute()),
    }
    rounds = 0
    while not pathlib.Path(enough).exists():
        emit(step="begins", round=rounds)
        for demonstration in (product, moments, regression, masked):
            demonstration(kept)
            emit(step="is right", round=rounds, what=demonstration.__name__)
        emit(step="ends", round=rounds)
        rounds += 1
    session.destroy()
    emit(step="done", rounds=rounds)


if __name__ == "__main__":
    main(*sys.argv[1:])
