"""Random graphs of tensors, computed by numpy as wholes, and chunk by chunk as Tripod cuts them and its workers compute
them (`chunk_graph`).

    cargo build -p tripod-tile --example chunks
    python tests/clients/tile_numpy.py target/debug/examples/chunks [--graphs 2000] [--seed 1]

numpy decides here what is right: types, broadcasting, slices, what an empty reduction is. Numbers are small and whole, or
halves of them, so that sums are exact in any order; what is made of others (means, roots) is compared within rounding.
"""

import argparse
import json
import random
import sys

import chunk_graph
import numpy as np

DTYPES = {"bool": np.bool_, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
UNARY = {
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0), "not": np.logical_not,
}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.mod, "max": np.maximum, "min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "and": np.logical_and, "or": np.logical_or,
}
# Roots and exponentials are last: no order of sums rounds differently before.
EXACT_UNARY = ["neg", "abs", "relu", "not"]
INEXACT_UNARY = ["sqrt", "exp", "tanh", "sigmoid"]
EXACT_BINARY = ["add", "sub", "mul", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "and", "or"]
EXACT_REDUCTIONS = ["sum", "max", "min", "any", "all", "count", "argmax", "argmin"]
INEXACT_REDUCTIONS = ["mean", "var", "prod"]


def number(scalar):
    """A number as it stands in attributes."""
    return float(scalar) if isinstance(scalar, str) else scalar


def written(scalar):
    return repr(scalar) if isinstance(scalar, float) else scalar


def operands(sides, arrays):
    arrays = iter(arrays)
    return [next(arrays) if side == "input" else number(side["scalar"]) for side in sides]


def reduced(function, array, axes, keepdims, ddof):
    if function in ("argmax", "argmin"):
        axis = None if axes is None else axes[0]
        return getattr(np, function)(array, axis=axis, keepdims=keepdims)
    axes = None if axes is None else tuple(axes)
    if function == "count":
        return np.count_nonzero(array, axis=axes, keepdims=keepdims)
    if function == "var":
        return np.var(array, axis=axes, keepdims=keepdims, ddof=ddof)
    return getattr(np, function)(array, axis=axes, keepdims=keepdims)


def picked(index):
    return tuple(one if isinstance(one, int) else slice(one.get("start"), one.get("stop"), one.get("step")) for one in index)


def whole(operator, arrays, data):
    """What numpy makes of one operator."""
    op = operator["op"]
    if op == "full":
        return np.full(operator["shape"], number(operator["value"]), DTYPES[operator["dtype"]])
    if op == "from_bytes":
        return np.frombuffer(bytes(data), DTYPES[operator["dtype"]]).reshape(operator["shape"])
    if op == "arange":
        return np.arange(*(number(operator[of]) for of in ("start", "stop", "step")), dtype=DTYPES[operator["dtype"]])
    if op == "linspace":
        return np.linspace(number(operator["start"]), number(operator["stop"]), operator["num"], operator["endpoint"])
    if op == "eye":
        return np.eye(operator["rows"], operator["columns"], operator["diagonal"], DTYPES[operator["dtype"]])
    if op == "unary":
        return UNARY[operator["function"]](arrays[0])
    if op == "cast":
        return arrays[0].astype(DTYPES[operator["dtype"]])
    if op == "binary":
        return BINARY[operator["function"]](*operands([operator["left"], operator["right"]], arrays))
    if op == "where":
        return np.where(arrays[0], *operands([operator["yes"], operator["no"]], arrays[1:]))
    if op == "slice":
        return arrays[0][picked(operator["index"])]
    if op == "set_item":
        copy = arrays[0].copy()
        copy[picked(operator["index"])] = operands([operator["value"]], arrays[1:])[0]
        return copy
    if op == "take":
        return np.take(arrays[0], np.array(operator["indices"], np.int64), operator["axis"])
    if op == "compress":
        return np.compress(arrays[1], arrays[0], operator["axis"])
    if op == "split":
        return np.array_split(arrays[0], operator["sections"], operator["axis"])[operator["part"]]
    if op in ("concat", "stack"):
        return (np.concatenate if op == "concat" else np.stack)(arrays, operator["axis"])
    if op == "transpose":
        return np.transpose(arrays[0], operator["axes"])
    if op == "expand_dims":
        return np.expand_dims(arrays[0], operator["axis"])
    if op == "reshape":
        return arrays[0].reshape(operator["shape"])
    if op == "rechunk":
        return arrays[0]
    if op == "matmul":
        return np.matmul(*arrays)
    assert op == "reduce", op
    return reduced(operator["function"], arrays[0], operator["axes"], operator["keepdims"], operator["ddof"])


