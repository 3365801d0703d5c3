"""Remote functions, as far as no cluster is needed: U5 and U6 of upstream's interface tests."""

import pickle
import unittest

import cloudpickle

import tripod_ray as ray
from tripod_ray import runtime, values
from tripod_ray.needs import NONE, Needs
from tripod_ray.reference import ObjectRef
from tripod_ray.remote import FUNCTION_MAGIC


class Recorder:
    """In place of a process: keeps what would be submitted and stored."""

    def __init__(self):
        self.exported, self.submitted, self.stored = set(), [], []
        self.outbox = self

    def ask(self, call):
        self.submitted.append(call)

    def drop(self, objectid):
        pass

    def submit(self, function, arguments, results, options, needs=NONE):
        self.submitted.append((function.decode(), arguments, options))
        self.needs = needs
        return [ObjectRef(self, place) for place in range(results)]

    def put_packed(self, packed):
        self.stored.append(packed)
        return ObjectRef(self, 100 + len(self.stored))


class Recorded(unittest.TestCase):
    def setUp(self):
        self.process = Recorder()
        runtime.connect(self.process)
        self.addCleanup(runtime.connect, None)

    def call(self):
        """The last call as the worker would make it: positional arguments and those by name."""
        _, arguments, _ = self.process.submitted[-1]
        read = [
            a if type(a) is ObjectRef else values.read(a[0], lambda i: ObjectRef(self.process, i))
            for a in arguments
        ]
        names = []
        if read and isinstance(read[-1], dict) and values.CALL_MARK in read[-1]:
            names = read.pop()[values.CALL_MARK]
        split = len(read) - len(names)
        return read[:split], dict(zip(names, read[split:]))


class Arguments(Recorded):
    def check(self, function, args, kwargs):
        """The worker calls with what the caller wrote."""
        expected = function(*args, **kwargs)
        ray.remote(function).remote(*args, **kwargs)
        positional, named = self.call()
        self.assertEqual(function(*positional, **named), expected)

    def test_defaults_and_names_reach_the_function_as_written(self):
        def three(a, b=2, c=3):
            return (a, b, c)

        def none(a=1, b=2):
            return (a, b)

        def only(a, *, key, other=5):
            return (a, key, other)

        def many(*args):
            return args

        def more(a, *args, key=1, **named):
            return (a, args, key, named)

        for args, kwargs in [
            ((1,), {}),
            ((1, 5), {}),
            ((1, 5, 6), {}),
            ((1,), {"b": 5}),
            ((1,), {"c": 5}),
            ((1,), {"b": 6, "c": 5}),
            ((), {"a": 1}),
            ((), {"c": 1, "a": 3, "b": 2}),
            ((1, 2), {"c": 9}),
        ]:
            self.check(three, args, kwargs)
        for args, kwargs in [((), {}), ((5,), {}), ((), {"b": 1}), ((), {"a": 4, "b": 1})]:
            self.check(none, args, kwargs)
        for args, kwargs in [((1,), {"key": 2}), ((), {"a": 1, "other": 3, "key": 2})]:
            self.check(only, args, kwargs)
        for args in [(), (1,), (1, 2, 3)]:
            self.check(many, args, {})
        for args, kwargs in [((1, 2, 3), {}), ((1,), {"key": 4, "x": 5}), ((1, 2), {"y": 7})]:
            self.check(more, args, kwargs)

    def test_calls_that_do_not_fit_are_refused_by_the_caller(self):
        f = ray.remote(lambda a, b=1: None)
        for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"c": 1}), ((1,), {"a": 1})]:
            with self.assertRaises(TypeError):
                f.remote(*args, **kwargs)

    def test_handles_go_by_reference_also_by_name(self):
        f = ray.remote(lambda a, *, key=None: None)
        one, two = ObjectRef(self.process, 1), ObjectRef(self.process, 0)
        f.remote(one, key=two)
        positional, named = self.call()
        self.assertIs(positional[0], one)
        self.assertIs(named["key"], two)

    def test_large_arguments_are_stored_and_small_ones_are_not(self):
        f = ray.remote(lambda *args: None)
        f.remote("x" * 1000, b"y" * 1000)
        self.assertEqual(len(self.process.stored), 0)
        f.remote("x" * 100_000)
        f.remote(b"y" * 100_000)
        self.assertEqual(len(self.process.stored), 2)
        f.remote(*["x" * 50_000] * 20)
        self.assertGreater(len(self.process.stored), 10)
        _, arguments, _ = self.process.submitted[-1]
        inside = sum(a[0].ByteSize() for a in arguments if type(a) is tuple)
        self.assertLess(inside, 300 * 1024)

    def test_an_argument_that_changes_later_is_sent_as_it_was(self):
        value = [1]
        ray.remote(lambda x: None).remote(value)
        value.append(2)
        self.assertEqual(self.call()[0], [[1]])


