"""Reductions, cut in all ways and merged as tiling does, compared with numpy."""

import itertools
import random
import unittest
import warnings

import numpy as np

from tripod_mars.chunk import dtypes

from . import chunks

FUNCTIONS = ["sum", "prod", "max", "min", "any", "all", "count", "mean", "var", "argmax", "argmin"]
ALL_DTYPES = [np.bool_, np.int32, np.int64, np.float32, np.float64]
COMBINE_SIZE = 4


def numpys(function, array, axes, keepdims, ddof):
    if function == "count":
        return np.count_nonzero(array, axis=axes, keepdims=keepdims)
    if function in ("argmax", "argmin"):
        axis = axes[0] if len(axes) == 1 and array.ndim != 0 else None
        return getattr(np, function)(array, axis=axis, keepdims=keepdims)
    more = {"ddof": ddof} if function == "var" else {}
    return getattr(np, function)(array, axis=axes, keepdims=keepdims, **more)


def result_type(function, dtype):
    name = dtypes.name_of(np.dtype(dtype))
    if function in ("sum", "prod"):
        return "i64" if name[0] in "bi" else name
    if function in ("any", "all"):
        return "bool"
    if function in ("count", "argmax", "argmin"):
        return "i64"
    if function in ("mean", "var"):
        return "f32" if name == "f32" else "f64"
    return name


def parts(chance, extent):
    """An extent as a sum, in which there may be zeros."""
    cuts = sorted(chance.randint(0, extent) for _ in range(chance.choice([0, 1, 2, 5])))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, extent])]