# ---- Random graphs ----


class Graph:
    def __init__(self, chance):
        self.chance, self.tileables, self.arrays = chance, [], []

    def add(self, operator, inputs=(), data=b""):
        """Adds what numpy computes and Tripod has a type for."""
        with np.errstate(all="ignore"):
            try:
                array = np.asarray(whole(operator, [self.arrays[place] for place in inputs], data))
            except (TypeError, ValueError, IndexError):
                return False
        if array.dtype not in NAMES or array.ndim > 5 or array.size > 4000:
            return False
        keys = [f"t{place}" for place in inputs]
        # How much a mask keeps is not known when the graph is cut.
        shape = [None] * array.ndim if operator["op"] == "compress" else list(array.shape)
        declared = {"shape": shape, "dtype": NAMES[array.dtype]}
        tileable = {"key": f"t{len(self.arrays)}", "operator": operator, "inputs": keys, "declared": declared}
        self.tileables.append({**tileable, "data": list(data)} if data else tileable)
        self.arrays.append(array)
        return True

    def chunks(self, shape):
        c = self.chance
        return c.choice([None, c.randint(1, 4), [c.randint(1, 4) for _ in shape]])

    def shape(self):
        return [self.chance.choice([1, 2, 3, 4, 5, 7, 0, 3]) for _ in range(self.chance.randint(0, 3))]

    def scalar(self):
        c = self.chance
        return c.choice([c.randint(-3, 3), c.randint(-6, 6) / 2, bool(c.randint(0, 1))])

    def source(self):
        c, shape = self.chance, self.shape()
        dtype = c.choice(list(DTYPES))
        kind = c.randint(0, 6)
        if kind == 0:
            operator = {"op": "full", "value": written(self.scalar()), "shape": shape, "dtype": dtype}
        elif kind == 1:
            rows, columns = c.randint(0, 6), c.randint(0, 6)
            shape = [rows, columns]
            operator = {"op": "eye", "rows": rows, "columns": columns, "diagonal": c.randint(-3, 3), "dtype": dtype}
        elif kind == 2:
            dtype = c.choice(["i32", "i64", "f64"])
            half = 0.5 if dtype == "f64" else 1
            start, stop, step = (c.choice(some) * half for some in (range(-9, 9), range(-9, 9), [1, -1, 2, 3, -4]))
            operator = {"op": "arange", "start": written(start), "stop": written(stop), "step": written(step), "dtype": dtype}
            shape = [1]
        elif kind == 3:
            num = c.randint(0, 9)
            operator = {"op": "linspace", "start": 0, "stop": max(num - 1, 1), "num": num, "endpoint": True}
            shape = [1]
        else:
            numbers = np.array([c.randint(-3, 3) for _ in range(int(np.prod(shape)))]).astype(DTYPES[dtype])
            operator = {"op": "from_bytes", "shape": shape, "dtype": dtype, "chunks": self.chunks(shape)}
            return self.add(operator, data=numbers.tobytes())
        return self.add({**operator, "chunks": self.chunks(shape)})

    def slices(self, array):
        c = self.chance
        bound = lambda: c.choice([None, c.randint(-8, 8)])
        one = lambda: {"start": bound(), "stop": bound(), "step": c.choice([None, 1, -1, 2, -2, 3, -3])}
        return [
            c.randint(-extent, extent - 1) if extent and c.random() < 0.2 else one()
            for extent in array.shape[: c.randint(0, array.ndim)]
        ]

    def operate(self):
        c, last = self.chance, len(self.arrays)
        first, second, third = (last - 1 - c.randint(0, min(last, 3) - 1) for _ in range(3))
        array = self.arrays[first]
        axis = c.randint(-array.ndim, array.ndim - 1) if array.ndim else 0
        scalar = {"scalar": written(self.scalar())}
        kind = c.randint(0, 17)
        if kind == 0:
            # Numpy makes whole numbers of the larger one of a truth and 0, which is refused here.
            function = "not" if array.dtype == np.bool_ else c.choice(EXACT_UNARY)
            return self.add({"op": "unary", "function": function}, [first])
        if kind in (1, 2):
            sides, inputs = c.choice([(("input", scalar), [first]), ((scalar, "input"), [first]), (("input", "input"), [first, second])])
            return self.add({"op": "binary", "function": c.choice(EXACT_BINARY), "left": sides[0], "right": sides[1]}, inputs)
        if kind == 3:
            return self.add({"op": "cast", "dtype": c.choice(list(DTYPES))}, [first])
        if kind in (4, 5):
            return self.add({"op": "slice", "index": self.slices(array)}, [first])
        if kind == 6:
            return self.add({"op": "set_item", "index": self.slices(array), "value": scalar}, [first])
        if kind == 7:
            index = self.slices(array)
            if array[picked(index)].ndim < self.arrays[second].ndim:
                return False
            return self.add({"op": "set_item", "index": index, "value": "input"}, [first, second])
        if kind == 8:
            no, inputs = c.choice([("input", [first, second, third]), (scalar, [first, second])])
            return self.add({"op": "where", "yes": "input", "no": no}, inputs)
        if kind == 9 and array.ndim and array.shape[axis]:
            extent = array.shape[axis]
            indices = [c.randint(-extent, extent - 1) for _ in range(c.randint(0, 8))]
            return self.add({"op": "take", "indices": indices, "axis": axis}, [first])
        if kind == 10 and array.ndim:
            sections = c.randint(1, 4)
            return self.add({"op": "split", "sections": sections, "part": c.randrange(sections), "axis": axis}, [first])
        if kind == 11:
            op = c.choice(["concat", "stack"])
            return self.add({"op": op, "axis": axis}, c.choice([[first], [first, first], [first, second], [first, second, third]]))
        if kind == 12:
            return self.add({"op": "transpose", "axes": c.sample(range(array.ndim), array.ndim)}, [first])
        if kind == 13:
            return self.add({"op": "expand_dims", "axis": c.randint(-array.ndim - 1, array.ndim)}, [first])
        if kind == 14:
            rows = c.choice([extent for extent in range(1, 13) if array.size % extent == 0])
            return self.add({"op": "reshape", "shape": c.choice([[-1], [rows, -1], [-1, rows]])}, [first])
        if kind == 15:
            return self.add({"op": "rechunk", "chunks": self.chunks(array.shape)}, [first])
        if kind == 16 and 1 <= array.ndim <= 2 and 1 <= self.arrays[second].ndim <= 2:
            return self.add({"op": "matmul"}, [first, second])
        return self.reduce(first, c.choice(EXACT_REDUCTIONS))

    def reduce(self, first, function):
        c, array = self.chance, self.arrays[first]
        some = c.sample(range(array.ndim), c.randint(0, array.ndim))
        axes = None if c.random() < 0.3 else [axis - array.ndim if c.random() < 0.3 else axis for axis in some]
        if function in ("argmax", "argmin") and axes is not None:
            axes = axes[:1] or None
        ddof = c.randint(0, 1) if function == "var" else 0
        operator = {"op": "reduce", "function": function, "axes": axes, "keepdims": c.random() < 0.3, "ddof": ddof}
        return self.add(operator, [first])

    def finish(self):
        c, first = self.chance, len(self.arrays) - 1
        kind = c.randint(0, 3)
        if kind == 0:
            self.reduce(first, c.choice(INEXACT_REDUCTIONS))
        elif kind == 1:
            self.add({"op": "unary", "function": c.choice(INEXACT_UNARY)}, [first])
        elif kind == 2 and self.arrays[first].ndim:
            axis = c.randrange(self.arrays[first].ndim)
            extent = self.arrays[first].shape[axis]
            mask = np.array([c.random() < 0.5 for _ in range(extent)], np.bool_)
            operator = {"op": "from_bytes", "shape": [extent], "dtype": "bool", "chunks": self.chunks([extent])}
            if self.add(operator, data=mask.tobytes()):
                self.add({"op": "compress", "axis": axis}, [first, first + 1])


