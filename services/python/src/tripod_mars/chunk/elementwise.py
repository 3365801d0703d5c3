"""Functions of single elements."""

import numpy as np

from .dtypes import number


def _sigmoid(array):
    return 1 / (1 + np.exp(-array))


def _relu(array):
    return np.maximum(array, 0)


UNARY = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "relu": _relu,
    "not": np.logical_not,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


def operands(sides, inputs):
    """The next input for each side that is one, and the number for others, which has a kind but no width."""
    inputs = iter(inputs)
    return [next(inputs) if side == "input" else number(side["scalar"]) for side in sides]


def unary(node, inputs):
    return UNARY[node.operator["function"]](inputs[0])


def cast(node, inputs):
    return inputs[0].astype(node.dtype, copy=False)


def binary(node, inputs):
    operator = node.operator
    left, right = operands((operator["left"], operator["right"]), inputs)
    return BINARY[operator["function"]](left, right)


def where(node, inputs):
    operator = node.operator
    yes, no = operands((operator["yes"], operator["no"]), inputs[1:])
    return np.where(inputs[0], yes, no)


OPERATORS = {"unary": unary, "cast": cast, "binary": binary, "where": where}
