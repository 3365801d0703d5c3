"""Values survive being written and read: U1 of upstream's serialisation tests, and what came since."""

import math
import threading
import unittest

import numpy as np

from tripod_ray import layout, values
from tripod_ray.errors import DependencyFailedError, ObjectLostError, TaskCancelledError, TaskError
from tripod_ray.reference import ObjectRef
from tripod_ray.wire import Obj

DTYPES = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "bool",
]


class Owner:
    """In place of an outbox."""

    def drop(self, objectid):
        pass


OWNER = Owner()


def ref(objectid):
    return ObjectRef(OWNER, objectid)


def stored(value):
    """As a store has it: packed, and unpacked from one piece of memory."""
    packed = layout.pack(value)
    return layout.unpack(memoryview(packed.whole()), packed.metadata_offset, ref)


def passed(value):
    """As an argument: within a message."""
    obj, refs = Obj(), []
    values.write(obj, value, refs)
    return values.read(Obj.FromString(obj.SerializeToString()), ref)


class Point:
    def __init__(self, x, inside=None):
        self.x, self.inside = x, inside

    def __eq__(self, other):
        return type(other) is Point and (self.x, self.inside) == (other.x, other.inside)


PLAIN = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    10**30,
    0.0,
    1.5,
    math.inf,
    "",
    "text",
    "Straße \U0001f600",
    "\ud800",
    b"",
    b"bytes",
    bytearray(b"x"),
    [],
    [1, [2, [3]]],
    (),
    (1,),
    (1, (2, None)),
    {},
    {"a": 1, (1, 2): [3]},
    {1, 2},
    frozenset("ab"),
    1j,
    Point(3),
    [Point(1), Point([2])],
    range(5),
    list(range(2000)),
    {"tripod.error": 1},
    {"tripod.call": []},
    ("tripod.pickle", 1),
    [("tripod.pickle",)],
    "tripod.pickle",
]


class RoundTrips(unittest.TestCase):
    def both(self, value):
        return [("stored", stored(value)), ("passed", passed(value))]

    def test_plain_values_keep_their_value_and_type(self):
        for value in PLAIN:
            for way, back in self.both(value):
                with self.subTest(way=way, value=repr(value)[:60]):
                    self.assertEqual(back, value)
                    self.assertIs(type(back), type(value))
        self.assertTrue(all(math.isnan(back) for _, back in self.both(math.nan)))

    def test_deep_values_are_not_limited_by_messages(self):
        value = None
        for _ in range(300):
            value = [value]
        for _, back in self.both(value):
            self.assertEqual(back, value)

    def test_arrays_of_every_type_and_shape(self):
        for dtype in DTYPES:
            for shape in [(), (0,), (1,), (3, 2), (0, 4), (5, 40), (2, 3, 50), (1000,)]:
                value = (np.arange(math.prod(shape)) % 100).astype(dtype).reshape(shape)
                for way, back in self.both(value):
                    with self.subTest(way=way, dtype=dtype, shape=shape):
                        np.testing.assert_array_equal(back, value)
                        self.assertEqual(
                            (back.dtype, back.shape, type(back)), (value.dtype, shape, np.ndarray)
                        )
                        self.assertFalse(back.flags.writeable and back.size and way == "stored")

    def test_extreme_numbers_of_arrays(self):
        for dtype in DTYPES:
            info = None if dtype == "bool" else (np.finfo if dtype.startswith("f") else np.iinfo)(dtype)
            value = np.array([0, 1] if info is None else [info.min, info.max], dtype=dtype)
            for _, back in self.both(value):
                np.testing.assert_array_equal(back, value)

    def test_scalars_of_numpy_stay_scalars(self):
        for dtype in DTYPES:
            value = np.ones(1, dtype=dtype)[0]
            for _, back in self.both(value):
                self.assertEqual((back, type(back)), (value, type(value)))

    def test_other_arrays(self):
        fortran = np.asfortranarray(np.arange(600.0).reshape(20, 30))
        others = [
            fortran,
            np.arange(1000)[::3],
            np.arange(10, dtype=">i4"),
            np.array(["ab", "c"]),
            np.array([1j, 2]),
            np.array([None, "x"], dtype=object),
            np.arange(5, dtype="float16"),
            np.zeros(3, dtype=[("a", "i4")]),
        ]
        for value in others:
            for _, back in self.both(value):
                np.testing.assert_array_equal(back, value)
                self.assertEqual(back.dtype, value.dtype)
        self.assertTrue(stored(fortran).flags.f_contiguous)

    def test_arrays_inside_of_values(self):
        value = {"weights": [np.arange(1000.0), np.arange(3)], "name": "x", "point": Point(4)}
        for _, back in self.both(value):
            np.testing.assert_array_equal(back["weights"][0], value["weights"][0])
            np.testing.assert_array_equal(back["weights"][1], value["weights"][1])
            self.assertEqual((back["name"], back["point"]), ("x", Point(4)))

    def test_large_arrays_are_the_memory_they_were_read_from(self):
        packed = layout.pack([np.arange(1000.0), np.zeros(500, dtype="int8")])
        memory = np.frombuffer(bytearray(packed.whole()), dtype="uint8")
        first, second = layout.unpack(memoryview(memory), packed.metadata_offset, ref)
        begin = memory.ctypes.data
        for array in (first, second):
            self.assertEqual((array.ctypes.data - begin) % layout.ALIGNMENT_BYTES, 0)
            self.assertTrue(begin <= array.ctypes.data < begin + len(memory))
            self.assertFalse(array.flags.writeable)


