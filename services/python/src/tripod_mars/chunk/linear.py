"""Products of matrices, and their sums."""

import numpy as np


def matmul(_node, inputs):
    return np.matmul(inputs[0], inputs[1])


def add_n(_node, inputs):
    if len(inputs) == 1:
        return inputs[0]
    total = np.asarray(inputs[0] + inputs[1])
    for array in inputs[2:]:
        np.add(total, array, out=total)
    return total


def matmul_sum(_node, inputs):
    """As `add_n` of the products of each two inputs, of which one is kept at a time."""
    total = np.asarray(np.matmul(inputs[0], inputs[1]))
    for left, right in zip(inputs[2::2], inputs[3::2]):
        np.add(total, np.matmul(left, right), out=total)
    return total


OPERATORS = {"matmul": matmul, "matmul_sum": matmul_sum, "add_n": add_n}
