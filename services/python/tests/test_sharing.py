"""Workers that share: what goes back to the scheduler, and how processes leave."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cluster import DEADLINE_S, ClusterTest, await_counts, eventually, only_fake

import tripod_ray as ray


@ray.remote
def slow(path):
    """Until a file is there. Another one says that it has begun."""
    pathlib.Path(f"{path}-begun").touch()
    end = time.monotonic() + DEADLINE_S
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.005)
    return os.getpid()


@ray.remote
def quick(_):
    return os.getpid()


class Sharing(ClusterTest):
    workers = 2

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.over = pathlib.Path(folder.name, "over")
        # Workers with many short tasks behind them are given many.
        ray.get([quick.remote(place) for place in range(200)])

    def test_short_tasks_do_not_wait_behind_a_long_one(self):
        blocked = slow.remote(str(self.over))
        eventually(pathlib.Path(f"{self.over}-begun").exists, "the long one to run")
        ended_by = ray.get([quick.remote(place) for place in range(100)], timeout=DEADLINE_S)
        self.assertFalse(self.over.exists())
        self.over.touch()
        self.assertNotIn(ray.get(blocked), ended_by[-50:])
        if self.fake is not None:
            self.assertGreater(self.fake.scheduler.given_back, 0)

    def test_tasks_can_wait_for_each_other_deeper_than_there_are_workers(self):
        @ray.remote
        def deep(left):
            return 0 if left == 0 else 1 + ray.get(deep.remote(left - 1))

        self.assertEqual(ray.get(deep.remote(20), timeout=DEADLINE_S), 20)

    def test_a_waiting_task_is_not_kept_from_going_on(self):
        @ray.remote
        def waits(refs):
            return ray.get(refs[0])

        blocked = slow.remote(str(self.over))
        waiting = [waits.remote([blocked]) for _ in range(4)]
        self.assertEqual(len(ray.get([quick.remote(place) for place in range(50)], timeout=DEADLINE_S)), 50)
        self.over.touch()
        self.assertEqual(len(set(ray.get([blocked, *waiting], timeout=DEADLINE_S))), 1)

    def test_a_worker_that_is_told_to_end_does_so_after_its_task(self):
        failed = ray.task_info()["failed_tasks"]
        last = self.cluster.start_worker()
        self.cluster.await_workers(3)
        pids, tasks = set(), []
        while last.pid not in pids:
            tasks = [slow.remote(str(self.over)) for _ in range(3)]
            self.over.touch()
            pids.update(ray.get(tasks, timeout=DEADLINE_S))
            self.over.unlink()
        tasks = [slow.remote(str(self.over)) for _ in range(12)]
        eventually(lambda: len(ray.task_info()["running_tasks"]) >= 3, "tasks on all workers")
        last.send_signal(signal.SIGTERM)
        self.over.touch()
        self.assertEqual(len(ray.get(tasks, timeout=DEADLINE_S)), 12)
        self.assertEqual(last.wait(DEADLINE_S), 0)
        self.assertNotIn(last.pid, ray.get([quick.remote(place) for place in range(50)]))
        self.assertEqual(ray.task_info()["failed_tasks"], failed)


class Leaving(ClusterTest):
    def test_the_references_of_a_driver_end_with_it(self):
        program = (
            "import sys, tripod_ray as ray\n"
            f"ray.init({self.cluster.address!r})\n"
            "kept = [ray.put(b'x' * 100), ray.remote(lambda: 1).remote()]\n"
            "ray.get(kept)\n"
            "print(*(ref.id for ref in kept), flush=True)\n"
            "ray.shutdown()\n"
        )
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        await_counts(self, [int(number) for number in done.stdout.split()], [-1, -1])

    @only_fake("looks into the scheduler")
    def test_the_scheduler_is_told_that_a_driver_ends(self):
        ray.shutdown()
        drivers = [worker for worker in self.fake.scheduler.workers if worker.driver]
        self.assertEqual([worker.alive for worker in drivers], [False] * len(drivers))
        ray.init(self.cluster.address)


if __name__ == "__main__":
    unittest.main()
