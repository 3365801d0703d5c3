"""Frames that are written in place, against workers of the test process."""

import unittest
from unittest import mock

from mars.case import Case, np
from mars.served import Served
from tripod_mars import MutableError, UnsupportedError, mutable_frame, new_session, set_default_session
import tripod_mars.dataframe as md

TYPES = {"count": "i8", "price": "f8", "open": "bool", "shop": str}


def plain(found):
    """Lists, with None where a value is missing."""
    return {
        name: np.ma.array(values).tolist() if values.dtype != object else values.tolist() for name, values in found.items()
    }


class Frames(Case):
    def setUp(self):
        super().setUp()
        self.cluster.mutables.clear()

    def make(self, rows=7, **more):
        defaults = {"count": -1, "shop": "?"}
        fields = {"default_values": defaults, "chunk_rows": 3, "if_not_exist": True, **more}
        return self.session.create_mutable_dataframe("sales", rows, TYPES, **fields)

    def test_rows_are_what_was_written_to_them_last(self):
        frame = self.make()
        expected = {"count": [-1] * 7, "price": [0.0] * 7, "open": [False] * 7, "shop": ["?"] * 7}
        self.assertEqual(plain(frame.read()), expected)

        def write(rows, data, places):
            frame[rows] = data
            for name, values in data.items():
                for at, place in enumerate(places):
                    values_of = values if isinstance(values, (list, np.ndarray)) else [values] * len(places)
                    expected[name][place] = values_of[at]
            self.assertEqual(plain(frame[...]), expected)

        write(slice(1, 5), {"count": [1, 2, 3, 4], "shop": ["a", "größe", "", None]}, [1, 2, 3, 4])
        write(slice(None, None, -3), {"price": [0.5, 1.5, 2.5]}, [6, 3, 0])
        write(2, {"shop": "one", "open": True}, [2])
        write([5, 0, -1], {"count": [None, 7, 8], "shop": ["x", None, "z"]}, [5, 0, 6])
        write(..., {"open": np.arange(7) % 2 == 0}, range(7))
        self.assertEqual(plain(frame.read(slice(4, 1, -2))), {name: values[4:1:-2] for name, values in expected.items()})
        self.assertEqual(plain(frame.read([6, 1])), {name: [values[6], values[1]] for name, values in expected.items()})
        self.assertEqual(frame.read(slice(0, 0))["shop"].tolist(), [])

    def test_a_row_is_what_the_latest_write_up_to_then_put_there(self):
        frame = self.make()
        frame.write(0, {"shop": "late", "count": 2}, timestamp=100)
        frame.write(0, {"shop": "early", "price": 1.5}, timestamp=50)
        self.assertEqual(plain(frame.read(0)), {"count": [2], "price": [1.5], "open": [False], "shop": ["late"]})
        early = {"count": [-1], "price": [1.5], "open": [False], "shop": ["early"]}
        self.assertEqual(plain(frame.read(0, timestamp=60)), early)
        self.assertEqual(plain(frame.read(0, timestamp=10))["shop"], ["?"])

    def test_a_sealed_one_is_a_frame(self):
        frame = self.make()
        frame.write(slice(0, 6), {"shop": list("abcabc"), "count": np.arange(6)}, timestamp=10)
        frame.write(6, {"shop": "z"}, timestamp=20)
        sealed = frame.seal(timestamp=15)
        self.assertIsInstance(sealed, md.DataFrame)
        self.assertEqual((sealed.shape, len(sealed), sealed.columns), ((7, 4), 7, list(TYPES)))
        self.assertEqual(sealed.to_dict()["shop"].tolist(), [*"abcabc", "?"])
        sums = sealed.groupby("shop").agg({"count": "sum"}).to_dict()
        self.assertEqual(dict(zip(sums["shop"], sums["count"])), {"a": 3, "b": 5, "c": 7, "?": -1})
        self.same(sealed["count"] * 2, np.array([0, 2, 4, 6, 8, 10, -2]))
        for use in (frame.seal, lambda: self.session.get_mutable_dataframe("sales")):
            with self.assertRaises(MutableError) as caught:
                use()
            self.assertEqual(caught.exception.state, "DELETED")

    def test_handles_of_one_name_are_one_frame(self):
        first = self.make()
        second = self.session.get_mutable_dataframe("sales")
        first[0] = {"count": 4}
        self.assertEqual(second[0]["count"].tolist(), [4])
        self.assertEqual((second.shape, second.columns, second.state, len(second)), ((7, 4), list(TYPES), "OPEN", 7))
        self.assertEqual(second.dtypes["shop"], np.dtype(object))
        with self.assertRaises(MutableError):
            self.session.get_mutable_tensor("sales")
        with self.assertRaises(MutableError):
            self.make(if_not_exist=False)
        self.session.create_mutable_tensor("grid", (2,))
        with self.assertRaises(MutableError):
            self.session.get_mutable_dataframe("grid")
        second.delete()
        with self.assertRaises(MutableError):
            first.delete()

    def test_large_writes_go_in_batches(self):
        patch = mock.patch.object(mutable_frame, "BATCH_BYTES_MAX", 400)
        patch.start()
        self.addCleanup(patch.stop)
        frame = self.make(100, chunk_rows=64)
        before = len(self.cluster.seen)
        shops = [f"shop {number}" for number in range(50)]
        frame[::-2] = {"shop": shops, "count": np.arange(50)}
        frame[list(range(0, 100, 2))] = {"price": np.arange(50.0)}
        self.assertGreater(len(self.cluster.seen), before + 5)
        found = frame.read()
        self.assertEqual(found["shop"][::-2].tolist(), shops)
        self.assertEqual(found["count"][::-2].tolist(), list(range(50)))
        self.assertEqual(found["price"][::2].tolist(), list(range(50)))
        self.assertEqual(set(found["shop"][::2]), {"?"})

    def test_frames_of_pandas_are_written_with_what_is_missing(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas")
        frame = self.make()
        data = pandas.DataFrame({"shop": ["a", None], "count": pandas.array([None, 3], "Int64"), "price": [None, 1.5]})
        frame[2:4] = data
        found = plain(frame.read(slice(2, 4)))
        self.assertEqual((found["shop"], found["count"]), (["a", None], [None, 3]))
        self.assertTrue(np.isnan(found["price"][0]) and found["price"][1] == 1.5)

    def test_what_cannot_be_written_is_refused_and_nothing_is(self):
        frame = self.make()
        before = len(self.cluster.seen)
        for rows, data, kind in (
            (7, {"count": 1}, IndexError),
            ([0, -8], {"count": [1, 2]}, IndexError),
            ([0.5], {"count": [1]}, UnsupportedError),
            ([[0], [1]], {"count": [1, 2]}, UnsupportedError),
            (0, {"nothing": 1}, KeyError),
            (0, {"shop": 5}, TypeError),
            (0, {"shop": [5]}, TypeError),
            (0, {"count": "five"}, TypeError),
            (slice(0, 2), {"count": [1, 2, 3]}, ValueError),
            (slice(0, 2), {"shop": ["a"]}, ValueError),
        ):
            with self.assertRaises(kind, msg=f"{rows} {data}"):
                frame.write(rows, data)
        with self.assertRaises(KeyError):
            self.session.create_mutable_dataframe("other", 3, TYPES, default_values={"nothing": 1})
        frame[0] = {}
        frame[[]] = {"count": []}
        self.assertEqual(len(self.cluster.seen), before)

    def test_another_epoch_is_learned_and_the_write_repeated(self):
        frame = self.make()
        self.cluster.mutables["sales"].epoch = 2
        frame[0] = {"count": 8}
        self.assertEqual(frame[0]["count"].tolist(), [8])


class Calls(unittest.TestCase):
    def test_writes_and_reads_go_to_the_workers_ports(self):
        served = Served()
        self.addCleanup(served.close)
        session = new_session(served.endpoints)
        self.addCleanup(set_default_session, None)
        self.addCleanup(session.close)
        frame = session.create_mutable_dataframe("m", 10, {"a": "f4", "b": "text"}, chunk_rows=4)
        frame[3:7] = {"a": [1, 2, 3, 4], "b": list("wxyz")}
        served.workers[0].stop()
        self.assertEqual(frame[2:5]["b"].tolist(), ["", "w", "x"])
        sealed = session.get_mutable_dataframe("m").seal()
        self.assertEqual(sealed.to_dict(session)["a"].tolist(), [0, 0, 0, 1, 2, 3, 4, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