def build(chance):
    graph = Graph(chance)
    while not graph.arrays:
        graph.source()
    for _ in range(chance.randint(0, 2)):
        graph.source()
    for _ in range(chance.randint(1, 9)):
        graph.operate()
    graph.finish()
    return graph


def products():
    """Products with so many sums that each computes its own, of random numbers, whose sums depend on their order."""
    tileables = []
    for key, rows, columns, seed in ("a", 20, 26, 3), ("b", 26, 20, 4):
        operator = {"op": "rand_uniform", "seed": seed, "low": 0, "high": 1, "shape": [rows, columns], "dtype": "f64",
                    "chunks": 6}
        tileables.append({"key": key, "operator": operator})
    return [*tileables, {"key": "c", "operator": {"op": "matmul"}, "inputs": ["a", "b"]}]


def reductions():
    """Reductions of random numbers in so many chunks that their merges are trees and chunks are made in groups; and of some
    along other axes."""
    for shape, chunks, some in (
        ([100_000], 1_000, [("mean", None), ("var", None), ("argmax", None)]),
        ([70, 40], [3, 7], [("mean", [0]), ("var", [0]), ("sum", [1]), ("sum", None), ("argmin", [1]), ("max", [0])]),
        ([64, 16], [1, 4], [("sum", [1])]),
    ):
        source = {"op": "rand_uniform", "seed": 5, "low": 0, "high": 1, "shape": shape, "dtype": "f64", "chunks": chunks}
        tileables = [{"key": "x", "operator": source}]
        for at, (function, axes) in enumerate(some):
            operator = {"op": "reduce", "function": function, "axes": axes}
            tileables.append({"key": f"r{at}", "operator": operator, "inputs": ["x"]})
        yield tileables


