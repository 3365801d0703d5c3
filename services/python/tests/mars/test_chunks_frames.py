"""Operators on frames. Random ones are compared with pandas by tests/clients/tile_pandas.py."""

import json
import subprocess
import sys
import unittest
import unittest.mock

import numpy as np

from tripod_mars.chunk.frame import Frame
from tripod_mars.chunk.shuffle import reducers_of

from . import chunks
from .chunks import column, frame, run, table

SALES = frame(
    city=("text", ["b", "a", None, "b", "a", "b"]),
    year=("i32", [2, 1, 1, 1, 1, 2]),
    sold=("i64", [1, 2, 3, None, 5, 6]),
    price=("f32", [0.5, np.nan, 1, 2, 3, 4]),
)
TYPES = [("city", "text"), ("year", "i32"), ("sold", "i64"), ("price", "f32")]


def aggregate(name, of, function):
    return {"column": of, "function": function, "name": name}


class Rows(unittest.TestCase):
    def test_columns_are_chosen_in_their_order(self):
        is_ = run("project", [("sold", "i64"), ("city", "text")], [SALES], columns=["sold", "city"])
        self.assertEqual(["sold", "city"], is_.names)
        self.assertEqual(table(SALES)["city"], table(is_)["city"])
        with self.assertRaisesRegex(KeyError, "no column 'x'"):
            run("project", [], [SALES], columns=["x"])

    def test_a_column_is_a_tensor(self):
        np.testing.assert_array_equal(run("column", "i32", [SALES], name="year"), [2, 1, 1, 1, 1, 2])
        np.testing.assert_array_equal(run("column", "f32", [SALES], name="price"), [0.5, np.nan, 1, 2, 3, 4])

    def test_a_tensor_has_no_texts_and_nothing_missing(self):
        with self.assertRaisesRegex(ValueError, "1 values of column 'sold' are missing"):
            run("column", "i64", [SALES], name="sold")
        with self.assertRaises(TypeError):
            run("column", "text", [SALES], name="city")

    def test_rows_are_kept_where_the_mask_is_true(self):
        mask = np.array([True, False, True, True, False, False])
        is_ = run("filter_rows", TYPES, [SALES, mask])
        self.assertEqual({"city": ["b", None, "b"], "year": [2, 1, 1], "sold": [1, 3, None]}, dict(list(table(is_).items())[:3]))
        self.assertEqual(0, run("filter_rows", TYPES, [SALES, np.zeros(6, np.bool_)]).rows)
        with self.assertRaises(ValueError):
            run("filter_rows", TYPES, [SALES, mask[1:]])

    def test_the_first_rows_of_all(self):
        first, second = SALES.slice(0, 2), SALES.slice(2, 6)
        for rows in (0, 1, 2, 4, 100):
            is_ = run("head", TYPES, [first, second], rows=rows)
            self.assertEqual({name: values[:rows] for name, values in table(SALES).items() if name != "price"},
                             {name: values for name, values in table(is_).items() if name != "price"})  # fmt: skip


class Files(unittest.TestCase):
    COLUMNS = [("t", "text"), ("b", "bool"), ("i", "i32"), ("l", "i64"), ("f", "f32"), ("g", "f64")]

    def read(self, text, columns=COLUMNS):
        data = text if isinstance(text, bytes) else text.encode()
        return table(run("read_frame", columns, format="csv", data=data))

    def test_columns_are_found_by_name_and_empty_fields_are_missing(self):
        text = 'l,unused,t,b,i,f,g\n1,x,"a,\n""b""",True,-2,0.5,1e300\n,x,,,,,\n\n9223372036854775807,,ä,0,3,inf,-0.25\n'
        self.assertEqual(
            {
                "t": ['a,\n"b"', None, "ä"],
                "b": [True, None, False],
                "i": [-2, None, 3],
                "l": [1, None, 2**63 - 1],
                "f": [0.5, None, np.inf],
                "g": [1e300, None, -0.25],
            },
            self.read(text),
        )

    def test_files_without_rows_and_of_windows_are_read(self):
        self.assertEqual({"t": [], "i": []}, self.read("i,t\n", [("t", "text"), ("i", "i32")]))
        self.assertEqual({"i": [7]}, self.read(b"\xef\xbb\xbfi\r\n7\r\n", [("i", "i64")]))

    def test_what_does_not_fit_is_refused_with_its_column(self):
        for value, dtype in [("x", "i64"), ("1.5", "i32"), (2**31, "i32"), (2**63, "i64"), ("x", "f64"), ("2", "bool")]:
            with self.assertRaisesRegex(ValueError, "column 'a'"):
                self.read(f"a\n{value}\n", [("a", dtype)])
        with self.assertRaisesRegex(ValueError, "no column 'b'"):
            self.read("a\n1\n", [("b", "i64")])
        with self.assertRaisesRegex(ValueError, "row 2 has 3 fields"):
            self.read("a,b\n1,2\n1,2,3\n", [("b", "i64")])

    def test_a_file_of_parquet_needs_pyarrow(self):
        # What stands for a module that is not there.
        with unittest.mock.patch.dict(sys.modules, {"pyarrow": None}):
            with self.assertRaisesRegex(RuntimeError, "UNIMPLEMENTED: operator read_frame of parquet"):
                run("read_frame", [("a", "i64")], format="parquet", data=b"PAR1")

    def test_columns_of_a_file_of_parquet_have_the_types_that_the_graph_says(self):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise unittest.SkipTest("no pyarrow") from None

        def file(rows):
            sink = pyarrow.BufferOutputStream()
            parquet.write_table(rows, sink)
            return sink.getvalue().to_pybytes()

        values = {"t": ["a", None, ""], "b": [True, None, False], "i": [1, None, -3], "f": [0.5, None, 2.0]}
        columns = [("f", "f32"), ("t", "text"), ("i", "i32"), ("b", "bool")]
        is_ = run("read_frame", columns, format="parquet", data=file(pyarrow.table(values)))
        self.assertEqual(values, table(is_))
        nothing = run("read_frame", columns, format="parquet", data=file(pyarrow.table(values).slice(0, 0)))
        self.assertEqual({"f": [], "t": [], "i": [], "b": []}, table(nothing))
        # A number that does not fit is no other number.
        with self.assertRaises(pyarrow.ArrowInvalid):
            run("read_frame", [("i", "i32")], format="parquet", data=file(pyarrow.table({"i": [2**40]})))