def reduced(function, array, splits, axes, keepdims=False, ddof=0):
    """As services/tile cuts it: a partial result for each chunk, merged by fours along each axis."""
    reduction = {"function": function, "axes": list(axes), "keepdims": keepdims, "ddof": ddof}
    content = result_type(function, array.dtype)
    single = all(len(splits[axis]) == 1 for axis in axes)
    level = {}
    for place in itertools.product(*(range(len(split)) for split in splits)):
        begins = [sum(split[:at]) for split, at in zip(splits, place)]
        piece = array[tuple(slice(b, b + split[at]) for b, split, at in zip(begins, splits, place))]
        more = {}
        if function in ("argmax", "argmin") and axes:
            more = {"begin": [begins[axis] for axis in axes], "whole": [array.shape[axis] for axis in axes]}
        gives = "result" if single else "partial"
        level[place] = chunks.run(
            "reduce", content if single else "partial", [piece], reduction=reduction, takes="values", gives=gives, **more
        )
    while not single:
        counts = [max(place[axis] for place in level) + 1 for axis in range(array.ndim)]
        last = all(counts[axis] <= COMBINE_SIZE for axis in axes)
        groups = {}
        for place in sorted(level):
            to = tuple(at // COMBINE_SIZE if axis in axes else at for axis, at in enumerate(place))
            groups.setdefault(to, []).append(level[place])
        level = {
            to: chunks.run(
                "reduce", content if last else "partial", some, reduction=reduction, takes="partials",
                gives="result" if last else "partial",
            )
            for to, some in groups.items()
        }  # fmt: skip
        single = last
    kept = [axis for axis in range(array.ndim) if keepdims or axis not in axes]
    grid = [max(place[axis] for place in level) + 1 for axis in kept]
    pieces = [level[place] for place in sorted(level)]
    for axis in reversed(range(len(grid))):
        pieces = [np.concatenate(pieces[at : at + grid[axis]], axis) for at in range(0, len(pieces), grid[axis])]
    (whole,) = pieces
    return whole


class Reductions(unittest.TestCase):
    def check(self, function, array, splits, axes, keepdims=False, ddof=0):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = np.asarray(numpys(function, array, axes, keepdims, ddof))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            is_ = reduced(function, array, splits, axes, keepdims, ddof)
        what = f"{function} of {array.dtype}{array.shape} in {splits} along {axes}"
        self.assertEqual((wanted.dtype, wanted.shape), (is_.dtype, is_.shape), what)
        single = all(len(split) == 1 for split in splits)
        exact = single or function not in ("mean", "var") and (function not in ("sum", "prod") or array.dtype.kind != "f")
        if exact:
            np.testing.assert_array_equal(is_, wanted, what)
        else:
            within = 1e-5 if array.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(is_, wanted, rtol=within, atol=within, err_msg=what)

    def random(self, seed, make):
        chance = random.Random(seed)
        for _ in range(25):
            shape = [chance.choice([1, 2, 3, 5, 9]) for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))]
            for function in FUNCTIONS:
                dtype = chance.choice(ALL_DTYPES)
                splits = [parts(chance, extent) for extent in shape]
                axes = chance.sample(range(len(shape)), chance.randint(0, len(shape)))
                if function in ("argmax", "argmin"):
                    axes = axes[:1] if axes and chance.random() < 0.5 else range(len(shape))
                axes = tuple(sorted(axes))
                keepdims, ddof = chance.random() < 0.5, chance.randint(0, 2)
                self.check(function, make(chance, shape).astype(dtype), splits, axes, keepdims, ddof)

    def test_random_chunkings_of_small_numbers(self):
        """Few values, so there are ties; and none of the sums rounds."""
        self.random(1, lambda chance, shape: np.random.default_rng(chance.randint(0, 2**32)).integers(-2, 3, shape))

    def test_random_chunkings_of_fractions(self):
        self.random(2, lambda chance, shape: np.random.default_rng(chance.randint(0, 2**32)).normal(100, 1, shape))

    def test_random_chunkings_with_nan(self):
        def make(chance, shape):
            rng = np.random.default_rng(chance.randint(0, 2**32))
            return np.where(rng.random(shape) < 0.1, np.nan, rng.integers(-2, 3, shape))

        chance = random.Random(3)
        for _ in range(15):
            shape = [chance.choice([1, 2, 5, 9]) for _ in range(chance.choice([1, 2, 2, 3]))]
            for function in FUNCTIONS:
                axes = tuple(range(len(shape))) if chance.random() < 0.5 else (chance.randrange(len(shape)),)
                splits = [parts(chance, extent) for extent in shape]
                self.check(function, make(chance, shape).astype(chance.choice([np.float32, np.float64])), splits, axes)

    def test_the_lowest_place_wins_though_a_later_chunk_has_it(self):
        array = np.array([[0, 0, 7, 0], [7, 0, 0, 0]])
        self.check("argmax", array, [[2], [2, 2]], (0, 1))
        self.check("argmin", -array, [[2], [2, 2]], (0, 1), True)
        nan = np.where(array == 7, np.nan, 1.0)
        self.check("argmax", nan, [[2], [2, 2]], (0, 1))
        self.check("argmin", nan, [[1, 1], [2, 2]], (0, 1))

    def test_whole_numbers_wrap_as_in_numpy(self):
        array = np.full(9, 2**62, np.int64)
        self.check("sum", array, [[2, 3, 4]], (0,))
        self.check("prod", np.full(9, 2**31 - 1, np.int32), [[1] * 9], (0,))

    def test_a_variance_far_from_zero_keeps_its_digits(self):
        array = np.random.default_rng(5).normal(1e8, 1, 1000)
        is_ = reduced("var", array, [[10] * 100], (0,))
        np.testing.assert_allclose(is_, np.var(array), rtol=1e-8)

    def test_more_is_taken_away_than_there_is(self):
        for values in ([3.0], [1.0, 2.0]):
            for ddof in (1, 2, 3):
                self.check("var", np.array(values), [[len(values)]], (0,), ddof=ddof)
                self.check("var", np.array(values), [[1] * len(values)], (0,), ddof=ddof)


