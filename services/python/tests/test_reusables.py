"""Reusable variables: U10, U16 and the failing ones of U20."""

import os
import time
import unittest

import cloudpickle
from cluster import DEADLINE_S, ClusterTest, eventually, only_fake

import tripod_ray as ray
from tripod_ray import Reusable, reusables, wire
from tripod_ray.context import TaskContext
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

    def test_a_task_that_runs_beside_a_waiting_one_does_not_see_its_changes(self):
        reusables.seen = Reusable(lambda: [], lambda seen: ["renewed"])

        @ray.remote
        def look(text):
            seen = list(reusables.seen)
            reusables.seen.append(text)
            return seen

        @ray.remote
        def waits():
            reusables.seen.append("waits")
            beside = [ray.get(look.remote(text)) for text in ("beside", "later")]
            return beside, list(reusables.seen)

        before = ray.get(look.remote("before"))
        beside, after = ray.get(waits.remote())
        self.assertEqual((before, after), ([], ["renewed", "waits"]))
        self.assertEqual(beside, [[], ["renewed"]], "each has what was made for it, or anew after another one")
        self.assertEqual(ray.get(look.remote("last")), ["renewed"])

    @only_fake("counts what is given back")
    def test_what_waits_behind_a_variable_that_is_slow_to_make_is_not_given_back(self):
        driver = os.getpid()

        def slow(*_):
            # Several times as long as a task may run before what is behind it goes back.
            if os.getpid() != driver:
                time.sleep(0.6)
            return "made"

        # The worker knows the function before, so that its tasks come while the variable is made.
        use = ray.remote(lambda name, _: getattr(reusables, name))
        self.assertEqual(ray.get(use.remote("before", 0)), "before")

        def nothing_goes_back():
            given_back = self.fake.scheduler.given_back
            reusables.slow = Reusable(slow, slow)
            uses = [use.remote("slow", place) for place in range(3)]
            self.assertEqual(ray.get(uses, timeout=DEADLINE_S), ["made"] * 3)
            return self.fake.scheduler.given_back == given_back

        # What waits behind a task goes back where the machine pauses in the middle of that task.
        self.assertTrue(any(nothing_goes_back() for _ in range(5)), "something went back every time")

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


class InTasks(unittest.TestCase):
    def setUp(self):
        self.variables = type(reusables)()

    def as_task(self, task, work):
        with task:
            return work(self.variables)

    def test_a_task_keeps_what_it_has_when_the_variable_is_defined_anew(self):
        waiting, later = TaskContext((1, 1), "waits"), TaskContext((2, 1), "later")
        self.variables.shared = Reusable(lambda: ["old"], lambda value: [*value, "renewed"])
        self.as_task(waiting, lambda variables: variables.shared.append("mine"))
        self.variables.shared = Reusable(lambda: ["new"], lambda value: [*value, "renewed"])
        self.assertEqual(self.as_task(later, lambda variables: variables.shared), ["new"])
        self.assertEqual(self.as_task(waiting, lambda variables: variables.shared), ["old", "mine"])
        self.variables.renew(waiting.variables)
        self.assertEqual(self.variables.shared, ["new"], "nothing of the old one is kept")
        self.variables.renew(later.variables)
        self.assertEqual(self.variables.shared, ["new"], "one is enough")

    def test_threads_of_no_task_see_what_was_given_to_a_task_last(self):
        self.variables.shared = Reusable(lambda: [])
        self.as_task(TaskContext((1, 1), "f"), lambda variables: variables.shared.append("mine"))
        self.assertEqual(self.variables.shared, ["mine"])

    def test_what_cannot_be_made_for_a_task_beside_another_one_fails_that_task_only(self):
        made = iter(["first"])
        self.variables.once = Reusable(lambda: next(made), lambda value: value)
        waiting, beside = TaskContext((1, 1), "waits"), TaskContext((2, 1), "beside")
        self.as_task(waiting, lambda variables: variables.once)
        with self.assertRaisesRegex(ray.TripodError, "once could not be made: StopIteration"):
            self.as_task(beside, lambda variables: variables.once)
        self.variables.renew(waiting.variables)
        self.assertEqual(self.as_task(TaskContext((3, 1), "f"), lambda variables: variables.once), "first")


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