class Groups(unittest.TestCase):
    BY = ["city"]
    AGGREGATES = [
        aggregate("sum", "sold", "sum"),
        aggregate("count", "sold", "count"),
        aggregate("mean", "sold", "mean"),
        aggregate("min", "price", "min"),
        aggregate("max", "price", "max"),
        aggregate("mean price", "price", "mean"),
        aggregate("last city", "city", "max"),
    ]
    RESULT = [
        ("city", "text"), ("sum", "i64"), ("count", "i64"), ("mean", "f64"), ("min", "f32"), ("max", "f32"),
        ("mean price", "f32"), ("last city", "text"),
    ]  # fmt: skip
    WANTED = {
        "city": ["a", "b"],
        "sum": [7, 7],
        "count": [2, 2],
        "mean": [3.5, 3.5],
        "min": [3, 0.5],
        "max": [3, 4],
        "mean price": [3, 6.5 / 3],
        "last city": ["a", "b"],
    }

    def step(self, inputs, takes, gives):
        content = self.RESULT if gives == "result" else "partial"
        return run("group_by", content, inputs, by=self.BY, aggregates=self.AGGREGATES, takes=takes, gives=gives)

    def check(self, is_):
        self.assertEqual([dtype for _, dtype in self.RESULT], [column.dtype for column in is_.columns])
        is_, wanted = table(is_), dict(self.WANTED)
        np.testing.assert_allclose(is_.pop("mean price"), wanted.pop("mean price"), rtol=1e-6)
        self.assertEqual(wanted, is_)

    def test_groups_of_chunks_are_those_of_the_whole(self):
        self.check(self.step([SALES], "values", "result"))
        for cuts in ([0, 6], [0, 3, 6], [0, 0, 1, 2, 3, 4, 5, 6, 6]):
            pieces = [SALES.slice(begin, end) for begin, end in zip(cuts, cuts[1:])]
            partials = [self.step([piece], "values", "partial") for piece in pieces]
            self.check(self.step(partials, "partials", "result"))
            self.check(self.step([self.step(partials, "partials", "partial")], "partials", "result"))

    def test_keys_of_several_columns_are_in_order(self):
        by = {"by": ["year", "city"], "takes": "values", "gives": "result"}
        result = [("year", "i32"), ("city", "text"), ("n", "i64")]
        is_ = run("group_by", result, [SALES], aggregates=[aggregate("n", "year", "count")], **by)
        self.assertEqual({"year": [1, 1, 2], "city": ["a", "b", "b"], "n": [2, 1, 2]}, table(is_))

    def test_what_is_missing_counts_for_nothing(self):
        some = frame(k=("bool", [True, True, None]), i=("i64", [None, None, 1]), t=("text", [None] * 3), f=("f64", [np.nan] * 3))
        functions = [(f, c) for c in "if" for f in ("sum", "count", "min", "max", "mean")] + [("min", "t"), ("max", "t")]
        aggregates = [aggregate(f"{c} {f}", c, f) for f, c in functions]
        type_of = {"i": "i64", "f": "f64", "t": "text"}
        result = [("k", "bool")] + [
            (f"{c} {f}", {"count": "i64", "mean": "f64"}.get(f, type_of[c])) for f, c in functions
        ]
        more = {"by": ["k"], "aggregates": aggregates}
        partial = run("group_by", "partial", [some], takes="values", gives="partial", **more)
        is_ = table(run("group_by", result, [partial, partial], takes="partials", gives="result", **more))
        wanted = {f"{c} {f}": [0 if f in ("sum", "count") else None] for f, c in functions}
        self.assertEqual({"k": [True], **wanted}, is_)

    def test_extremes_of_whole_numbers_reach_to_the_ends_of_their_type(self):
        ends = [-(2**31), 2**31 - 1]
        for values, least, most in [([ends[1], None], ends[1], ends[1]), ([None, ends[0]], ends[0], ends[0]), (ends, *ends)]:
            some = frame(k=("i64", [1, 1]), v=("i32", values))
            aggregates = [aggregate("a", "v", "min"), aggregate("b", "v", "max")]
            result = [("k", "i64"), ("a", "i32"), ("b", "i32")]
            is_ = run("group_by", result, [some], by=["k"], aggregates=aggregates, takes="values", gives="result")
            self.assertEqual({"k": [1], "a": [least], "b": [most]}, table(is_))

    def test_no_rows_are_no_groups(self):
        partial = self.step([SALES.slice(0, 0)], "values", "partial")
        is_ = self.step([partial, partial], "partials", "result")
        self.assertEqual({name: [] for name, _ in self.RESULT}, table(is_))