class Nothing(unittest.TestCase):
    check = Reductions.check

    def test_chunks_without_elements_count_for_nothing(self):
        array = np.array([[-5, -3, -4]])
        for function in FUNCTIONS:
            self.check(function, array, [[0, 1, 0], [0, 1, 0, 2]], (0, 1))
            self.check(function, array, [[1], [0, 0, 0, 0, 0, 3]], (1,))

    def test_what_has_a_result_for_no_elements(self):
        for function in ("sum", "prod", "any", "all", "count", "mean", "var"):
            for splits in ([[0]], [[0, 0]]):
                self.check(function, np.empty(0, np.float32), splits, (0,))
            self.check(function, np.empty((0, 3), np.int32), [[0, 0], [1, 2]], (0,), True)

    def test_extremes_of_no_elements_are_refused(self):
        for function in ("max", "min", "argmax", "argmin"):
            for splits in ([[0]], [[0, 0]]):
                with self.assertRaisesRegex(ValueError, f"^{function} of no elements, along axes"):
                    reduced(function, np.empty(0), splits, (0,))

    def test_extremes_of_no_elements_are_refused_though_nobody_would_see_them(self):
        """The result has no elements either, and numpy refuses it nevertheless."""
        for function in ("max", "min", "argmax", "argmin"):
            for splits in ([[0], [0]], [[0, 0], [0]]):
                with self.assertRaises(ValueError):
                    numpys(function, np.empty((0, 0)), (0,), False, 0)
                with self.assertRaisesRegex(ValueError, f"{function} of no elements"):
                    reduced(function, np.empty((0, 0)), splits, (0,))
            self.check(function, np.empty((0, 3)), [[0, 0], [1, 2]], (1,))

    def test_partial_results_of_others_are_refused(self):
        reduction = {"function": "sum", "axes": [0], "keepdims": False, "ddof": 0}
        partial = chunks.run("reduce", "partial", [np.ones(2)], reduction=reduction, takes="values", gives="partial")
        with self.assertRaises(TypeError):
            other = {**reduction, "function": "prod"}
            chunks.run("reduce", "f64", [partial], reduction=other, takes="partials", gives="result")
        with self.assertRaises(TypeError):
            chunks.run("group_by", [], [partial], by=[], aggregates=[], takes="partials", gives="result")


