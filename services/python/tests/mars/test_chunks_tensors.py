"""Operators on tensors, each compared with numpy."""

import json
import time
import unittest
import warnings

import numpy as np

from tripod_mars import worker
from tripod_mars.chunk import elementwise, operators
from tripod_mars.chunk.node import ChunkNode, Node

from . import chunks
from .chunks import tensor

DTYPES = {"bool": np.bool_, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
WHOLE = "whole"


def part(start, step, count):
    return {"part": {"start": start, "step": step, "count": count}}


def some(dtype, shape=(3, 4), seed=0):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


class Sources(unittest.TestCase):
    def test_full(self):
        for name, dtype in DTYPES.items():
            for value in (True, 0, -3, 2.5):
                text = repr(value) if isinstance(value, float) else value
                tensor(self, "full", np.full((2, 3), value, dtype), extents=[2, 3], value=text)
        tensor(self, "full", np.full((), np.nan), extents=[], value="NaN")
        tensor(self, "full", np.full((1,), -np.inf), extents=[1], value="-inf")

    def test_eye(self):
        for diagonal in (-4, -3, -1, 0, 2, 5, 6, 2**63 - 1, -(2**63)):
            wanted = np.array([[float(c - r == diagonal) for c in range(6)] for r in range(4)])
            tensor(self, "eye", wanted, extents=[4, 6], diagonal=diagonal)
        tensor(self, "eye", np.zeros((0, 3), np.bool_), extents=[0, 3], diagonal=0)

    def test_arange_goes_on_where_the_chunk_before_ended(self):
        for start, stop, step in [(0, 10, 1), (5, -7, -2), (-3, 8, 4)]:
            for dtype in ("i32", "i64"):
                whole = np.arange(start, stop, step, DTYPES[dtype])
                tensor(self, "arange", whole[2:], extents=[len(whole) - 2], start=start, delta=step, offset=2)
        whole = np.arange(0.1, 5, 0.3)
        delta = repr(0.1 + 0.3 - 0.1)
        tensor(self, "arange", whole[3:], extents=[len(whole) - 3], start="0.1", delta=delta, offset=3)

    def test_whole_numbers_beyond_53_bits_are_exact(self):
        wanted = np.array([2**63 - 1 - 2, 2**63 - 1])
        tensor(self, "arange", wanted, extents=[2], start=2**63 - 1 - 6, delta=2, offset=2)
        # The step of three elements overflows, what they are does not.
        wanted = np.array([-(2**63), -1, 2**63 - 2])
        tensor(self, "arange", wanted, extents=[3], start=-(2**63), delta=2**63 - 1, offset=0)
        tensor(self, "arange", np.empty(0, np.int64), extents=[0], start=2**63 - 1, delta=2**62, offset=0)

    def test_linspace_ends_where_it_should(self):
        start, stop, num = 0.1, 0.7, 11
        step, whole = (stop - start) / (num - 1), np.linspace(start, stop, num)
        for begin, end in [(0, 5), (5, 11), (10, 11), (3, 3)]:
            operator = {"start": repr(start), "step": repr(step), "last": repr(stop), "num": num, "offset": begin}
            tensor(self, "linspace", whole[begin:end], extents=[end - begin], **operator)
        open_ended = np.linspace(0, 1, 4, endpoint=False)
        tensor(self, "linspace", open_ended, extents=[4], start="0.0", step="0.25", last=None, num=4, offset=0)

    def test_random_chunks_are_those_of_seed_and_stream(self):
        for seed, stream in [(1, 0), (2**64 - 1, 7)]:
            make = lambda: np.random.Generator(np.random.Philox(key=np.array([seed, stream], np.uint64)))
            keyed = {"extents": [5, 3], "seed": seed, "stream": stream}
            tensor(self, "rand_uniform", make().uniform(-1, 2.5, (5, 3)), low=-1, high="2.5", **keyed)
            for shape in ([5, 3], [0], []):
                wanted = make().uniform(0, 1, shape)
                tensor(self, "rand_uniform", wanted, low=0, high=1, **{**keyed, "extents": shape})
            wanted = make().normal(0.5, 3, (5, 3)).astype(np.float32)
            tensor(self, "rand_normal", wanted, mean="0.5", deviation=3, **keyed)

    def test_bytes_that_a_node_brings(self):
        for array in (some(np.int32), some(np.bool_), np.empty((0, 2)), np.array(4.0)):
            tensor(self, "from_bytes", array, extents=array.shape, data=array.tobytes())
        with self.assertRaises(ValueError):
            chunks.run("from_bytes", "i64", extents=[2], data=bytes(8))


class Elementwise(unittest.TestCase):
    def test_functions_of_one_element(self):
        mine = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0)}
        numpys = {"neg": "negative", "not": "logical_not"}
        self.assertEqual(
            {"neg", "abs", "sqrt", "exp", "log", "tanh", "sigmoid", "relu", "not"}, set(elementwise.UNARY)
        )
        for function in elementwise.UNARY:
            for dtype in DTYPES.values():
                if dtype == np.bool_ and function not in ("not", "abs"):
                    continue
                array = some(dtype)
                with np.errstate(all="ignore"):
                    wanted = (mine.get(function) or getattr(np, numpys.get(function, function)))(array)
                tensor(self, "unary", wanted, [array], function=function)

    def test_functions_of_two_elements_of_all_types(self):
        numpys = {
            "sub": "subtract", "mul": "multiply", "div": "true_divide", "floordiv": "floor_divide", "pow": "power",
            "max": "maximum", "min": "minimum", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
            "gt": "greater", "ge": "greater_equal", "and": "logical_and", "or": "logical_or",
        }  # fmt: skip
        self.assertEqual(17, len(elementwise.BINARY))
        for function in elementwise.BINARY:
            compute = getattr(np, numpys.get(function, function))
            for one in DTYPES.values():
                for other in DTYPES.values():
                    left, right = some(one), some(other, (4,), 1)
                    if function == "pow":
                        right = np.abs(right)
                    with np.errstate(all="ignore"):
                        try:
                            wanted = compute(left, right)
                        except TypeError:
                            continue
                    if wanted.dtype not in [np.dtype(dtype) for dtype in DTYPES.values()]:
                        continue
                    sides = {"left": "input", "right": "input"}
                    tensor(self, "binary", wanted, [left, right], function=function, **sides)

    def test_numbers_have_a_kind_but_no_width(self):
        for dtype in (np.int32, np.float32, np.bool_):
            for value in (True, 2, 0.5):
                scalar = {"scalar": repr(value) if isinstance(value, float) else value}
                array = some(dtype)
                tensor(self, "binary", array + value, [array], function="add", left="input", right=scalar)
                tensor(self, "binary", value * array, [array], function="mul", left=scalar, right="input")
                tensor(self, "where", np.where(array > 0, value, array), [array > 0, array], yes=scalar, no="input")

    def test_where_of_inputs_and_numbers(self):
        a, b, c = some(np.bool_), some(np.float32), some(np.int32, (4,), 1)
        tensor(self, "where", np.where(a, b, c), [a, b, c], yes="input", no="input")
        wanted = np.where(a, 1, 0)
        tensor(self, "where", wanted, [a], yes={"scalar": 1}, no={"scalar": 0})

    def test_casts(self):
        for one in DTYPES.values():
            for other in DTYPES.values():
                tensor(self, "cast", some(one).astype(other), [some(one)])

    def test_quotients_by_zero_are_values_and_no_warnings(self):
        zeros = np.zeros(2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tensor(self, "binary", [np.nan] * 2, [zeros, zeros], function="div", left="input", right="input")
            tensor(self, "unary", [-np.inf] * 2, [zeros], function="log")
            chunks.run("cast", "i32", [np.array([np.nan])])

    def test_a_negative_power_of_whole_numbers_is_refused_as_by_numpy(self):
        two = np.array([2])
        with self.assertRaisesRegex(ValueError, "negative integer powers"):
            chunks.run("binary", "i64", [two, -two], function="pow", left="input", right="input")


class Pieces(unittest.TestCase):
    def test_slices(self):
        a = some(np.int64, (5, 6))
        tensor(self, "slice", a, [a], ranges=[WHOLE, WHOLE], drop=[])
        tensor(self, "slice", a[1:5:2], [a], ranges=[part(1, 2, 2), WHOLE], drop=[])
        tensor(self, "slice", a[::-1, 4::-2], [a], ranges=[part(4, -1, 5), part(4, -2, 3)], drop=[])
        tensor(self, "slice", a[3, :0], [a], ranges=[part(3, 1, 1), part(0, 1, 0)], drop=[0])
        tensor(self, "slice", a[2, 5], [a], ranges=[part(2, 1, 1), part(5, 1, 1)], drop=[0, 1])
        tensor(self, "slice", a[:1][0], [a[:1]], ranges=[WHOLE, WHOLE], drop=[0])

    def test_pieces_are_put_together(self):
        a, b, c, d = some(np.int32, (2, 3)), some(np.int32, (2, 2), 1), some(np.int32, (4, 3), 2), some(np.int32, (4, 2), 3)
        whole = [WHOLE, WHOLE]
        wanted = np.block([[a, b], [c[:1], d[:1]]])
        first = [part(0, 1, 1), WHOLE]
        tensor(self, "assemble", wanted, [a, b, c, d], grid=[2, 2], pieces=[whole, whole, first, first])
        reversed_ = np.concatenate([a[::-1], c[3:1:-2]])
        pieces = [[part(1, -1, 2), WHOLE], [part(3, -2, 1), WHOLE]]
        tensor(self, "assemble", reversed_, [a, c], grid=[2, 1], pieces=pieces)
        tensor(self, "assemble", np.array(3), [np.array(3)], grid=[], pieces=[[]])
        one = np.arange(4)
        tensor(self, "assemble", one[1:3], [one], grid=[1], pieces=[[part(1, 1, 2)]])

    def test_elements_are_gathered_from_several_chunks(self):
        a, b = some(np.float64, (3, 2)), some(np.float64, (3, 4), 1)
        source = [[1, 3], [0, 0], [1, 3], [0, 1]]
        wanted = np.stack([b[:, 3], a[:, 0], b[:, 3], a[:, 1]], 1)
        tensor(self, "gather", wanted, [a, b], axis=1, **{"from": source})
        tensor(self, "gather", a[[2, 2]], [a], axis=0, **{"from": [[0, 2], [0, 2]]})
        tensor(self, "gather", a[:, :0], [a], axis=1, **{"from": []})

    def test_assignments(self):
        a, value = some(np.int32, (4, 5)), some(np.float64, (2,), 1)
        wanted = a.copy()
        wanted[1::2, 3] = value
        ranges = [part(1, 2, 2), part(3, 1, 1)]
        before = a.copy()
        tensor(self, "assign", wanted, [a, value], ranges=ranges, drop=[1], value="input")
        np.testing.assert_array_equal(a, before)
        wanted = a.copy()
        wanted[::-1] = np.arange(5)
        tensor(self, "assign", wanted, [a, np.arange(5)], ranges=[part(3, -1, 4), WHOLE], drop=[], value="input")
        wanted = np.array(7)
        tensor(self, "assign", wanted, [np.array(1)], ranges=[], drop=[], value={"scalar": 7})

    def test_masks(self):
        a, mask = some(np.int64, (3, 4)), np.array([True, False, True])
        tensor(self, "compress", a[mask], [a, mask], axis=0)
        tensor(self, "compress", a[:, :0], [a, np.zeros(4, np.bool_)], axis=1)
        with self.assertRaises(ValueError):
            chunks.run("compress", "i64", [a, mask], axis=1)

    def test_shapes(self):
        a = some(np.float32, (2, 3, 4))
        tensor(self, "transpose", a.transpose(2, 0, 1), [a], axes=[2, 0, 1])
        tensor(self, "expand_dims", a[:, None], [a], axis=1)
        tensor(self, "reshape", a.reshape(6, 4), [a], extents=[6, 4])
        tensor(self, "reshape", np.array(1), [np.ones((1, 1), np.int64)], extents=[])
        tensor(self, "fetch", a, [a], chunk="a:0")


class Linear(unittest.TestCase):
    def test_products_and_their_sums(self):
        a, b = some(np.int32, (3, 4)), some(np.float32, (4, 2), 1)
        tensor(self, "matmul", a @ b, [a, b])
        tensor(self, "matmul", a[0] @ b, [a[0], b])
        tensor(self, "matmul", a[0] @ a[1], [a[0], a[1]])
        tensor(self, "matmul", (a > 0) @ (b > 0), [a > 0, b > 0])
        tensor(self, "add_n", a + a + a, [a, a, a])
        tensor(self, "add_n", a, [a])
        tensor(self, "add_n", np.array(6), [np.array(1), np.array(2), np.array(3)])
        tensor(self, "add_n", (a > 0) | (a > 1) | (a < 0), [a > 0, a > 1, a < 0])


class Helpers(unittest.TestCase):
    def test_a_sleep_takes_its_time(self):
        begin = time.monotonic()
        tensor(self, "sleep", np.array([1]), [np.array([1])], ms=30)
        self.assertGreaterEqual(time.monotonic() - begin, 0.03)
        with self.assertRaises(ValueError):
            chunks.run("sleep", "i64", [np.array([1])], ms=2**60)

    def test_failures_end_after_their_attempts(self):
        from tripod_ray.context import TaskContext

        one = np.array([1])
        with self.assertRaisesRegex(RuntimeError, "as told"):
            chunks.run("fail", "i64", [one], message="as told", attempts=1)
        tensor(self, "fail", one, [one], message="as told", attempts=0)
        for attempt, fails in [(1, True), (2, True), (3, False)]:
            with TaskContext((5, attempt), "f"):
                if fails:
                    self.assertRaises(RuntimeError, chunks.run, "fail", "i64", [one], message="x", attempts=2)
                else:
                    tensor(self, "fail", one, [one], message="x", attempts=2)

    def test_memory_is_taken(self):
        tensor(self, "alloc", np.array([1]), [np.array([1])], bytes=1 << 20)


class Fused(unittest.TestCase):
    """Chains, with what is between its steps as it would have come from a store."""

    def step(self, op, content, extents, **attributes):
        return {"operator": {"op": op, **attributes}, "content": chunks.described(content), "extents": extents}

    def test_each_step_has_what_the_one_before_made(self):
        steps = [
            self.step("from_bytes", "i64", [2, 3]),
            self.step("transpose", "i64", [3, 2], axes=[1, 0]),
            self.step("cast", "f64", ["?0.0.0", 2]),
        ]
        array = np.arange(6).reshape(2, 3)
        is_ = chunks.run("fused", "f64", extents=["?0.0.0", 2], data=array.tobytes(), steps=steps)
        np.testing.assert_array_equal(array.T.astype(float), is_)

    def test_an_error_is_that_of_its_step(self):
        steps = [self.step("cast", "i64", [1]), self.step("fail", "i64", [1], message="as told", attempts=1)]
        with self.assertRaisesRegex(RuntimeError, "as told"):
            chunks.run("fused", "i64", [np.array([1.0])], steps=steps)


class Nodes(unittest.TestCase):
    def test_an_operator_that_is_unknown_is_named(self):
        for payload in (b"", b"\x80\x04K\x01.", b"[1]", b"{}", b'{"operator": {"op": "add"}}'):
            node = ChunkNode(key="k", op_type="my.own", payload=payload).SerializeToString()
            with self.assertRaises(operators.UnknownOperatorError) as raised:
                worker.compute(node, [])
            self.assertEqual("UNIMPLEMENTED: operator my.own", str(raised.exception))

    def test_a_chunk_that_no_machine_holds_is_refused(self):
        for extents in ([2**49], [2**40, 2**40]):
            with self.assertRaisesRegex(MemoryError, "a chunk of .* bytes; this machine has"):
                chunks.run("full", "f64", extents=extents, value=1)

    def test_bytes_that_are_no_node_are_refused(self):
        with self.assertRaises(ValueError):
            Node.decoded(b"\xff\xff")

    def test_a_damaged_input_is_named(self):
        memory, offset = chunks.stored(np.arange(50))
        damaged = bytearray(memory)
        damaged[3] ^= 1
        node = chunks.encoded("binary", "i64", function="add", left="input", right="input")
        with self.assertRaisesRegex(ValueError, "input 1 of binary"):
            worker.compute(node, [(memory, offset), (damaged, offset)])

    def test_every_operator_of_tiling_is_there(self):
        import pathlib
        import re

        source = pathlib.Path(__file__).resolve().parents[4] / "services/tile/src/chunk/operator.rs"
        if not source.is_file():
            self.skipTest("services/tile is not beside the package")
        body = source.read_text().split("pub enum ChunkOperator {")[1].split("\n}")[0]
        names = re.findall(r"^    ([A-Z]\w+)(?: \{|,)", body, re.M)
        self.assertGreater(len(names), 30)
        snake = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in names}
        self.assertEqual(snake, set(operators.OPERATORS))

    def test_extents_that_only_execution_tells_are_none(self):
        node = ChunkNode(op_type="reshape", dtype=3)
        node.shape.extents.extend([-1, 2])
        decoded = Node.decoded(node.SerializeToString())
        self.assertEqual(([None, 2], {"tensor": "i64"}), (decoded.extents, decoded.content))
        unknown = {"tileable": 0, "axis": 0, "part": 0, "measure": "true"}
        node.payload = json.dumps({"operator": {}, "content": "partial", "extents": [unknown, 3]}).encode()
        decoded = Node.decoded(node.SerializeToString())
        self.assertEqual(([None, 3], "partial"), (decoded.extents, decoded.content))


class Chains(unittest.TestCase):
    def test_a_chain_is_its_steps_in_turn_with_the_data_of_the_node_and_without_warnings(self):
        content = {"tensor": "f64"}
        steps = [
            {"operator": {"op": "from_bytes"}, "content": content, "extents": [3]},
            # Data of a step means nothing, and so much would fill the memory.
            {"operator": {"op": "unary", "function": "log"}, "content": content, "extents": [3], "data": 1 << 62},
        ]
        values = np.array([0.0, 1.0, -1.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = chunks.run("fused", "f64", extents=[3], data=values.tobytes(), steps=steps)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(made, np.log(values))


if __name__ == "__main__":
    unittest.main()
