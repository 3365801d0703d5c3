"""The parts of the comparison of tensors, the same for every system.

A system is an object with a method for each part. Each answers with seconds of wall clock in the driver, from the first
call until the result is in the driver's memory (or, where there is none, until everything is done), and with that
result, which is compared with numpy's outside of the time. Each part has run once, small, before it is measured.
"""

import argparse
import json
import time
import traceback

import numpy as np

_WARM_UP = 0.01
# What the last line says: what a system began may keep its output open.
OVER = "over"


class Sizes:
    """How much of everything: the whole of it with `scale` 1."""

    def __init__(self, scale):
        # Rows and columns of a matrix in 4 x 4 chunks; its product's work grows with their cube.
        self.rows = 4 * max(10, round(1000 * scale ** (1 / 3)))
        self.chunk_rows = self.rows // 4
        # In 100 chunks.
        self.chunk_numbers = max(1_000, round(1_000_000 * scale))
        self.numbers = 100 * self.chunk_numbers
        self.graphs = max(5, round(1_000 * scale))
        self.subtasks = max(50, round(10_000 * scale))
        self.nodes = max(100, round(100_000 * scale))


def seconds(work):
    """How long a function takes, and what it returns."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def product(system, sizes):
    """`((A + 1) @ A.T).sum(axis=0)` of a matrix that is there already."""
    took, result, matrix = system.product(sizes.rows, sizes.chunk_rows)
    expected = ((matrix + 1) @ matrix.T).sum(axis=0)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-9)
    return took


def moments(system, sizes):
    """Mean and variance of random numbers from 0 to 1, in one execution."""
    took, (mean, variance) = system.moments(sizes.numbers, sizes.chunk_numbers)
    # Six times how far those of so many numbers are from those of the distribution.
    far = 6 / np.sqrt(sizes.numbers)
    np.testing.assert_allclose([mean, variance], [1 / 2, 1 / 12], rtol=0, atol=far)
    return took


def graphs(system, sizes):
    """Small graphs one after the other, each of which is fetched before the next one is made."""
    took, sums = system.graphs([np.array([number, number + 1.0, number + 2.0]) for number in range(sizes.graphs)])
    assert list(sums) == [3.0 * number + 6 for number in range(sizes.graphs)]
    return took


def killed(system, sizes):
    """The same, and the process that leads is killed after half of them. A system that can go on has this part."""
    arrays = [np.array([number, number + 1.0, number + 2.0]) for number in range(sizes.graphs)]
    took, sums, longest = system.killed(arrays)
    assert list(sums) == [3.0 * number + 6 for number in range(sizes.graphs)]
    return took, {"longest_s": longest}


def subtasks(system, sizes):
    """A graph of chunks of one zero."""
    took, some = system.subtasks(sizes.subtasks)
    assert np.asarray(some).shape == (10,) and not np.asarray(some).any()
    return took


def submit(system, sizes):
    """A graph of so many chunks until it is accepted; it is stopped then."""
    return system.submit(sizes.nodes)


PARTS = {
    "product": product,
    "moments": moments,
    "graphs": graphs,
    "subtasks": subtasks,
    "submit": submit,
    "killed": killed,
}


def run(name, system):
    """Measures the parts that are named, and prints a line of JSON for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    for part in options.parts.split(","):
        if not hasattr(system, part):
            continue
        line = {"system": name, "part": part}
        try:
            PARTS[part](system, Sizes(min(_WARM_UP, options.scale)))
            took = PARTS[part](system, Sizes(options.scale))
            line["s"], more = took if isinstance(took, tuple) else (took, {})
            line.update(more)
        except Exception as error:  # A peer that fails a part has no figure of it, and the reason is told.
            traceback.print_exc()
            line["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(line), flush=True)
    print(json.dumps({"system": name, "part": OVER}), flush=True)
