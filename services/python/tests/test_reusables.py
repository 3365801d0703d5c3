"""Reusable variables: U10, U16 and the failing ones of U20."""

import unittest

import cloudpickle
from cluster import ClusterTest, eventually

import tripod_ray as ray
from tripod_ray import Reusable, reusables, wire
from tripod_ray.reusable import VARIABLE_MAGIC


class Variables(ClusterTest):
    workers = 1

    @classmethod
    def setUpClass(cls):
        # Defined before the driver is connected: exported when it is.
        reusables.before = Reusable(lambda: "before")
        super().setUpClass()

    def test_a_variable_of_before_the_connection_is_there(self):
        self.assertEqual(reusables.before, "before")
        self.assertEqual(ray.get(ray.remote(lambda: reusables.before).remote()), "before")

    def test_changes_of_a_task_are_not_seen_by_the_next(self):
        reusables.numbers = Reusable(lambda: [0, 1])

        @ray.remote
        def use():
            reusables.numbers.append(2)
            return list(reusables.numbers)

        self.assertEqual([ray.get(use.remote()) for _ in range(3)], [[0, 1, 2]] * 3)
        self.assertEqual(reusables.numbers, [0, 1])

    def test_a_variable_is_made_anew_by_its_own_function(self):
        def renew(counter):
            return counter + 1

        reusables.counter = Reusable(lambda: 0, renew)
        use = ray.remote(lambda: reusables.counter)
        self.assertEqual([ray.get(use.remote()) for _ in range(3)], [0, 1, 2])
        # A task that does not use it changes nothing.
        ray.get(ray.remote(lambda: 1).remote())
        self.assertEqual(ray.get(use.remote()), 3)

    def test_a_variable_that_cannot_be_made_fails_the_tasks_that_use_it(self):
        class OnlyHere:
            def __call__(self):
                return "the driver's"

            def __reduce__(self):
                return failing_initializer, ()

        reusables.broken = Reusable(OnlyHere())
        with self.assertRaisesRegex(ray.TaskError, "(?s)ReusableError.*broken.*cannot be made"):
            ray.get(ray.remote(lambda: reusables.broken).remote())
        self.assertEqual(ray.get(ray.remote(lambda: 1).remote()), 1)

    def test_a_variable_that_cannot_be_made_anew_is_made_from_the_beginning(self):
        def fails_once(value):
            raise RuntimeError("cannot be renewed")

        reusables.fragile = Reusable(lambda: 5, fails_once)
        use = ray.remote(lambda: reusables.fragile)
        self.assertEqual(ray.get(use.remote()), 5)
        with self.assertRaisesRegex(ray.TaskError, "cannot be renewed"):
            ray.get(use.remote())
        self.assertEqual(ray.get(use.remote()), 5)

    def test_only_reusables_are_assigned(self):
        with self.assertRaises(TypeError):
            reusables.wrong = 5
        with self.assertRaises(AttributeError):
            reusables.unknown

    def test_a_worker_that_comes_later_has_all_variables(self):
        reusables.late = Reusable(lambda: "late")
        worker = self.cluster.start_worker()
        self.cluster.await_workers(2)
        pids = ray.remote(lambda: (reusables.late, __import__("os").getpid()))
        seen = set()
        eventually(lambda: seen.update(ray.get([pids.remote() for _ in range(20)])) or len(seen) == 2)
        self.assertEqual({late for late, _ in seen}, {"late"})
        self.assertIn(worker.pid, {pid for _, pid in seen})


class OfOtherLanguages(unittest.TestCase):
    def test_a_variable_of_another_language_is_left_alone(self):
        variables = type(reusables)()
        ours = wire.message("ReusableVar")(name=b"shared")
        ours.initializer.implementation = VARIABLE_MAGIC + cloudpickle.dumps(lambda: "ours")
        variables.take(ours)
        theirs = wire.message("ReusableVar")(name=b"shared")
        for implementation in (b"TRV1 a value", b""):
            theirs.initializer.implementation = implementation
            variables.take(theirs)
        self.assertEqual(variables.shared, "ours")


def make_failing_initializer():
    """By value, since workers cannot import this module."""

    def failing_initializer():
        def initializer():
            raise RuntimeError("cannot be made")

        return initializer

    return failing_initializer


failing_initializer = make_failing_initializer()


if __name__ == "__main__":
    unittest.main()
