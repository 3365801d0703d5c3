"""A linear regression by gradient descent, computed by a cluster: each step is a graph that uses the chunks of the one before.

    pip install './services/python[mars]'
    export TRIPOD_ENDPOINTS=node1:7700,node2:7700,node3:7700
    python examples/mars_regression.py --rows 1000000 --steps 20

Any node may be killed meanwhile, and any worker.
"""

import argparse

import numpy as np

import tripod_mars as mars
import tripod_mars.tensor as mt


def main():
    """Prints the weights, and what they should be."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--columns", type=int, default=8)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--chunk-rows", type=int, default=25_000)
    arguments.add_argument("--rate", type=float, default=1.0, help="how far a step goes")
    wanted = arguments.parse_args()

    with mars.new_session() as session:
        shape, chunks = (wanted.rows, wanted.columns), (wanted.chunk_rows, wanted.columns)
        points = mt.random.normal(0, 1, shape, chunk_size=chunks, seed=1)
        truth = np.linspace(-1, 1, wanted.columns)
        values = points @ mt.tensor(truth) + mt.random.normal(0, 0.1, wanted.rows, chunk_size=wanted.chunk_rows, seed=2)
        mt.execute(points, values, session=session)

        weights = mt.zeros(wanted.columns)
        for step in range(wanted.steps):
            error = points @ weights - values
            weights = weights - wanted.rate * (points.T @ error) / wanted.rows
            # One graph for both; the chunks of the last weights are given up when nobody refers to them.
            _, loss = mt.execute(weights, (error * error).mean(), session=session)
            print(f"step {step}: mean square error {float(loss.fetch()):.6f}")
        print("weights", np.round(weights.fetch(), 3))
        print("truth  ", np.round(truth, 3))


if __name__ == "__main__":
    main()
