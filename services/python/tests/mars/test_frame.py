"""Frames are what pandas makes of them, however they are cut."""

import pathlib
import tempfile
import unittest

from mars.case import Case, np
from tripod_mars import UnsupportedError, image
from tripod_mars.chunk.frame import Column, Frame
from tripod_mars.chunk.text import Text
import tripod_mars.dataframe as md

from mars import images

DATA = {
    "shop": ["a", "b", "a", "c", "b", "a", None, "c"],
    "price": [1.5, 2.25, 0.1, None, 7.0, -3.5, 4.0, 1e300],
    "count": [3, 1, None, 4, 1, 5, 9, 2],
    "open": [True, False, True, True, None, False, True, True],
}


class Columns(Case):
    def test_what_goes_in_comes_out(self):
        found = md.DataFrame(DATA, chunk_rows=3).to_dict()
        self.assertEqual(found["shop"].tolist(), DATA["shop"])
        self.assertEqual(found["count"].tolist(), DATA["count"])
        self.assertEqual(found["open"].tolist(), DATA["open"])
        self.assertEqual(found["count"].dtype, np.int64)
        wanted = np.array([np.nan if one is None else one for one in DATA["price"]])
        np.testing.assert_array_equal(found["price"], wanted)

    def test_columns_are_tensors(self):
        frame = md.DataFrame(DATA, chunk_rows=3)
        self.assertEqual(frame["price"].dtype, np.float64)
        np.testing.assert_array_equal((frame["price"][:3] * 2).to_numpy(), [3, 4.5, 0.2])
        with self.assertRaisesRegex(UnsupportedError, r"df\[\['shop'\]\]"):
            frame["shop"]
        with self.assertRaises(KeyError):
            frame["nothing"]

    def test_rows_are_picked_by_masks(self):
        frame = md.DataFrame(DATA, chunk_rows=3)
        picked = frame[frame["price"] > 1][["shop", "price"]]
        self.assertEqual(picked.to_dict()["price"].tolist(), [1.5, 2.25, 7.0, 4.0, 1e300])
        self.assertEqual(frame.head(4).to_dict()["shop"].tolist(), DATA["shop"][:4])
        self.assertEqual(frame.shape, (None, 4))
        frame.execute()
        self.assertEqual(len(frame), 8)
        even = frame[np.arange(8) % 2 == 0]
        self.assertEqual(even.to_dict()["shop"].tolist(), DATA["shop"][::2])

    def test_groups(self):
        frame = md.DataFrame(DATA, chunk_rows=2)
        wanted = frame.groupby("shop").agg({"price": ["sum", "max"], "count": "count"})
        self.assertEqual(wanted.columns, ["shop", "price_sum", "price_max", "count"])
        self.assertEqual(self.rows(wanted)["a"], (1.5 + 0.1 - 3.5, 1.5, 2))
        self.assertEqual(self.rows(wanted)["b"], (9.25, 7.0, 2))
        for reducers in (1, 3):
            named = frame.groupby(["shop"], reducers=reducers).agg(mean=("price", "mean"), least=("count", "min"))
            self.assertEqual(self.rows(named)["b"], (4.625, 1))
        self.assertEqual(self.rows(frame.groupby("shop")["count"].sum())["a"], (8,))

    def test_groups_that_cannot_be(self):
        groups = md.DataFrame(DATA).groupby("open")
        for call in (
            lambda: groups.agg({"shop": "mean"}),
            lambda: groups.agg({"price": "median"}),
            lambda: groups.agg(),
            lambda: groups.agg(open=("price", "sum")),
            lambda: groups["nothing"],
        ):
            with self.assertRaises((TypeError, ValueError, KeyError)):
                call()

    def test_shuffled_rows_are_the_same_rows(self):
        frame = md.DataFrame(DATA, chunk_rows=2).shuffle("shop", reducers=3)
        found = frame.to_dict()
        self.assertEqual(sorted(map(str, found["shop"])), sorted(map(str, DATA["shop"])))

    def rows(self, frame):
        """By the first column."""
        columns = [values.tolist() for values in frame.to_dict().values()]
        return {row[0]: row[1:] for row in zip(*columns)}


