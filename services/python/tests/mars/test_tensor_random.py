"""Random programs are the same with numpy and with tensors: shapes and types before anything is computed, and every
element after. Numbers are small and whole, so that sums are exact in any order."""

import os
import random
import unittest

from mars.case import Case, mt, np

PROGRAMS = int(os.environ.get("TRIPOD_MARS_PROGRAMS", "150"))
DTYPES = ("bool", "i4", "i8", "f4", "f8")


class Program:
    """Pairs of an array and a tensor, which grow by operators that numpy can do."""

    def __init__(self, chance):
        self.chance = chance
        self.pairs = []
        for _ in range(chance.randint(1, 3)):
            shape = [chance.choice([1, 2, 3, 5, 7]) for _ in range(chance.randint(0, 3))]
            numbers = [chance.randint(-3, 3) for _ in range(int(np.prod(shape)))]
            array = np.array(numbers, np.int64).reshape(shape).astype(chance.choice(DTYPES))
            self.pairs.append((array, mt.tensor(array, chunk_size=chance.choice([None, 1, 2, 4]))))

    def step(self):
        """One operator; what numpy or the cluster refuses is left out, if both do."""
        expression, pairs = self.expression()
        with np.errstate(all="ignore"):
            try:
                array = np.asarray(expression(np, *[array.copy() for array, _ in pairs]))
            except (TypeError, ValueError, IndexError, OverflowError):
                array = None
        if array is not None and (array.dtype.name not in ("bool", "int32", "int64", "float32", "float64") or array.size > 2000):
            return
        try:
            tensor = expression(mt, *[tensor.copy() for _, tensor in pairs])
        except (TypeError, ValueError, IndexError, OverflowError):
            # numpy makes elements of a kind that is not here, such as an int8, or it refuses, too.
            return
        assert array is not None, f"numpy refuses what tensors do: {pairs}"
        assert tensor.dtype == array.dtype, (tensor, array.dtype)
        assert all(told in (None, is_) for told, is_ in zip(tensor.shape, array.shape)), (tensor, array.shape)
        assert tensor.ndim == array.ndim
        self.pairs.append((array, tensor))

    def expression(self):
        c = self.chance
        first, second, third = (c.choice(self.pairs[-4:]) for _ in range(3))
        dims = first[0].ndim
        axis = c.randint(-dims, dims - 1) if dims else None
        number = c.choice([c.randint(-3, 3), c.randint(-6, 6) / 2, True])
        index = tuple(self.index(extent) for extent in first[0].shape[: c.randint(0, dims)])
        kind = c.randint(0, 13)
        if kind <= 1:
            name = c.choice(["add", "subtract", "multiply", "maximum", "minimum", "less", "equal", "logical_and"])
            return lambda m, a, b: getattr(m, name)(a, b), [first, second]
        if kind == 2:
            name = c.choice(["__add__", "__radd__", "__mul__", "__rsub__", "__gt__", "__le__", "__ne__"])
            return lambda m, a: getattr(m.multiply(a, a), name)(number) if a.ndim else a + number, [first]
        if kind == 3:
            dtype = c.choice(DTYPES)
            return lambda m, a: a.astype(dtype), [first]
        if kind in (4, 5):
            return lambda m, a: a[index], [first]
        if kind == 6:

            def assigned(m, a, b):
                a[index] = number if c_kind else b
                return a

            c_kind = c.randint(0, 1)
            return assigned, [first, second]
        if kind == 7:
            return lambda m, a, b, d: m.where(a, b, d), [first, second, third]
        if kind == 8:
            name = c.choice(["concatenate", "stack"])
            return lambda m, a, b: getattr(m, name)([a, b], axis=axis or 0), [first, second]
        if kind == 9:
            return lambda m, a: m.transpose(a).reshape(-1), [first]
        if kind == 10:
            name = c.choice(["sum", "max", "min", "any", "all", "argmax", "count_nonzero"])
            keepdims = c.random() < 0.3
            wanted = c.choice([None, axis])
            return lambda m, a: getattr(m, name)(a, axis=wanted, keepdims=keepdims), [first]
        if kind == 11:
            return lambda m, a: a[:, None, ...] if a.ndim else a, [first]
        if kind == 12:
            places = [c.randint(-4, 4) for _ in range(c.randint(0, 4))]
            return lambda m, a: m.take(a, places, axis=axis), [first]
        return lambda m, a, b: m.matmul(a, b), [first, second]

    def index(self, extent):
        c = self.chance
        if extent and c.random() < 0.2:
            return c.randint(-extent, extent - 1)
        bound = [None, *range(-8, 9)]
        return slice(c.choice(bound), c.choice(bound), c.choice([None, 1, -1, 2, -2, 3]))


class Programs(Case):
    def test_random_programs_are_those_of_numpy(self):
        operators = 0
        for seed in range(PROGRAMS):
            with self.subTest(seed=seed):
                program = Program(random.Random(f"program {seed}"))
                for _ in range(program.chance.randint(2, 9)):
                    program.step()
                mt.execute(*[tensor for _, tensor in program.pairs])
                for array, tensor in program.pairs:
                    found = tensor.fetch()
                    self.assertEqual((found.dtype, found.shape), (array.dtype, array.shape))
                    np.testing.assert_array_equal(found, array, str(tensor.visualize()))
                operators += len(program.pairs)
        self.assertGreater(operators, 3 * PROGRAMS)


if __name__ == "__main__":
    unittest.main()
