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


OPERATORS = {"matmul": matmul, "add_n": add_n}