class Files(Case):
    def test_files_are_cut_between_rows(self):
        text = 'name,size,ratio\n' + "".join(f'"n{at},\n""{at % 3}""",{at},{at / 4}\n' for at in range(200))
        with tempfile.TemporaryDirectory() as folder:
            for part in range(2):
                pathlib.Path(folder, f"part-{part}.csv").write_text(text)
            frame = md.read_csv(folder + "/part-*.csv", chunk_bytes=700, columns=["size", "name", "ratio"])
        self.assertGreater(len(frame.node.attributes["files"]), 10)
        self.assertEqual(frame.dtypes, {"size": np.dtype("i8"), "name": np.dtype(object), "ratio": np.dtype("f8")})
        found = frame.to_dict()
        self.assertEqual(found["size"].tolist(), [*range(200)] * 2)
        self.assertEqual(found["name"][7], 'n7,\n"1"')

    def test_types_are_guessed_or_told(self):
        text = b"a,b,c,d,e\n1,2.5,x,true,\n,3,7,False,\n"
        kinds = {name: kind for name, kind in md.read_csv(text).node.content.columns}
        self.assertEqual(kinds, {"a": "i64", "b": "f64", "c": "text", "d": "bool", "e": "f64"})
        frame = md.read_csv(text, dtype={"a": np.float32, "c": str}, columns=["a", "c"])
        self.assertEqual(frame.to_dict()["a"].dtype, np.float32)
        with self.assertRaises(KeyError):
            md.read_csv(text, columns=["z"])

    def test_no_frame_is_made_of_what_is_none(self):
        for wrong, kind in (
            ({}, ValueError),
            ({"a": [1], "b": [1, 2]}, ValueError),
            ({"": [1]}, ValueError),
            ({"a": [[1]]}, ValueError),
            ({"a": [object()]}, UnsupportedError),
            ({"a": np.array([1], np.uint16)}, UnsupportedError),
        ):
            with self.assertRaises(kind):
                md.DataFrame(wrong)


class Pandas(Case):
    def setUp(self):
        super().setUp()
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        self.pandas = pandas

    def test_frames_of_pandas_go_in_and_come_out(self):
        whole = self.pandas.DataFrame(DATA)
        whole["count"] = whole["count"].astype("Int64")
        whole["open"] = whole["open"].astype("boolean")
        found = md.DataFrame(whole, chunk_rows=3).to_pandas()
        self.pandas.testing.assert_frame_equal(found, whole, check_dtype=False)
        self.assertEqual(str(found["count"].dtype), "Int64")

    def test_groups_are_those_of_pandas(self):
        chance = np.random.default_rng(4)
        whole = self.pandas.DataFrame({"k": chance.integers(0, 9, 500), "v": chance.integers(-50, 50, 500) / 2})
        expected = whole.groupby("k", as_index=False).agg(s=("v", "sum"), m=("v", "mean"), n=("v", "count"))
        for reducers in (1, 4):
            frame = md.DataFrame(whole, chunk_rows=60)
            found = frame.groupby("k", reducers=reducers).agg(s=("v", "sum"), m=("v", "mean"), n=("v", "count"))
            found = found.to_pandas().sort_values("k", ignore_index=True)
            self.pandas.testing.assert_frame_equal(found, expected)


class Images(unittest.TestCase):
    """Chunks of frames on their way."""

    FRAME = Frame(
        ["text", "number"],
        [
            Column("text", Text.of(["a", "", "ccé"]), np.array([True, False, True])),
            Column("i32", np.array([1, 2, 3], np.int32)),
        ],
    )

    def test_a_frame_is_read(self):
        found = image.read(images.write(self.FRAME))
        self.assertEqual(found["text"].tolist(), ["a", None, "ccé"])
        self.assertEqual((found["number"].tolist(), found["number"].dtype), ([1, 2, 3], np.int32))
        nothing = image.read(images.write(self.FRAME.slice(0, 0)))
        self.assertEqual([len(values) for values in nothing.values()], [0, 0])

    def test_what_is_cut_off_or_changed_is_an_error_and_nothing_else(self):
        whole = images.write(self.FRAME)
        for size in range(len(whole)):
            with self.assertRaises(ValueError):
                image.read(whole[:size])
        refused = 0
        for bit in range(len(whole) * 8):
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            try:
                image.read(bytes(data))
            except ValueError:
                refused += 1
        # What stands between buffers means nothing, nor do the names of columns.
        self.assertGreater(refused, len(whole) * 2)


if __name__ == "__main__":
    unittest.main()
