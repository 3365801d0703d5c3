"""Tasks that are cancelled."""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import unittest

from cluster import ClusterTest, DEADLINE_S, await_counts, eventually, only_fake
from fake import FakeCluster

import tripod_ray as ray
from tripod_ray import calls, keeper, layout, runtime


@ray.remote
def identity(x):
    return x


@ray.remote
def spins(folder):
    """Runs until it is told to end, and leaves a word about that."""
    path = pathlib.Path(folder)
    try:
        (path / "begun").write_text(str(os.getpid()))
        while True:
            pass
    except ray.TaskCancelledError:
        (path / "cleaned").touch()
        raise


@ray.remote
def ignores(folder):
    pathlib.Path(folder, "begun").write_text(str(os.getpid()))
    while True:
        try:
            time.sleep(0.01)
        except ray.TaskCancelledError:
            pass


@ray.remote
def sleeps(folder):
    pathlib.Path(folder, "begun").touch()
    time.sleep(10 * DEADLINE_S)


@ray.remote
def gets(folder, refs):
    pathlib.Path(folder, "begun").touch()
    return ray.get(refs)


@ray.remote
def waits(folder, refs):
    pathlib.Path(folder, "begun").touch()
    return len(ray.wait(refs)[0])


@ray.remote
def awaits_file(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return os.getpid()


def undecided():
    """A handle whose object never comes."""
    process = runtime.process()
    objectid, _ = process.outbox.ask(calls.Put(None))
    return process.adopt(objectid)


class CancelTest(ClusterTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def begun(self):
        """Waits until the task has begun."""
        eventually((self.folder / "begun").exists, "the task begins")

    def assert_cancelled(self, ref):
        with self.assertRaises(ray.TaskCancelledError) as caught:
            ray.get(ref, timeout=DEADLINE_S)
        self.assertEqual(caught.exception.reason, "CANCELLED")
        self.assertIsInstance(caught.exception, ray.ObjectLostError)

    def assert_worker_goes_on(self):
        self.assertEqual(ray.get(identity.remote(5), timeout=DEADLINE_S), 5)


class OneWorker(CancelTest):
    def test_a_task_that_waits_does_not_begin(self):
        ref = identity.remote(undecided())
        self.assertIs(ray.cancel(ref), True)
        self.assert_cancelled(ref)
        self.assertIs(ray.cancel(ref), False, "it is over")
        self.assert_worker_goes_on()

    def test_a_task_that_runs_can_clean_up_and_the_worker_goes_on(self):
        ref = spins.remote(str(self.folder))
        self.begun()
        self.assertIs(ray.cancel(ref, grace=DEADLINE_S), True)
        self.assert_cancelled(ref)
        eventually((self.folder / "cleaned").exists, "the task to clean up")
        self.assert_worker_goes_on()

    def test_a_sleep_is_broken_off(self):
        ref = sleeps.remote(str(self.folder))
        self.begun()
        self.assertTrue(ray.cancel(ref, grace=DEADLINE_S))
        self.assert_cancelled(ref)
        self.assert_worker_goes_on()

    def test_a_task_that_waits_for_others_is_told(self):
        for function in (gets, waits):
            with self.subTest(function.__name__):
                ref = function.remote(str(self.folder), [undecided()])
                self.begun()
                self.assertTrue(ray.cancel(ref, grace=DEADLINE_S))
                self.assert_cancelled(ref)
                self.assert_worker_goes_on()
                os.unlink(self.folder / "begun")

    def test_the_one_that_runs_while_another_waits_is_not_hit(self):
        go = self.folder / "go"
        # The worker asks for it while the first one waits.
        waiting = gets.remote(str(self.folder), [undecided()])
        self.begun()
        running = awaits_file.remote(str(go))
        self.assertTrue(ray.cancel(waiting, grace=DEADLINE_S))
        self.assert_cancelled(waiting)
        go.touch()
        ray.get(running, timeout=DEADLINE_S)

    def test_the_one_that_waits_is_not_hit_by_what_is_meant_for_the_one_that_runs(self):
        late = undecided()
        waiting = gets.remote(str(self.folder), [late])
        self.begun()
        os.unlink(self.folder / "begun")
        running = spins.remote(str(self.folder))
        self.begun()
        self.assertTrue(ray.cancel(running, grace=DEADLINE_S))
        self.assert_cancelled(running)
        runtime.process()._store(late.id, layout.pack(7), None, None)
        self.assertEqual(ray.get(waiting, timeout=DEADLINE_S), [7])

    def test_what_depends_on_it_fails(self):
        ref = identity.remote(undecided())
        dependent = identity.remote(ref)
        ray.cancel(ref)
        with self.assertRaises((ray.TaskError, ray.ObjectLostError)):
            ray.get(dependent, timeout=DEADLINE_S)

    def test_a_task_that_is_over_keeps_its_value(self):
        ref = identity.remote(5)
        self.assertEqual(ray.get(ref), 5)
        # Its report may still be on its way.
        eventually(lambda: not ray.task_info()["running_tasks"])
        self.assertIs(ray.cancel(ref), False)
        self.assertEqual(ray.get(ref), 5)

    def test_nothing_of_it_stays(self):
        inside, by_reference = ray.put(1), ray.put(2)
        ids = [inside.id, by_reference.id]

        @ray.remote
        def spins_with(folder, refs, value):
            pathlib.Path(folder, "begun").touch()
            while True:
                pass

        ref = spins_with.remote(str(self.folder), [inside], by_reference)
        ids.append(ref.id)
        self.begun()
        ray.cancel(ref, grace=DEADLINE_S)
        self.assert_cancelled(ref)
        del ref
        await_counts(self, ids, [1, 1, -1])
        del inside, by_reference
        await_counts(self, ids, [-1, -1, -1])

    def test_wrong_arguments_are_refused(self):
        for wrong in (lambda: ray.cancel(5), lambda: ray.cancel([ray.put(1)]), lambda: ray.cancel(ray.put(1), grace="1")):
            with self.assertRaises(TypeError):
                wrong()
        for grace in (-1, float("nan"), float("inf"), ray.api.GRACE_S_MAX + 1):
            with self.assertRaisesRegex(ValueError, "grace is"):
                ray.cancel(ray.put(1), grace=grace)

    @only_fake("the text is the fake's own")
    def test_what_no_task_makes_is_refused(self):
        with self.assertRaisesRegex(ray.RefusedError, "no task makes"):
            ray.cancel(ray.put(1))

    def test_the_error_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(ray.TaskCancelledError("f", "text", ["attempt 1: worker died"])))
        self.assertEqual((error.reason, error.function, error.text), ("CANCELLED", "f", "text"))
        self.assertEqual(error.history, ["attempt 1: worker died"])


class ProcessesThatEnd(CancelTest):
    workers = 0

    def end_with(self, function, grace):
        """Cancels a task of a worker of its own, and answers with how that ended."""
        worker = self.cluster.start_worker()
        self.cluster.await_workers(1)
        ref = function.remote(str(self.folder))
        self.begun()
        eventually(lambda: (self.folder / "begun").read_text() == str(worker.pid), "the task says where it is")
        self.assertIs(ray.cancel(ref, grace=grace), True)
        status = worker.wait(DEADLINE_S)
        self.assert_cancelled(ref)
        os.unlink(self.folder / "begun")
        return status

    def test_a_task_that_does_not_end_takes_its_process_with_it(self):
        self.assertEqual(self.end_with(ignores, 0.2), keeper.CANCELLED_STATUS)
        self.assertEqual(self.end_with(spins, 0), keeper.CANCELLED_STATUS)
        self.assertFalse((self.folder / "cleaned").exists())
        self.cluster.start_worker()
        self.assert_worker_goes_on()


class WithALog(unittest.TestCase):
    def setUp(self):
        self.fake = FakeCluster()
        self.addCleanup(self.fake.close)
        self.addCleanup(ray.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_worker_says_which_task_ended_it(self):
        worker = self.fake.start_worker(stderr=subprocess.PIPE)
        self.fake.await_workers(1, DEADLINE_S)
        ray.init(self.fake.address)
        ref = ignores.remote(str(self.folder))
        eventually((self.folder / "begun").exists)
        ray.cancel(ref, grace=0.1)
        self.assertEqual(worker.wait(DEADLINE_S), keeper.CANCELLED_STATUS)
        said = r"task .*ignores \(operation \d+, attempt 1\) was cancelled and had not ended 0.1 s later"
        self.assertRegex(worker.stderr.read(), said)
        self.assertFalse(self.fake.scheduler.workers[0].alive, "it has said that it leaves")
        self.assertEqual(self.fake.scheduler.violations, [])

    def test_a_run_that_waits_at_the_worker_is_dropped_with_its_references(self):
        self.fake.start_worker()
        self.fake.await_workers(1, DEADLINE_S)
        ray.init(self.fake.address)
        scheduler, go = self.fake.scheduler, str(self.folder / "go")

        @ray.remote
        def holds(begun):
            # What waits behind this task does not go back.
            sys.modules["__main__"]._PATIENCE_S = float("inf")
            open(begun, "w").close()
            while not os.path.exists(go):
                time.sleep(0.01)

        self.assertEqual(ray.get(identity.remote(5)), 5)
        inside = ray.put(1)
        first = holds.remote(str(self.folder / "begun"))
        eventually((self.folder / "begun").exists)
        second = identity.remote([inside])
        self.fake.await_true(lambda: len(scheduler.workers[0].tasks) == 2, DEADLINE_S)
        self.assertTrue(ray.cancel(second))
        open(go, "w").close()
        with self.assertRaises(ray.TaskCancelledError):
            ray.get(second, timeout=DEADLINE_S)
        ray.get(first, timeout=DEADLINE_S)
        self.assertIn("was cancelled", scheduler.failed[-1][2].decode())
        ids = [inside.id, second.id]
        del inside, second
        self.fake.await_true(lambda: [scheduler.objects[i].count() for i in ids] == [-1, -1], DEADLINE_S)
        self.assertEqual(scheduler.violations, [])

    def test_below_its_level_it_is_refused_with_who_holds_the_level_down(self):
        self.fake.level = 9
        self.fake.start_worker()
        self.fake.await_workers(1, DEADLINE_S)
        ray.init(self.fake.address)
        ref = identity.remote(5)
        with self.assertRaises(ray.RefusedError) as caught:
            ray.cancel(ref)
        self.assertRegex(str(caught.exception), "^cancel: .*level 10, and the cluster is at 9: node 2.*`tripod level unpin`")
        self.assertEqual(caught.exception.reason, "level")
        for options in ({"num_cpus": 2}, {"priority": 1}, {"memory": 1, "resources": {"gpu": 1}}):
            with self.assertRaisesRegex(ray.RefusedError, f"^{', '.join(options)}: .*the cluster is at 9"):
                identity.options(**options).remote(1)
        self.fake.is_older = True
        with self.assertRaisesRegex(ray.RefusedError, "^cancel: feature level 10 .* of an earlier build.*`tripod level show`"):
            ray.cancel(ref)
        self.fake.is_older = False
        self.assertEqual(ray.get(ref), 5, "and the process goes on")
        self.fake.level = 10
        self.assertEqual(ray.get(identity.options(priority=1).remote(6)), 6)

    def test_a_call_that_is_refused_for_its_level_takes_no_other_with_it(self):
        self.fake.level = 9
        self.fake.start_worker()
        self.fake.await_workers(1, DEADLINE_S)
        ray.init(self.fake.address)
        self.assertEqual(ray.get(identity.remote(1)), 1)
        process = runtime.process()
        # As if it had been at the level, which nobody is told who does not ask.
        process._knows_tasks = True
        inside = ray.put(7)
        for _ in range(20):
            new, old = identity.options(priority=1).remote([inside]), identity.remote(8)
            self.assertEqual(ray.get(old, timeout=DEADLINE_S), 8)
            with self.assertRaisesRegex(ray.RefusedError, "the cluster is at 9"):
                ray.get(new)
        with self.assertRaisesRegex(ray.RefusedError, "the cluster is at 9"):
            ray.cancel(old)
        objectid = inside.id
        del inside
        found = self.fake.scheduler.objects[objectid]
        self.fake.await_true(lambda: found.count() == -1, DEADLINE_S)
        self.assertEqual(self.fake.scheduler.violations, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