class Definitions(Recorded):
    def test_a_remote_function_is_not_called_directly(self):
        @ray.remote
        def f():
            return 1

        with self.assertRaisesRegex(TypeError, r"f\.remote\(\)"):
            f()

    def test_results_decide_what_remote_returns(self):
        self.assertIsInstance(ray.remote(lambda: 0).remote(), ObjectRef)
        self.assertEqual(len(ray.remote(num_returns=3)(lambda: 0).remote()), 3)
        self.assertIsNone(ray.remote(num_returns=0)(lambda: 0).remote())

    def test_bad_definitions_are_refused(self):
        for bad in [
            lambda: ray.remote(1),
            lambda: ray.remote(Recorder),
            lambda: ray.remote(num_returns=-1)(len),
            lambda: ray.remote([1], []),
            lambda: ray.remote([int], [], []),
        ]:
            with self.assertRaises((TypeError, ValueError)):
                bad()
        with self.assertRaises(TypeError):
            ray.remote(lambda: 0).options(color=1)
        with self.assertRaises(ValueError):
            ray.remote(lambda: 0).options(max_retries=-2)

    def test_arguments_of_another_type_than_declared_are_not_submitted(self):
        def f(number, *words, flag=False):
            return number

        typed = ray.remote([int, str], [int])(f)
        for good in [
            (1,),
            (1, "a", "b"),
            (True, "a"),
            (ObjectRef(self.process, 1), ObjectRef(self.process, 2)),
        ]:
            typed.remote(*good)
        self.assertEqual(self.call(), ([ObjectRef(self.process, 1), ObjectRef(self.process, 2)], {}))
        submitted = len(self.process.submitted)
        for bad in [("1",), (1, 2), (1, "a", None), (None,)]:
            with self.assertRaisesRegex(TypeError, r"argument \d of .*f is declared (int|str), and is"):
                typed.remote(*bad)
        with self.assertRaisesRegex(TypeError, "without arguments"):
            ray.remote([], [])(lambda x: None).remote(1)
        self.assertEqual(len(self.process.submitted), submitted)
        self.assertEqual(len(ray.remote([], [int, None])(lambda: (1, None)).remote()), 2)

    def test_options_change_a_copy(self):
        f = ray.remote(lambda: 0)
        g = f.options(max_retries=7, retry_exceptions=True)
        g.remote()
        self.assertEqual(self.process.submitted[-1][2], (7, True))
        f.remote()
        self.assertEqual(self.process.submitted[-1][2], (None, False))
        self.assertEqual(len(f.options(num_returns=2).remote()), 2)

    def test_needs_are_options_too(self):
        f = ray.remote(num_cpus=0.5, memory="1.5GiB", resources={"gpu": 1, "disk": 0.25}, priority=-3)(lambda: 0)
        f.remote()
        of_f = Needs(-3, 500, 3 << 29, (("disk", 250), ("gpu", 1000)))
        self.assertEqual(self.process.needs, of_f)
        f.options(num_cpus=None, resources={}, memory=4096).remote()
        self.assertEqual(self.process.needs, Needs(-3, 0, 4096, ()))
        ray.remote(lambda: 0).options(num_cpus=0, max_retries=1).remote()
        self.assertEqual(self.process.needs, NONE)
        for function, expected in [(f, of_f), (ray.remote(lambda: 0), NONE)]:
            restored = pickle.loads(cloudpickle.dumps(function))
            restored.remote()
            self.assertEqual(self.process.needs, expected)

    def test_bad_needs_are_refused_by_their_name(self):
        for options, error, text in [
            ({"num_cpus": -1}, ValueError, "num_cpus is -1; it is at least 0"),
            ({"num_cpus": float("nan")}, ValueError, "num_cpus is nan"),
            ({"num_cpus": 0.0005}, ValueError, "num_cpus is 0.0005, and is counted in thousandths"),
            ({"num_cpus": "2"}, TypeError, "num_cpus is a number, and not '2'"),
            ({"num_cpus": True}, TypeError, "num_cpus is a number, and not True"),
            ({"memory": "4 GB"}, ValueError, "memory is '4 GB'; write bytes, or"),
            ({"memory": 0.5}, ValueError, "memory is 0.5, which is no whole number of bytes"),
            ({"memory": -4}, ValueError, "memory is -4; it is at least 0"),
            ({"memory": []}, TypeError, "memory is a number of bytes"),
            ({"resources": ["gpu"]}, TypeError, "resources is a dict"),
            ({"resources": {"a=b": 1}}, ValueError, "resources has the name 'a=b'"),
            ({"resources": {"gpu": -1}}, ValueError, r"resources\['gpu'\] is -1"),
            ({"resources": {str(n): 1 for n in range(33)}}, ValueError, "resources has 33 names"),
            ({"priority": 0.5}, TypeError, "priority is an integer, and not 0.5"),
            ({"priority": 2**31}, ValueError, "priority is 2147483648, and has 32 bits"),
        ]:
            with self.subTest(options):
                with self.assertRaisesRegex(error, text):
                    ray.remote(**options)(lambda: 0)
                with self.assertRaisesRegex(error, text):
                    ray.remote(lambda: 0).options(**options)

    def test_a_function_is_exported_once_and_keys_tell_functions_apart(self):
        def make(number):
            def same_name():
                return number

            return ray.remote(same_name)

        one, two = make(1), make(2)
        for function in (one, one, two):
            function.remote()
        keys = [call[0] for call in self.process.submitted if isinstance(call, tuple)]
        exports = [call for call in self.process.submitted if not isinstance(call, tuple)]
        self.assertEqual(len(exports), 2)
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[0], keys[2])
        self.assertEqual(keys[0].rpartition(":")[0], keys[2].rpartition(":")[0])

    def test_functions_can_refer_to_themselves_and_each_other(self):
        @ray.remote
        def even(n):
            return n == 0 or odd.remote(n - 1)

        @ray.remote
        def odd(n):
            return n != 0 and even.remote(n - 1)

        even.remote(4)
        self.assertEqual(len(self.process.exported), 2)
        exports = [call.request.function for call in self.process.submitted if not isinstance(call, tuple)]
        for export in exports:
            key, _, body = pickle.loads(export.implementation[len(FUNCTION_MAGIC) :])
            self.assertIn(key.encode(), self.process.exported)
            function = cloudpickle.loads(body)
            other = function.__closure__[0].cell_contents
            self.assertIn(other._encoded_key, self.process.exported)

    def test_calls_without_a_cluster_say_what_to_do(self):
        runtime.connect(None)
        with self.assertRaisesRegex(ray.NotConnectedError, "init"):
            ray.remote(lambda: 0).remote()
        for call in (lambda: ray.put(1), lambda: ray.get([]), ray.task_info, ray.kill_workers):
            with self.assertRaises(ray.NotConnectedError):
                call()


if __name__ == "__main__":
    unittest.main()