class Shuffles(unittest.TestCase):
    def test_every_row_comes_to_the_reducer_of_its_key(self):
        pieces = [SALES.slice(0, 2), SALES.slice(2, 2), SALES.slice(2, 6)]
        maps = [run("shuffle_map", "partial", [piece], by=["city", "year"], reducers=3) for piece in pieces]
        rows = []
        for reducer in range(3):
            is_ = run("shuffle_reduce", TYPES, maps, reducer=reducer)
            keys = [is_.column("city"), is_.column("year")]
            self.assertEqual([reducer] * is_.rows, reducers_of(keys, 3).tolist())
            rows += zip(*(table(is_)[name] for name in ("city", "year", "sold")))
        wanted = zip(*(table(SALES)[name] for name in ("city", "year", "sold")))
        self.assertEqual(sorted(wanted, key=repr), sorted(rows, key=repr))

    def test_groups_are_shuffled(self):
        groups = Groups()
        partials = [groups.step([SALES.slice(at, at + 2)], "values", "partial") for at in (0, 2, 4)]
        maps = [run("shuffle_map", "partial", [partial], by=["city"], reducers=4) for partial in partials]
        parts = []
        for reducer in range(4):
            mine = run("shuffle_reduce", "partial", maps, reducer=reducer)
            parts.append(groups.step([mine], "partials", "result"))
        whole = Frame.joined(parts)
        groups.check(whole.take(np.argsort([v for v in table(whole)["city"]])))

    def test_equal_values_are_equal_however_they_are_written(self):
        zeros = reducers_of([column("f64", [0.0, -0.0])], 4096)
        self.assertEqual(zeros[0], zeros[1])
        nan = np.array([0x7FF8000000000000, 0xFFF8000000000123], np.uint64).view(np.float64)
        some = column("f64", [0, 0])
        some.values = nan
        self.assertEqual(*reducers_of([some], 4096))

    def test_hashes_are_what_they_were(self):
        """Other processes have computed the rest of a shuffle."""
        columns = [
            column("text", ["", "a", "日本", None, "a"]),
            column("i64", [0, -1, 2**62, 7, None]),
            column("f32", [0, 0.5, np.nan, -1, 1]),
            column("bool", [True, False, None, True, True]),
        ]
        self.assertEqual([1813, 2595, 2460, 2846, 3325], reducers_of(columns, 4096).tolist())

    def test_hashes_are_those_of_another_process(self):
        code = (
            "import sys; sys.path[:0] = {path!r}\n"
            "from mars.chunks import column\n"
            "from tripod_mars.chunk.shuffle import reducers_of\n"
            "print(reducers_of([column('text', ['a', 'b', 'c'])], 4096).tolist())"
        ).format(path=sys.path)
        is_ = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        self.assertEqual(reducers_of([column("text", ["a", "b", "c"])], 4096).tolist(), json.loads(is_))

    def test_reducers_get_about_equally_much(self):
        for values in (range(10_000), range(0, 10_000 * 4096, 4096)):
            counts = np.bincount(reducers_of([column("i64", values)], 16), minlength=16)
            self.assertTrue(500 < counts.min() and counts.max() < 750, counts)


if __name__ == "__main__":
    unittest.main()
