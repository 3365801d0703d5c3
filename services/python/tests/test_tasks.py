"""Tasks, puts and gets: U3, U4, U7, U9, U11 and U22 of upstream's tests."""

import random
import string
import unittest

import numpy as np
from cluster import ClusterTest, await_counts, eventually

import tripod_ray as ray
from tripod_ray import calls, runtime


@ray.remote
def identity(x):
    return x


class PutAndGet(ClusterTest):
    def test_what_is_put_is_got(self):
        for number in range(100):
            self.assertEqual(ray.get(ray.put(number)), number)
            self.assertEqual(ray.get(ray.put(number * 1e200)), number * 1e200)
            text = "".join(random.choice(string.printable) for _ in range(number))
            self.assertEqual(ray.get(ray.put(text)), text)
            self.assertEqual(ray.get(ray.put(list(range(number)))), list(range(number)))

    def test_large_objects(self):
        for size in [0, 1, 65_535, 65_536, 65_537, 10_000_000]:
            value = np.random.bytes(size)
            self.assertEqual(ray.get(ray.put(value)), value)
            array = np.frombuffer(value, dtype="uint8")
            np.testing.assert_array_equal(ray.get(ray.put(array)), array)
            np.testing.assert_array_equal(ray.get(identity.remote(array)), array)

    def test_an_array_of_the_store_is_the_shared_memory_and_cannot_change(self):
        ref = ray.put(np.arange(1_000_000))
        one, two = ray.get([ref, ref])
        self.assertFalse(one.flags.owndata)
        with self.assertRaises(ValueError):
            one[0] = 1
        np.testing.assert_array_equal(one, two)

    def test_get_keeps_the_order_of_lists(self):
        numbers = list(range(50))
        refs = [ray.put(number) for number in numbers]
        self.assertEqual(ray.get(refs), numbers)
        self.assertEqual(ray.get(refs[::-1]), numbers[::-1])
        self.assertEqual(ray.get([refs[0], refs[0]]), [ray.get(refs[0])] * 2)
        self.assertEqual(ray.get([]), [])

    def test_wrong_arguments_are_refused(self):
        for wrong in (
            lambda: ray.get(1),
            lambda: ray.get([1]),
            lambda: ray.wait([1]),
            lambda: ray.put(ray.put(1)),
        ):
            with self.assertRaises(TypeError):
                wrong()
        # The number is that of the walk-through of a new operator.
        with self.subTest("n39 what is no handle is named"):
            with self.assertRaisesRegex(TypeError, "a value of type int is not an ObjectRef"):
                ray.get(123)
            with self.assertRaisesRegex(TypeError, "element 1, of type str, is not an ObjectRef"):
                ray.get([ray.put(1), "x"])
            with self.assertRaisesRegex(TypeError, r"write wait\(\[ref\]\)"):
                ray.wait(ray.put(1))
        with self.assertRaises(ValueError):
            ray.wait([ray.put(1)], num_returns=2)


class Tasks(ClusterTest):
    workers = 3

    def test_arguments_and_results(self):
        @ray.remote(num_returns=3)
        def three(a, b=2, *, c):
            return a, b, c

        self.assertEqual(ray.get(three.remote(1, c=ray.put("x"))), [1, 2, "x"])

        @ray.remote
        def add(*terms):
            return sum(terms)

        self.assertEqual(ray.get(add.remote(1, ray.put(2), add.remote(3, 4))), 10)

    def test_a_task_without_results_is_counted(self):
        @ray.remote(num_returns=0)
        def nothing():
            pass

        # Reports of earlier tests may still be on their way.
        eventually(lambda: not ray.task_info()["running_tasks"])
        before = ray.task_info()["num_succeeded"]
        self.assertIsNone(nothing.remote())
        eventually(lambda: ray.task_info()["num_succeeded"] == before + 1)

    def test_many_tasks(self):
        self.assertEqual(ray.get([identity.remote(number) for number in range(500)]), list(range(500)))

    def test_a_chain_and_a_fan_in(self):
        ref = identity.remote(7)
        for _ in range(50):
            ref = identity.remote(ref)
        self.assertEqual(ray.get(ref), 7)

        @ray.remote
        def total(*values):
            return sum(values)

        self.assertEqual(ray.get(total.remote(*[identity.remote(number) for number in range(200)])), 19900)

    def test_a_result_that_is_a_handle_means_its_object(self):
        """U4: get gives the array for each of a chain of aliases."""
        array = np.ones([3, 4, 5])

        @ray.remote
        def f():
            return array

        @ray.remote
        def g():
            return f.remote()

        @ray.remote
        def h():
            return g.remote()

        for function in (f, g, h):
            np.testing.assert_array_equal(ray.get(function.remote()), array)
        np.testing.assert_array_equal(ray.get(identity.remote(h.remote())), array)

    def test_a_handle_as_a_result_of_several(self):
        @ray.remote(num_returns=2)
        def pair(refs):
            return refs[0], identity.remote(5)

        self.assertEqual(ray.get(pair.remote([ray.put("a")])), ["a", 5])

    def test_functions_are_closures_and_can_be_defined_again(self):
        def define(number):
            @ray.remote
            def same():
                return number

            return same

        one, two = define(1), define(2)
        self.assertEqual(ray.get([one.remote(), two.remote(), one.remote()]), [1, 2, 1])

    def test_tasks_submit_and_get_tasks(self):
        @ray.remote
        def fib(n):
            return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))

        self.assertEqual(ray.get(fib.remote(6)), 8)

    def test_a_task_defines_puts_and_waits(self):
        @ray.remote
        def outer():
            @ray.remote
            def inner(x):
                return x + 1

            ready, rest = ray.wait([inner.remote(ray.put(1))], num_returns=1, timeout=100)
            return ray.get(ready), len(rest)

        self.assertEqual(ray.get(outer.remote()), ([2], 0))

    def test_handles_travel_inside_values(self):
        @ray.remote
        def keeps(refs):
            return {"made": identity.remote("new"), "given": refs}

        inside = ray.put("old")
        got = ray.get(keeps.remote([inside]))
        self.assertEqual(ray.get([got["made"], got["given"][0]]), ["new", "old"])
        self.assertEqual(got["given"][0], inside)
        kept = ray.put({"ref": inside})
        del inside, got
        self.assertEqual(ray.get(ray.get(kept)["ref"]), "old")

    def test_a_task_sees_neither_the_drivers_later_changes_nor_those_of_others(self):
        value = [1, 2]
        ref = identity.remote(value)
        value.append(3)
        self.assertEqual(ray.get(ref), [1, 2])
        ray.get(ref).append(9)
        self.assertEqual(ray.get(ref), [1, 2])


