"""Chunks that real workers compute, one after the other, in a cluster in one process."""

import unittest

import numpy as np
from cluster import DEADLINE_S, eventually
from fake import FakeCluster

import tripod_ray as ray
from tripod_mars import worker
from tripod_mars.chunk import layout
from tripod_ray import raw, runtime, wire
from tripod_ray.store import Gets

from . import chunks


class Worker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fake = FakeCluster()
        cls.addClassCleanup(cls.fake.close)
        cls.fake.start_worker("--mars")
        cls.fake.await_workers(1, DEADLINE_S)
        ray.init(cls.fake.address)
        cls.addClassCleanup(ray.shutdown)

    def submit(self, node, *refs):
        first = wire.Obj()
        first.pyobj_data.data = node
        (ref,) = runtime.process().submit(worker.FUNCTION.encode(), [(first, []), *refs], 1, (0, False))
        return ref

    def chunk(self, ref):
        self.assertEqual(([ref], []), ray.wait([ref], timeout=DEADLINE_S))
        gets = Gets(runtime.process().store, [ref.id])
        self.assertTrue(gets.wait(DEADLINE_S))
        return layout.unpack(*gets.take(0, ref))

    def test_chunks_are_made_of_chunks_and_described(self):
        a = self.submit(chunks.encoded("arange", "i64", [6], start=0, delta=2, offset=1))
        scalar = {"scalar": "0.5"}
        b = self.submit(chunks.encoded("binary", "f64", [6], function="mul", left="input", right=scalar), a)
        np.testing.assert_array_equal(self.chunk(b), np.arange(1.0, 7))
        eventually(lambda: b.id in self.fake.scheduler.described)
        self.assertEqual(((6,), 3, 48), self.fake.scheduler.described[a.id])
        self.assertEqual(((6,), 5, 48), self.fake.scheduler.described[b.id])

    def test_a_chunk_without_elements_is_one(self):
        empty = self.submit(chunks.encoded("full", "f32", [0, 3], value=1))
        again = self.submit(chunks.encoded("transpose", "f32", [3, 0], axes=[1, 0]), empty)
        self.assertEqual((3, 0), self.chunk(again).shape)

    def test_large_chunks_and_partial_results_pass_through_the_store(self):
        a = self.submit(chunks.encoded("full", "f64", [500, 400], value=2))
        reduction = {"function": "mean", "axes": [0, 1], "keepdims": False, "ddof": 0}
        steps = {"reduction": reduction, "gives": "partial", "takes": "values"}
        b = self.submit(chunks.encoded("reduce", "partial", **steps), a)
        c = self.submit(chunks.encoded("reduce", "f64", **{**steps, "gives": "result", "takes": "partials"}), b, b)
        self.assertEqual(2, self.chunk(c))

    def test_what_cannot_be_computed_is_a_failed_task(self):
        def failure(ref):
            with self.assertRaises(ray.TaskError) as caught:
                ray.get(ref, timeout=DEADLINE_S)
            return caught.exception.traceback_text

        self.assertIn("UNIMPLEMENTED: operator my.own", failure(self.submit(chunks.encoded("my.own", "f64"))))
        of_a_value = self.submit(chunks.encoded("unary", "f64", [1], function="neg"), ray.put([1.0]))
        self.assertIn("input 0 of unary: the object is no chunk, but a value", failure(of_a_value))
        one = self.submit(chunks.encoded("full", "i64", [], value=1))
        fails = self.submit(chunks.encoded("fail", "i64", message="as told", attempts=1), one)
        self.assertIn("RuntimeError: as told", failure(fails))
        self.assertEqual(1, self.chunk(self.submit(chunks.encoded("fail", "i64", message="", attempts=0), one)))


class Registration(unittest.TestCase):
    def test_what_is_made_is_what_tripod_ray_writes(self):
        worker.register()
        memory, offset = chunks.stored(np.arange(3.0))
        node = chunks.encoded("unary", "f64", [3], function="neg")
        made = raw.find(worker.FUNCTION)(node, [raw.RawInput(memory, offset)])
        target = bytearray(made.size)
        made.write(memoryview(target))
        np.testing.assert_array_equal(layout.unpack(target, made.metadata_offset), [0.0, -1, -2])
        self.assertEqual(((3,), 5, 24), (made.shape, made.element_type, made.bytes))


if __name__ == "__main__":
    unittest.main()