class Handles(unittest.TestCase):
    def check(self, value, expected):
        """Handles come back, and the scheduler sees the ids once for each occurrence."""
        obj, refs = Obj(), []
        values.write(obj, value, refs)
        packed = layout.pack(value)
        self.assertEqual(sorted(ref.id for ref in refs), expected)
        self.assertEqual(sorted(ref.id for ref in packed.refs), expected)
        self.assertEqual(sorted(ids_inside(obj)), expected)
        for back in (values.read(obj, ref), layout.unpack(packed.whole(), packed.metadata_offset, ref)):
            self.assertEqual(back, value)

    def test_handles_in_every_kind_of_value(self):
        one, zero = ref(1), ref(0)
        self.check([one, zero], [0, 1])
        self.check((zero, [one, one]), [0, 1, 1])
        self.check({"a": one, one: zero}, [0, 1, 1])
        self.check(zero, [0])
        # Not simple: the pickle has the handle itself only once.
        self.check(Point(1, [one, zero]), [0, 1])
        self.check([Point(1, ref(5)), ref(5)], [5, 5])
        self.check({1, 2, one}, [1])

    def test_handles_beside_large_arrays(self):
        packed = layout.pack([np.arange(1000.0), ref(7)])
        self.assertNotEqual(packed.metadata_offset, 0)
        self.assertEqual([inside.id for inside in packed.refs], [7])
        _, back = layout.unpack(packed.whole(), packed.metadata_offset, ref)
        self.assertEqual(back.id, 7)

    def test_a_handle_is_not_pickled_by_others(self):
        import pickle

        with self.assertRaisesRegex(TypeError, "ObjectRef"):
            pickle.dumps(ref(1))