class Waiting(ClusterTest):
    """U22."""

    workers = 2

    def test_wait_parts_the_handles_in_their_order(self):
        quick = [identity.remote(number) for number in range(4)]
        ready, rest = ray.wait(quick, num_returns=4)
        self.assertEqual((ready, rest), (quick, []))
        never = [undecided() for _ in range(2)]
        mixed = [never[0], quick[2], never[1], quick[0]]
        ready, rest = ray.wait(mixed, num_returns=2, timeout=60)
        self.assertEqual((ready, rest), ([quick[2], quick[0]], never))
        ready, rest = ray.wait(mixed, num_returns=3, timeout=0.2)
        self.assertEqual((len(ready), rest), (2, never))
        ready, rest = ray.wait(quick, num_returns=1, timeout=0)
        self.assertEqual((len(ready), len(rest)), (1, 3))

    def test_get_has_a_timeout(self):
        with self.assertRaises(ray.GetTimeoutError):
            ray.get(undecided(), timeout=0.1)
        with self.assertRaises(TimeoutError):
            ray.get([ray.put(1), undecided()], timeout=0)

    def test_n39_a_timeout_names_the_objects_that_did_not_come(self):
        """The number is that of the walk-through of a new operator."""
        late, there = undecided(), ray.put(1)
        with self.assertRaisesRegex(ray.GetTimeoutError, rf"^ObjectRef\({late.id}\) did not come within 0.1 s;"):
            ray.get(late, timeout=0.1)
        ray.get(there)
        several = rf"^1 of 2 objects did not come within 0.1 s: ObjectRef\({late.id}\); next: `tripod ray tasks`$"
        with self.assertRaisesRegex(ray.GetTimeoutError, several):
            ray.get([there, late], timeout=0.1)
        many = [undecided() for _ in range(7)]
        with self.assertRaisesRegex(ray.GetTimeoutError, rf"ObjectRef\({many[4].id}\) and 2 more;"):
            ray.get(many, timeout=0.1)

    def test_a_failed_task_is_decided(self):
        @ray.remote
        def fails():
            raise ValueError

        ref = fails.remote()
        self.assertEqual(ray.wait([ref], timeout=100), ([ref], []))


def undecided():
    """A handle whose object does not come: an argument that nobody makes, of a function that is known."""
    process = runtime.process()
    objectid, _ = process.outbox.ask(calls.Put(None))
    return identity.remote(process.adopt(objectid))


class Information(ClusterTest):
    def test_the_scheduler_tells_about_functions_and_objects(self):
        ref = identity.remote(1)
        ray.get(ref)
        info = ray.scheduler_info()
        entries = [entry for name, entry in info["function_table"].items() if "identity" in name]
        # A cluster that runs already may know those of earlier drivers, too.
        self.assertEqual({entry["num_return_vals"] for entry in entries}, {1})
        await_counts(self, [ref.id], [1])
        self.assertTrue(ray.is_initialized())


if __name__ == "__main__":
    unittest.main()
