"""Tensors that are written in place, against workers of the test process."""

import unittest

from mars.case import Case, mt, np
from mars.served import Served
from tripod_mars import MutableError, UnsupportedError, mutable, new_session, set_default_session, wire
from tripod_mars.workers import WorkerError


class Mutables(Case):
    def make(self, shape=(5, 4), dtype="i8", chunk_size=2, **more):
        return self.session.create_mutable_tensor("grid", shape, dtype, chunk_size=chunk_size, if_not_exist=True, **more)

    def tearDown(self):
        self.cluster.mutables.clear()

    def test_writes_are_those_of_numpy(self):
        grid, expected = self.make(default_value=7), np.full((5, 4), 7)
        for index, value in (
            ((slice(None, None, 2), 1), 3),
            ((-1,), np.arange(4)),
            ((slice(4, 0, -3), slice(1, 3)), [[1, 2], [3, 4]]),
            (..., 5),
            ((2, 2), 9.9),
            ((slice(0, 0),), 1),
            ((Ellipsis, 0), np.arange(5) * 10),
        ):
            grid[index] = value
            expected[index] = value
            np.testing.assert_array_equal(grid[...], expected)
        np.testing.assert_array_equal(grid[1:4, ::-2], expected[1:4, ::-2])
        self.assertEqual(grid.read((2, 2)), expected[2, 2])

    def test_a_cell_is_what_the_latest_write_up_to_then_put_there(self):
        grid = self.make()
        grid.write((0, 0), 1, timestamp=100)
        grid.write((0, 0), 2, timestamp=50)
        grid.write((0, 1), 5, timestamp=100)
        grid.write((0, 1), 3, timestamp=100)
        self.assertEqual(grid.read((0, slice(2))).tolist(), [1, 3])
        self.assertEqual(grid.read((0, slice(2)), timestamp=60).tolist(), [2, 0])
        self.assertEqual(grid.read((0, slice(2)), timestamp=10).tolist(), [0, 0])

    def test_a_sealed_one_is_a_tensor(self):
        grid = self.make(dtype="f8")
        grid[1:3] = 2.5
        sealed = grid.seal()
        expected = np.zeros((5, 4))
        expected[1:3] = 2.5
        np.testing.assert_array_equal(sealed.fetch(), expected)
        self.same(sealed + 1, expected + 1)
        with self.assertRaises(MutableError) as caught:
            grid.seal()
        self.assertEqual(caught.exception.state, "DELETED")
        with self.assertRaises(MutableError):
            self.session.get_mutable_tensor("grid")

    def test_sealed_as_of_an_earlier_time_it_has_what_was_there_then(self):
        for timestamp, expected in ((50, 7), (100, 1), (150, 1), (200, 2), (None, 2)):
            grid = self.make(default_value=7)
            grid.write((0, 0), 1, timestamp=100)
            grid.write((0, 0), 2, timestamp=200)
            sealed = grid.seal(timestamp).fetch()
            self.assertEqual((sealed[0, 0], sealed[0, 1]), (expected, 7), timestamp)

    def test_handles_of_one_name_are_one_tensor(self):
        first = self.make()
        second = self.session.get_mutable_tensor("grid")
        first[0] = 4
        self.assertEqual(second[0].tolist(), [4] * 4)
        self.assertEqual((second.shape, second.dtype, second.state), ((5, 4), np.dtype("i8"), "OPEN"))
        with self.assertRaises(MutableError):
            self.session.create_mutable_tensor("grid", (1,))
        second.delete()
        second.delete(if_exist=True)
        with self.assertRaises(MutableError):
            second.delete()

    def test_large_writes_go_in_batches(self):
        grid = self.make((100, 3), chunk_size=64)
        before, mutable.BATCH_BYTES_MAX = mutable.BATCH_BYTES_MAX, 100
        self.addCleanup(setattr, mutable, "BATCH_BYTES_MAX", before)
        values = np.arange(150).reshape(50, 3)
        grid[::-2] = values
        expected = np.zeros((100, 3), int)
        expected[::-2] = values
        np.testing.assert_array_equal(grid[...], expected)
        self.assertGreater(len(self.cluster.seen), 12)

    def test_indexes_that_cannot_be(self):
        grid = self.make()
        for index, kind in (
            (5, IndexError),
            ((0, 0, 0), IndexError),
            ((..., ...), IndexError),
            ([0, 1], UnsupportedError),
            (True, UnsupportedError),
            ("x", UnsupportedError),
        ):
            with self.assertRaises(kind):
                grid[index] = 1
        with self.assertRaises(ValueError):
            grid[0] = [1, 2, 3]
        self.assertEqual(grid[...].sum(), 0)

    def test_another_epoch_is_learned_and_the_write_repeated(self):
        grid = self.make()
        self.cluster.mutables["grid"].epoch = 2
        grid[0, 0] = 8
        self.assertEqual(grid[0, 0], 8)
        self.cluster.mutables["grid"].state = wire.enumeration("MutableState")["MUTABLE_STATE_LOST"]
        self.cluster.mutables["grid"].epoch = 3
        with self.assertRaises(MutableError) as caught:
            grid[0, 0] = 9
        self.assertEqual(caught.exception.state, "LOST")

    def test_a_write_that_was_not_answered_is_written_once(self):
        grid = self.make()
        put, failures = self.cluster.put, iter([True])

        def lost(address, name, requests, timeout_s):
            answer = put(address, name, requests, timeout_s)
            if next(failures, False):
                raise WorkerError(address, 14, "the connection broke")
            return answer

        self.cluster.put = lost
        self.addCleanup(delattr, self.cluster, "put")
        grid.write((0, 0), 5, timestamp=10)
        self.assertEqual(len(self.cluster.writes["m%d-0.0" % grid._info.id]), 2, "the default and one write")
        self.assertEqual(grid[0, 0], 5)


class Calls(unittest.TestCase):
    def test_writes_and_reads_go_to_the_workers_ports(self):
        served = Served()
        self.addCleanup(served.close)
        session = new_session(served.endpoints)
        self.addCleanup(set_default_session, None)
        self.addCleanup(session.close)
        grid = session.create_mutable_tensor("m", 10, "f4", default_value=0.5, chunk_size=4)
        grid[3:7] = [1, 2, 3, 4]
        self.assertEqual(grid[::2].tolist(), [0.5, 0.5, 2, 4, 0.5])
        served.workers[0].stop()
        self.assertEqual(grid[3:7].tolist(), [1, 2, 3, 4])
        self.assertEqual(session.get_mutable_tensor("m").seal().fetch(session=session).tolist()[3:7], [1, 2, 3, 4])
        self.assertTrue(mt)


if __name__ == "__main__":
    unittest.main()