class Together(unittest.TestCase):
    """Several reductions of a chunk, trees of merges and groups of chains: what nodes of their own would have made."""

    SPLITS = [[1, 2, 0, 3, 1, 1, 2, 1, 2, 3], [2, 3]]

    def merges(self, dims, axes):
        """Leaves of a tree as places of chunks, and its groups, as services/tile cuts them."""
        counts = [len(split) for split in self.SPLITS[:dims]]
        level = {place: at for at, place in enumerate(itertools.product(*map(range, counts)))}
        groups, leaves = [], list(level)
        while len(level) > 1:
            wider = {}
            for place in sorted(level):
                to = tuple(at // COMBINE_SIZE if axis in axes else at for axis, at in enumerate(place))
                wider.setdefault(to, []).append(level[place])
            level = {}
            for place, group in wider.items():
                level[place] = len(leaves) + len(groups)
                groups.append(group)
        return leaves, groups

    def piece(self, array, place):
        begins = [sum(split[:at]) for split, at in zip(self.SPLITS, place)]
        return array[tuple(slice(b, b + split[at]) for b, split, at in zip(begins, self.SPLITS, place))]

    def parts(self, array, place, functions):
        axes = list(range(array.ndim))
        for function in functions:
            reduction = {"function": function, "axes": axes, "keepdims": False, "ddof": 0}
            part = {"op": "reduce", "reduction": reduction, "takes": "values", "gives": "partial"}
            if function in ("argmax", "argmin"):
                part["begin"] = [sum(split[:at]) for split, at in zip(self.SPLITS, place)]
                part["whole"] = list(array.shape)
            yield part

    def check(self, array, make):
        """`make` gives objects of a list of places, and of each place in which object it is and behind how many others."""
        axes = tuple(range(array.ndim))
        leaves, groups = self.merges(array.ndim, axes)
        objects, where = make(leaves)
        for number, function in enumerate(FUNCTIONS):
            wanted = reduced(function, array, self.SPLITS[: array.ndim], axes)
            content = result_type(function, array.dtype)
            reduction = {"function": function, "axes": list(axes), "keepdims": False, "ddof": 0}
            taken = [(at, before + number) for at, before in map(where.get, leaves)]
            is_ = chunks.run(
                "reduce_tree", content, objects, reduction=reduction, gives="result", leaves=taken, groups=groups
            )
            self.assertEqual((wanted.dtype, wanted.shape, wanted.tobytes()), (is_.dtype, is_.shape, is_.tobytes()), function)

    def arrays(self):
        rng = np.random.default_rng(6)
        for dtype in ALL_DTYPES:
            for shape in ([16], [16, 5]):
                yield rng.normal(0, 3, shape).astype(dtype)

    def test_each_merge_takes_its_own_of_several(self):
        for array in self.arrays():

            def make(leaves, array=array):
                several = []
                for place in leaves:
                    parts = list(self.parts(array, place, FUNCTIONS))
                    several.append(chunks.run("reduce_several", "partial", [self.piece(array, place)], parts=parts))
                return several, {place: (at, 0) for at, place in enumerate(leaves)}

            self.check(array, make)

    def test_chains_of_one_group_are_the_same_apart(self):
        def steps(place, array):
            piece = np.ascontiguousarray(self.piece(array, place))
            source = {"op": "arange", "start": 1 + sum(place), "delta": 3, "offset": 0}
            content = {"tensor": dtypes.name_of(piece.dtype)}
            several = {"op": "reduce_several", "parts": list(self.parts(array, place, FUNCTIONS))}
            return [
                {"operator": source, "content": content, "extents": [len(piece)]},
                {"operator": {"op": "unary", "function": "exp"}, "content": content, "extents": [len(piece)]},
                {"operator": several, "content": "partial", "extents": [1]},
            ]

        array = np.empty(16)
        leaves, _ = self.merges(1, (0,))
        for place in leaves:
            self.piece(array, place)[:] = np.exp(1.0 + sum(place) + 3 * np.arange(len(self.piece(array, place))))

        def make(leaves):
            grouped = [leaves[at : at + 3] for at in range(0, len(leaves), 3)]
            groups = [chunks.run("chains", "partial", chains=[steps(place, array) for place in some]) for some in grouped]
            return groups, {place: (at // 3, at % 3 * len(FUNCTIONS)) for at, place in enumerate(leaves)}

        self.check(array, make)

    def test_a_part_that_is_not_there_and_a_merge_of_others_are_refused(self):
        reduction = {"function": "sum", "axes": [0], "keepdims": False, "ddof": 0}
        parts = [{"op": "reduce", "reduction": reduction, "takes": "values", "gives": "partial"}] * 2
        several = chunks.run("reduce_several", "partial", [np.ones(2)], parts=parts)
        tree = {"gives": "result", "groups": [[0]]}
        with self.assertRaises(IndexError):
            chunks.run("reduce_tree", "f64", [several], reduction=reduction, leaves=[(0, 2)], **tree)
        with self.assertRaises(TypeError):
            other = {**reduction, "function": "prod"}
            chunks.run("reduce_tree", "f64", [several], reduction=other, leaves=[(0, 0)], **tree)
        with self.assertRaises(TypeError):
            chunks.run("reduce", "f64", [several], reduction=reduction, takes="partials", gives="result")

    def test_a_small_tree_cannot_make_large_values_again_and_again(self):
        reduction = {"function": "sum", "axes": [0], "keepdims": False, "ddof": 0}
        parts = [{"op": "reduce", "reduction": reduction, "takes": "values", "gives": "partial"}]
        several = chunks.run("reduce_several", "partial", [np.ones(2)], parts=parts)
        again = {"gives": "result", "leaves": [(0, 0)], "groups": [[0, 0], [0, 0]]}
        with self.assertRaisesRegex(ValueError, "merges again"):
            chunks.run("reduce_tree", "f64", [several], reduction=reduction, **again)
        with self.assertRaisesRegex(ValueError, "no steps"):
            chunks.run("chains", "partial", chains=[[]])


if __name__ == "__main__":
    unittest.main()