def operators_of(node):
    """Names of a node's operator and of those within it."""
    yield node["operator"]["op"]
    for step in node["operator"].get("steps", ()):
        yield step["operator"]["op"]


def compare_fused(arguments):
    graphs = [build(random.Random(f"{arguments.seed}/{at}")).tileables for at in range(arguments.graphs)]
    fused_steps, used = 0, set()
    with chunk_graph.tiling(arguments.program) as tile, chunk_graph.tiling(arguments.program, fused=True) as fused:
        for at, tileables in enumerate([*graphs, products(), *reductions()]):
            whole, keys = fused(tileables), chunk_graph.last(tileables)
            steps = [node["operator"].get("steps", ()) for node in whole["nodes"]]
            fused_steps += sum(map(len, steps))
            used.update(op for node in whole["nodes"] for op in operators_of(node))
            apart = dict(zip((one["key"] for one in tileables), chunk_graph.computed(tile(tileables)), strict=True))
            for key, is_ in zip(keys, chunk_graph.computed(whole), strict=True):
                same = is_.dtype == apart[key].dtype and is_.shape == apart[key].shape
                same = same and is_.tobytes() == apart[key].tobytes()
                assert same, f"graph {at}, {key}:\n{is_}\nand not\n{apart[key]}\n{json.dumps(tileables)}"
    assert fused_steps > arguments.graphs, fused_steps
    missing = {"matmul_sum", "reduce_several", "reduce_tree", "chains"} - used
    assert not missing, f"no chunk is made by {missing}"
    print(f"{arguments.graphs} graphs with {fused_steps} steps of fused chunks are what they are without, bit for bit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--graphs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fused", action="store_true", help="chains of chunks as one, and the same as apart, bit for bit")
    arguments = parser.parse_args()
    assert int(np.__version__.split(".")[0]) >= 2, "types are promoted as numpy 2 does"
    if arguments.fused:
        return compare_fused(arguments)
    used = {}
    with chunk_graph.tiling(arguments.program) as tile:
        for at in range(arguments.graphs):
            graph = build(random.Random(f"{arguments.seed}/{at}"))
            results = chunk_graph.computed(tile(graph.tileables))
            for tileable, is_, wanted in zip(graph.tileables, results, graph.arrays, strict=True):
                op = tileable["operator"]["op"]
                used[op] = used.get(op, 0) + 1
                same = is_.dtype == wanted.dtype and is_.shape == wanted.shape
                close = same and np.allclose(is_, wanted, rtol=1e-5, atol=1e-8, equal_nan=True)
                assert close, f"graph {at}, {tileable}:\n{is_}\nand not\n{wanted}\n{json.dumps(graph.tileables)}"
    print(f"{arguments.graphs} graphs are what numpy makes of them: {dict(sorted(used.items()))}")


if __name__ == "__main__":
    sys.exit(main())
