"""Failing tasks, values and processes: U11, U20 and U21 of upstream's tests, and what came since."""

import os
import signal
import threading
import unittest

from cluster import ClusterTest, eventually, only_fake

import tripod_ray as ray
from tripod_ray import wire
from tripod_ray.calls import Alone


@ray.remote
def identity(x):
    return x


class FailedTasks(ClusterTest):
    workers = 2

    def failed(self, name):
        """What the scheduler was told of failed tasks of a function."""
        return [task for task in ray.task_info()["failed_tasks"] if name in task["function_name"]]

    def await_failed(self, name, count):
        eventually(lambda: len(self.failed(name)) == count, f"{count} failed {name}")
        return self.failed(name)

    def test_every_result_of_a_failed_task_raises_with_its_text(self):
        @ray.remote(num_returns=3)
        def throws_three():
            raise Exception("test function failed")

        for ref in throws_three.remote():
            with self.assertRaises(ray.TaskError) as caught:
                ray.get(ref)
            self.assertIn("test function failed", str(caught.exception))
            self.assertIn("throws_three", caught.exception.function_name)
            self.assertEqual(caught.exception.cause.args, ("test function failed",))
            self.assertIn("throws_three", caught.exception.traceback_text)
            self.assertNotIn("execution.py", caught.exception.traceback_text)

    def test_the_scheduler_lists_failed_tasks(self):
        @ray.remote
        def throws_listed():
            raise Exception("listed")

        throws_listed.remote(), throws_listed.remote()
        listed = self.await_failed("throws_listed", 2)
        self.assertEqual(len({task["operationid"] for task in listed}), 2)
        for task in listed:
            self.assertIn("listed", task["error_message"])
            self.assertRegex(task["worker_address"], r"^[\d.]+:\d+$")

    def test_a_function_without_results_must_return_none(self):
        @ray.remote(num_returns=0)
        def returns_one():
            return 1

        returns_one.remote()
        (task,) = self.await_failed("returns_one", 1)
        self.assertIn("returns_one", task["error_message"])
        self.assertIn("0 return values", task["error_message"])

    def test_results_of_another_type_than_declared_fail_the_task(self):
        @ray.remote([], [int])
        def says_a_number():
            return 1.5

        @ray.remote([bool], [int, str])
        def says_two(swapped):
            return ("a", 1) if swapped else (1, ray.put("b"))

        with self.assertRaisesRegex(
            ray.TaskError, "result 0 of .*says_a_number is declared int, and is float"
        ):
            ray.get(says_a_number.remote())
        number, text = says_two.remote(False)
        self.assertEqual((ray.get(number), ray.get(text)), (1, "b"), "a handle passes for any type")
        for ref in says_two.remote(True):
            with self.assertRaisesRegex(ray.TaskError, "declared int, and is str"):
                ray.get(ref)
        self.await_failed("says_a_number", 1)
        self.await_failed("says_two", 1)

    def test_arguments_are_checked_again_where_they_are_read(self):
        @ray.remote([int], [int])
        def double(number):
            return 2 * number

        self.assertEqual(ray.get(double.remote(double.remote(2))), 8)
        with self.assertRaisesRegex(ray.TaskError, "argument 0 of .*double is declared int, and is str"):
            ray.get(double.remote(ray.put("2")))
        self.await_failed("double", 1)

    def test_a_wrong_number_of_results_is_a_failed_task(self):
        @ray.remote(num_returns=2)
        def returns_wrong(what):
            return what

        for what in (1, (1, 2, 3), "ab"):
            with self.assertRaisesRegex(ray.TaskError, "2 return values"):
                ray.get(returns_wrong.remote(what))
        self.assertEqual(ray.get(returns_wrong.remote([1, 2])), [1, 2])

    def test_consumers_fail_with_the_argument_that_failed(self):
        @ray.remote
        def throws_first():
            raise ValueError("first")

        @ray.remote
        def consumes(a, b):
            return a

        with self.assertRaises(ray.TaskError) as caught:
            ray.get(consumes.remote(consumes.remote(1, throws_first.remote()), 2))
        text = str(caught.exception)
        self.assertRegex(text, r"argument 0 of function \S*consumes was produced by failed \S*consumes")
        self.assertRegex(text, r"argument 1 of function \S*consumes was produced by failed \S*throws_first")
        self.assertIn("ValueError: first", text)

    def test_values_that_cannot_be_pickled_fail_the_task_and_not_the_worker(self):
        @ray.remote
        def returns_lock():
            return threading.Lock()

        with self.assertRaisesRegex(ray.TaskError, "result 0 of function .*returns_lock cannot be stored"):
            ray.get(returns_lock.remote())
        with self.assertRaises(TypeError):
            identity.remote(threading.Lock())

        class Explodes:
            def __reduce__(self):
                return explode, ()

        with self.assertRaisesRegex(ray.TaskError, "argument 0 of function .*identity cannot be read"):
            ray.get(identity.remote(Explodes()))
        self.assertEqual(ray.get(identity.remote(1)), 1)

    def test_a_function_that_cannot_be_imported_fails_its_tasks(self):
        class Module:
            def __reduce__(self):
                return explode, ()

        broken = Module()

        @ray.remote
        def uses_broken():
            return broken

        with self.assertRaisesRegex(ray.TaskError, "(?s)uses_broken cannot be imported.*exploded"):
            ray.get(uses_broken.remote())
        self.assertEqual(ray.get(identity.remote(1)), 1)

    def test_tasks_that_exit_end_themselves_only(self):
        @ray.remote
        def exits(error):
            raise error

        for error in (SystemExit(3), KeyboardInterrupt()):
            with self.assertRaisesRegex(ray.TaskError, type(error).__name__):
                ray.get(exits.remote(error))
        self.assertEqual(ray.get([identity.remote(number) for number in range(20)]), list(range(20)))

    def test_garbage_that_others_export_is_left_alone(self):
        process = ray.runtime.process()
        for body in (b"", b"TPY1", b"TPY1garbage", b"another language"):
            request = wire.ExportFunctionRequest(function=wire.Function(implementation=body))
            process.outbox.ask(Alone(wire.EXPORT_FUNCTION, request))
        self.assertEqual(ray.get([identity.remote(number) for number in range(20)]), list(range(20)))

    def test_a_failing_get_inside_a_task_fails_it(self):
        @ray.remote
        def throws_inside():
            raise ValueError("inside")

        @ray.remote
        def gets():
            return ray.get(throws_inside.remote())

        with self.assertRaisesRegex(ray.TaskError, "(?s)TaskError.*ValueError: inside"):
            ray.get(gets.remote())

    def test_exceptions_are_tried_again_if_asked(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:

            @ray.remote(max_retries=5, retry_exceptions=True)
            def third_time(folder):
                count = len(os.listdir(folder))
                open(os.path.join(folder, str(count)), "w").close()
                if count < 2:
                    raise ValueError(f"attempt {count}")
                return count

            self.assertEqual(ray.get(third_time.remote(folder)), 2)

            @ray.remote
            def always(*, folder):
                open(os.path.join(folder, f"x{len(os.listdir(folder))}"), "w").close()
                raise ValueError("always")

            with self.assertRaisesRegex(ray.TaskError, "always"):
                ray.get(always.options(max_retries=1, retry_exceptions=True).remote(folder=folder))
            self.assertEqual(len([name for name in os.listdir(folder) if name.startswith("x")]), 2)


def make_explode():
    """By value, since workers cannot import this module."""

    def explode():
        raise RuntimeError("exploded")

    return explode


explode = make_explode()


class DyingWorkers(ClusterTest):
    workers = 0

    @only_fake("gives workers up")
    def test_tasks_of_a_worker_that_dies_run_on_another(self):
        first = self.cluster.start_worker()
        self.cluster.await_workers(1)
        began = ray.put(os.getpid())

        @ray.remote
        def where(_):
            import time

            if os.path.exists(marker):
                return os.getpid()
            open(marker, "w").close()
            time.sleep(600)

        import tempfile

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        marker = os.path.join(folder.name, "began")
        ref = where.remote(began)
        eventually(lambda: os.path.exists(marker), "the first attempt")
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = self.cluster.start_worker()
        self.cluster.await_workers(2)
        self.fake.scheduler.expire(next(w.id for w in self.fake.scheduler.workers if w.alive and w.ready))
        self.assertEqual(ray.get(ref, timeout=100), second.pid)
        self.assertTrue(eventually_killed(second))

    @only_fake("gives workers up")
    def test_a_worker_that_was_given_up_registers_again(self):
        worker = self.cluster.start_worker()
        alive = lambda: [w.id for w in self.fake.scheduler.workers if w.alive and w.ready]
        self.fake.await_true(lambda: len(alive()) == 1, 60)
        (before,) = alive()
        self.assertEqual(ray.get(identity.remote(1)), 1)
        self.fake.scheduler.expire(before)
        self.fake.await_true(lambda: alive() and alive() != [before], 60)
        self.assertEqual(ray.get(identity.remote(2)), 2)
        self.assertIsNone(worker.poll())
        self.assertTrue(eventually_killed(worker))


def eventually_killed(worker):
    """Ends all workers when they have nothing to do, and waits for one of them."""
    eventually(ray.kill_workers, "idle workers")
    return worker.wait(100) == 0


class Drivers(ClusterTest):
    @only_fake("gives drivers up")
    def test_a_driver_that_was_given_up_is_told(self):
        ref = ray.put(1)
        driver = ray.runtime.process()
        self.fake.scheduler.expire(driver.workerid)
        eventually(lambda: driver.lost is not None, "the driver was told")
        for call in (lambda: ray.put(1), lambda: ray.get(ref), lambda: identity.remote(1)):
            with self.assertRaises(ray.ExpiredError):
                call()
        ray.shutdown()
        ray.init(self.cluster.address)
        self.assertEqual(ray.get(identity.remote(3)), 3)
        self.fake.scheduler.violations.clear()


class LostAnswers(ClusterTest):
    workers = 2

    @only_fake("loses answers")
    def test_calls_whose_answers_are_lost_take_effect_once(self):
        self.fake.lose_every = 3
        refs = [identity.remote(number) for number in range(100)]
        values = ray.get([identity.remote([ref]) for ref in refs])
        self.assertEqual(ray.get([value[0] for value in values]), list(range(100)))
        self.assertEqual([ray.get(ray.put(number)) for number in range(20)], list(range(20)))
        ids = [ref.id for ref in refs]
        del refs, values
        eventually(lambda: [self.fake.scheduler.objects[i].count() for i in ids] == [-1] * 100)
        eventually(lambda: ray.task_info()["num_succeeded"] == 200)
        self.fake.lose_every = 0


class FullStores(ClusterTest):
    @only_fake("knows how large the store is")
    def test_an_object_larger_than_the_store_is_refused(self):
        too_large = Large(2 << 30)
        with self.assertRaises(ray.StoreError) as caught:
            ray.put(too_large)
        self.assertEqual(caught.exception.code, wire.RESOURCE_EXHAUSTED)
        self.assertEqual(ray.get(ray.put(1)), 1)

        @ray.remote
        def makes(make):
            return make(2 << 30)

        with self.assertRaisesRegex(ray.TaskError, "a result cannot be stored: .*more than the store"):
            ray.get(makes.remote(large_class()))
        self.assertEqual(ray.get(identity.remote(1)), 1)


def large_class():
    """By value, since workers cannot import this module."""

    class Large:
        """Serialised it has so many bytes, which take no memory before they are written."""

        def __init__(self, size_bytes):
            self.size_bytes = size_bytes

        def __reduce_ex__(self, protocol):
            import mmap
            import pickle

            return bytearray, (pickle.PickleBuffer(mmap.mmap(-1, self.size_bytes)),)

    return Large


Large = large_class()


if __name__ == "__main__":
    unittest.main()