class Failures(unittest.TestCase):
    def back(self, error):
        packed = layout.pack_error(error)
        with self.assertRaises(type(error)) as caught:
            layout.unpack(packed.whole(), packed.metadata_offset, ref)
        return caught.exception

    def test_a_failed_task_keeps_name_text_and_cause(self):
        back = self.back(TaskError("m.f", ValueError("no"), "Traceback: no"))
        self.assertEqual((back.function_name, back.traceback_text), ("m.f", "Traceback: no"))
        self.assertEqual((type(back.cause), back.cause.args), (ValueError, ("no",)))
        self.assertIn("m.f", str(back))

    def test_a_cause_that_cannot_be_pickled_is_left_out(self):
        self.assertIsNone(self.back(TaskError("f", ValueError(threading.Lock()), "text")).cause)

        class Awkward(Exception):
            def __init__(self, one, two):
                super().__init__(one)

        self.assertIsNone(self.back(TaskError("f", Awkward(1, 2), "text")).cause)

    def test_the_schedulers_own_failures_name_their_reason(self):
        obj = Obj()
        for key, value in {
            "tripod.error": "RETRIES_EXHAUSTED",
            "function": "m.f",
            "text": "gone",
            "history": ["attempt 1: worker 1 died"],
        }.items():
            entry = obj.dict_data.elem.add()
            values.write(entry.key, key, [])
            values.write(entry.value, value, [])
        with self.assertRaises(ObjectLostError) as caught:
            layout.unpack(obj.SerializeToString(), 0, ref)
        self.assertEqual(caught.exception.reason, "RETRIES_EXHAUSTED")
        self.assertEqual(caught.exception.history, ["attempt 1: worker 1 died"])
        self.assertTrue(str(caught.exception).endswith("; gone; attempt 1: worker 1 died"), caught.exception)
        self.assertIn("m.f", str(caught.exception))

    def test_a_task_whose_argument_was_lost_fails_as_if_it_had_not_been_given_out(self):
        lost = ObjectLostError("PUT_OBJECT", "", "its last copy is lost")
        packed = layout.pack_error(DependencyFailedError(7, "m.f", lost, "argument 0 of function m.f"))
        with self.assertRaises(ObjectLostError) as caught:
            layout.unpack(packed.whole(), packed.metadata_offset, ref)
        self.assertEqual((caught.exception.reason, caught.exception.function), ("DEPENDENCY_FAILED(7)", "m.f"))
        self.assertIn("argument 0", str(caught.exception))

    def test_errors_of_workers_in_rust_are_task_errors(self):
        for word in ("EXCEPTION", "exception"):
            obj = Obj()
            for key, value in {"tripod.error": word, "function": "add", "text": "overflow"}.items():
                entry = obj.dict_data.elem.add()
                values.write(entry.key, key, [])
                values.write(entry.value, value, [])
            with self.assertRaisesRegex(TaskError, "(?s)add.*overflow"):
                layout.unpack(obj.SerializeToString(), 0, ref)

    def test_a_cancelled_task_has_an_error_of_its_own(self):
        obj = Obj()
        for key, value in {"tripod.error": "CANCELLED", "function": "f", "text": "", "history": ["died"]}.items():
            entry = obj.dict_data.elem.add()
            values.write(entry.key, key, [])
            values.write(entry.value, value, [])
        with self.assertRaises(TaskCancelledError) as caught:
            layout.unpack(obj.SerializeToString(), 0, ref)
        self.assertEqual((caught.exception.function, caught.exception.history), ("f", ["died"]))

    def test_a_failure_is_known_without_unpickling_anything(self):
        packed = layout.pack_error(TaskError("f", KeyError("cause"), "text"))
        failed = values.failure(packed.whole())
        self.assertEqual((failed.function_name, failed.cause, failed.traceback_text), ("f", None, "text"))
        obj = Obj()
        for key in ("tripod.error", "function", "text", "history", "cause"):
            entry = obj.dict_data.elem.add()
            entry.key.string_data.data = key.encode()
            for inside in (entry.value, entry.value.list_data.elem.add()):
                inside.pyobj_data.data = b"cos\nabort\n(tR."
        self.assertIsInstance(values.failure(obj.SerializeToString()), ObjectLostError)
        for other in (b"", b"TPCH\1\0\0\0", layout.pack({"a": 1}).whole(), layout.pack("tripod.error").whole()):
            self.assertIsNone(values.failure(other))

    def test_ids_inside_a_message_are_found_without_reading_it(self):
        obj, refs = Obj(), []
        values.write(obj, [ref(1), {"a": (ref(2), ref(1))}, {3, "x"}], refs)
        self.assertEqual(sorted(values.ids(obj)), sorted(ids_inside(obj)))
        self.assertEqual(sorted(values.ids(obj)), [1, 1, 2])

    def test_damaged_objects_are_refused(self):
        packed = layout.pack(np.arange(1000.0))
        whole = packed.whole()
        for data, offset in [
            (whole, 8),
            (whole[:-4], packed.metadata_offset),
            (whole, len(whole) - 3),
            (b"", 0),
        ]:
            with self.assertRaises(ValueError):
                layout.unpack(data, offset, ref)


def ids_inside(obj):
    from fake_scheduler import nested_ids

    return nested_ids(obj)


if __name__ == "__main__":
    unittest.main()
