"""Functions whose arguments and results are bytes of their own kind."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from cluster import DEADLINE_S, eventually
from fake import FakeCluster

import tripod_ray as ray
from tripod_ray import raw, runtime, wire
from tripod_ray.needs import NONE
from tripod_ray.store import Gets

NAME = b"tripod.mars.chunk"
# In place of the package whose functions workers execute where it is installed. What is to be done is the argument.
PACKAGE = '''
import os, time
from tripod_ray import raw

KEPT = []

def function(argument, inputs):
    what, _, rest = argument.partition(b" ")
    if what == b"join":
        data = rest + b"".join(bytes(each.data) for each in inputs)
        assert all(each.data.readonly for each in inputs)
    elif what == b"offsets":
        data = repr([each.metadata_offset for each in inputs]).encode()
    elif what == b"zeros":
        data = bytes(int(rest))
    elif what == b"raise":
        raise KeyError(rest.decode())
    elif what == b"nothing":
        return None
    elif what == b"misplaced":
        return raw.RawResult(16, lambda memory: None, 4, (), 0, 0)
    elif what == b"unwritten":
        return raw.RawResult(int(rest), lambda memory: 1 // 0, 0, (), 0, 0)
    elif what == b"keeps":
        return raw.RawResult(1 << 20, lambda memory: KEPT.append(memory[:1]), 0, (), 0, 0)
    elif what == b"hold":
        open(rest, "w").close()
        time.sleep(3600)

    def write(memory):
        memory[: len(data)] = data

    # A whole number of eight bytes before the end.
    return raw.RawResult(len(data) + 8, write, len(data) // 8 * 8, (len(data),), 2, len(data))

def register():
    raw.register("tripod.mars.chunk", function)
'''


class Raw(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "tripod_mars").mkdir()
        (cls.folder / "tripod_mars" / "__init__.py").touch()
        (cls.folder / "tripod_mars" / "worker.py").write_text(PACKAGE)
        cls.fake = FakeCluster()
        cls.addClassCleanup(cls.fake.close)
        cls.path = os.pathsep.join([str(cls.folder), os.environ.get("PYTHONPATH", "")])
        with mock.patch.dict(os.environ, {"PYTHONPATH": cls.path}):
            cls.worker = cls.fake.start_worker("--mars")
        cls.fake.await_workers(1, DEADLINE_S)
        ray.init(cls.fake.address)
        cls.addClassCleanup(ray.shutdown)

    def tearDown(self):
        violations = list(self.fake.scheduler.violations)
        self.fake.scheduler.violations.clear()
        self.assertEqual(violations, [])

    def submit(self, argument, *refs, retries=0):
        first = wire.Obj()
        first.pyobj_data.data = argument
        (ref,) = runtime.process().submit(NAME, [(first, []), *refs], 1, (retries, False))
        return ref

    def bytes_of(self, ref):
        """The object as it lies in the store, and its metadata offset."""
        self.assertEqual(ray.wait([ref], timeout=DEADLINE_S), ([ref], []))
        gets = Gets(runtime.process().store, [ref.id])
        self.assertTrue(gets.wait(DEADLINE_S))
        memory, metadata_offset = gets.take(0, ref)
        return bytes(memory), metadata_offset

    def test_the_argument_is_not_unpickled_and_inputs_are_bytes(self):
        hostile = b"join cos\nsystem\n(S'exit 1'\ntR."
        one = self.submit(hostile)
        data, metadata_offset = self.bytes_of(one)
        self.assertEqual((data, metadata_offset), (hostile[5:] + bytes(8), len(hostile[5:]) // 8 * 8))
        two = self.submit(b"join ab", one, one)
        self.assertEqual(self.bytes_of(two)[0], b"ab" + data + data + bytes(8))
        value = ray.put({"a": 1})
        self.assertEqual(self.bytes_of(self.submit(b"offsets", one, value))[0].rstrip(b"\0"), b"[24, 0]")

    def test_large_objects_are_written_where_they_lie(self):
        ref = self.submit(b"zeros 3000000")
        self.assertEqual(self.bytes_of(ref), (bytes(3_000_008), 3_000_000))
        twice = self.submit(b"join ", ref, ref)
        self.assertEqual(len(self.bytes_of(twice)[0]), 6_000_024)

    def test_what_it_is_was_told_before_the_report(self):
        ref = self.submit(b"join abcde")
        self.bytes_of(ref)
        succeeded = self.fake.scheduler.succeeded
        eventually(lambda: ref.id in self.fake.scheduler.described)
        # The fake refuses what comes after the report.
        self.assertEqual(self.fake.scheduler.described[ref.id], ((5,), 2, 5))
        self.assertLessEqual(succeeded, self.fake.scheduler.succeeded)

    def test_below_its_level_nothing_is_told_and_the_worker_goes_on(self):
        fake = FakeCluster()
        self.addCleanup(fake.close)
        fake.level = 9
        with mock.patch.dict(os.environ, {"PYTHONPATH": self.path}):
            fake.start_worker()
        fake.await_workers(1, DEADLINE_S)
        connected = runtime.connected()
        runtime.connect(None)
        try:
            ray.init(fake.address)
            for older in (False, True):
                fake.is_older = older
                ref = self.submit(b"join abcde")
                self.assertEqual(self.bytes_of(ref)[0][:5], b"abcde")
            del ref
            ray.shutdown()
        finally:
            runtime.connect(connected)
        self.assertEqual(len(fake.scheduler.workers), 2, "none registered again")
        self.assertEqual((fake.scheduler.described, fake.scheduler.violations), ({}, []))

    def failure(self, *submitted):
        with self.assertRaises(ray.TaskError) as caught:
            ray.get(self.submit(*submitted), timeout=DEADLINE_S)
        self.assertEqual(caught.exception.function_name, NAME.decode())
        return caught.exception.traceback_text

    def test_what_goes_wrong_is_a_failed_task_with_its_text(self):
        text = self.failure(b"raise here")
        self.assertRegex(text, "(?s)^Traceback.*KeyError: 'here'")
        self.assertNotIn("cancelling.py", text)
        self.assertIn("made NoneType for 1 results", self.failure(b"nothing"))
        self.assertIn("multiple of 8: size 16, metadata at 4", self.failure(b"misplaced"))
        for size in (b"100", b"1000000"):
            text = self.failure(b"unwritten " + size)
            self.assertRegex(text, "(?s)^the result of function tripod.mars.chunk cannot be written.*ZeroDivisionError")
        self.assertIn("keeps its memory", self.failure(b"keeps"))
        self.assertEqual(self.fake.stores[0].aborted, 2)
        text = self.failure(b"join ", self.submit(b"raise first"))
        self.assertRegex(text, "(?s)^argument 1 of function .*produced by failed tripod.mars.chunk:.*KeyError: 'first'")
        wrong = runtime.process().submit(NAME, [ray.put(1)], 1, (0, False), NONE)[0]
        with self.assertRaisesRegex(ray.TaskError, "takes bytes, and then objects"):
            ray.get(wrong, timeout=DEADLINE_S)
        self.assertIsNone(self.worker.poll())

    def test_it_can_be_cancelled(self):
        begun = self.folder / "begun"
        ref = self.submit(b"hold " + str(begun).encode())
        eventually(begun.exists)
        self.assertTrue(ray.cancel(ref, grace=DEADLINE_S))
        with self.assertRaises(ray.TaskCancelledError):
            ray.get(ref, timeout=DEADLINE_S)
        self.assertEqual(self.bytes_of(self.submit(b"join x"))[0][:1], b"x")


class Registration(unittest.TestCase):
    def test_only_functions_are_registered(self):
        with self.assertRaises(TypeError):
            raw.register("x", 5)
        self.assertNotIn("x", raw.names())

    def test_results_that_there_cannot_be_are_refused(self):
        good = raw.RawResult(80, None, 64, (np.int64(2), 1), np.uint8(4), 8)
        self.assertEqual(good.checked(), (80, None, 64, (2, 1), 4, 8))
        self.assertIs(type(good.checked().shape[0]), int)
        for wrong in (
            {"size": -1},
            {"size": 56},
            {"metadata_offset": 60},
            {"shape": (1,) * 65},
            {"shape": (-1,)},
            {"element_type": 256},
            {"bytes": 2**63},
            {"size": 80.0},
        ):
            with self.subTest(wrong), self.assertRaises((TypeError, ValueError)):
                good._replace(**wrong).checked()

    def test_a_worker_that_is_to_execute_them_and_cannot_says_so(self):
        command = [sys.executable, "-m", "tripod_ray.worker", "--address", "none:1", "--mars"]
        with tempfile.TemporaryDirectory() as folder:
            # The name is that of a package that is installed, or not, and here it is one without what is wanted.
            broken = pathlib.Path(folder, "tripod_mars")
            broken.mkdir()
            (broken / "__init__.py").touch()
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            ended = subprocess.run(
                command, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, env={**os.environ, "PYTHONPATH": path}
            )
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, "--mars: the package tripod_mars is not installed, or cannot be imported")


if __name__ == "__main__":
    unittest.main()
