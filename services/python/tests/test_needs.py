"""What tasks need of workers, and which of them is the next."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cluster import ClusterTest, DEADLINE_S, eventually, only_fake
from fake import FakeCluster

import tripod_ray as ray
from tripod_ray import keeper, needs, wire
from tripod_ray.local import _flags


@ray.remote
def where():
    return os.getpid()


class Needs(ClusterTest):
    workers = 0

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_task_goes_where_all_is_that_it_needs(self):
        plain = self.cluster.start_worker()
        rich = self.cluster.start_worker("--num-cpus", "2.5", "--memory", "4GiB", "--resources", "gpu=1,licence=0.5")
        self.cluster.await_workers(2)
        for options in (
            {"num_cpus": 2.5},
            {"memory": "4GiB"},
            {"resources": {"gpu": 1}},
            {"num_cpus": 1.001, "memory": 1, "resources": {"licence": 0.5, "gpu": 0.1}},
        ):
            with self.subTest(options):
                got = ray.get([where.options(**options).remote() for _ in range(8)], timeout=DEADLINE_S)
                self.assertEqual(set(got), {rich.pid})
        self.assertLessEqual(set(ray.get([where.remote() for _ in range(8)])), {plain.pid, rich.pid})

    def test_a_task_waits_for_a_worker_that_has_it(self):
        ray.get(self.with_worker())
        ref = where.options(resources={"rare": 0.25}).remote()
        self.assertEqual(ray.wait([ref], timeout=0.5)[0], [])
        worker = self.cluster.start_worker("--resources", "rare=0.25")
        self.assertEqual(ray.get(ref, timeout=DEADLINE_S), worker.pid)

    def with_worker(self):
        """A task that some worker runs, so that its function is known."""
        self.cluster.start_worker()
        return where.remote()

    def test_the_highest_priority_is_the_next(self):
        worker = self.cluster.start_worker("--resources", "only=1", "--slots", "1")
        go, log = str(self.folder / "go"), str(self.folder / "log")

        @ray.remote(resources={"only": 1})
        def notes(text):
            with open(log, "a") as written:
                written.write(text)

        @ray.remote(resources={"only": 1})
        def holds(begun):
            import time

            open(begun, "w").close()
            while not os.path.exists(go):
                time.sleep(0.01)

        ray.get(notes.remote("."), timeout=DEADLINE_S)
        held = holds.remote(str(self.folder / "begun"))
        eventually((self.folder / "begun").exists)
        refs = [notes.options(priority=priority).remote(text) for text, priority in zip("dbeac", (-1, 2, -7, 3, 0))]
        # All of them are queued when they have ids.
        self.assertEqual(len({ref.id for ref in refs}), 5)
        open(go, "w").close()
        ray.get([held, *refs], timeout=DEADLINE_S)
        self.assertEqual(pathlib.Path(log).read_text(), ".abcde")
        self.assertIsNone(worker.poll())


class Options(unittest.TestCase):
    def test_workers_say_what_they_have_in_thousandths(self):
        told = needs.offers("2", "1.5KiB", "gpu=1, licence=0.5")
        self.assertEqual(
            told,
            ((wire.CPUS_MILLI, "2000"), (wire.MEMORY_BYTES, "1536"), (wire.RESOURCES_MILLI, "gpu=1000,licence=500")),
        )
        self.assertEqual(needs.offers(), (), "and nothing that is not said")

    def test_bad_flags_of_workers_are_refused_by_their_name(self):
        for flag, text in [
            ("--num-cpus=0", "num_cpus of a worker is above 0"),
            ("--num-cpus=many", "num_cpus is 'many', and is a number"),
            ("--memory=4GB", "memory is '4GB'; write bytes"),
            ("--resources=gpu", "resources are 'gpu'; write each once"),
            ("--resources=gpu=1,gpu=2", "write each once"),
            ("--resources=gpu=x", r"resources\['gpu'\] is 'x'"),
        ]:
            with self.subTest(flag):
                command = [sys.executable, "-m", "tripod_ray.worker", "--address", "none:1", flag]
                ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S)
                self.assertEqual(ended.returncode, 2)
                self.assertRegex(ended.stderr, text)

    def test_a_cluster_of_a_program_has_workers_that_say_the_same(self):
        flags = list(_flags({"num_cpus": 2, "memory": None, "resources": {"gpu": 1, "licence": 0.5}}))
        self.assertEqual(flags, ["--num-cpus=2", "--resources=gpu=1,licence=0.5"])
        with self.assertRaisesRegex(ValueError, "workers say them themselves"):
            ray.init("127.0.0.1:1", num_cpus=2)
        with mock.patch.dict(os.environ), self.assertRaisesRegex(ValueError, "num_cpus is -1"):
            # Otherwise the program's cluster is the one that is named there.
            os.environ.pop("TRIPOD_ENDPOINTS", None)
            ray.init(num_cpus=-1)

    def test_the_environment_says_it_too(self):
        fake = FakeCluster()
        self.addCleanup(fake.close)
        environment = {"TRIPOD_NUM_CPUS": "0.5", "TRIPOD_MEMORY": "1MiB", "TRIPOD_RESOURCES": "gpu=2"}
        with mock.patch.dict(os.environ, environment):
            fake.start_worker()
            fake.start_worker("--num-cpus", "3")
        fake.await_workers(2, DEADLINE_S)
        told = sorted((w.cpus_milli, w.memory_bytes, w.resources_milli["gpu"]) for w in fake.scheduler.workers)
        self.assertEqual(told, [(500, 1 << 20, 2000), (3000, 1 << 20, 2000)])

    @only_fake("its level is raised by the test")
    def test_a_worker_waits_for_a_cluster_that_counts_what_it_has(self):
        fake = FakeCluster()
        self.addCleanup(fake.close)
        fake.level = 9
        worker = fake.start_worker("--num-cpus=2", stderr=subprocess.PIPE)
        said = "does not count yet what workers have: "
        self.assertRegex(worker.stderr.readline(), said + ".*the cluster is at 9: node 2.*`tripod level unpin`")
        # One that would register the worker, and forget what it has.
        fake.is_older = True
        self.assertRegex(worker.stderr.readline(), said + ".*earlier build.*`tripod level show`")
        self.assertEqual(fake.scheduler.workers, [])
        fake.level, fake.is_older = 10, False
        fake.await_workers(1, DEADLINE_S)
        self.assertEqual([worker.cpus_milli for worker in fake.scheduler.workers], [2000])
        self.assertIsNone(worker.poll())


class Keeper(unittest.TestCase):
    def test_a_worker_that_ended_with_a_cancelled_task_has_not_died_in_a_row(self):
        options = argparse.Namespace(program="none", workers=1, store_mib=1, host="127.0.0.1")
        kept = keeper.Keeper(options, lambda _: True)
        self.addCleanup(kept.stop)
        kept._worker = [sys.executable, "-c", f"import sys; sys.exit({keeper.CANCELLED_STATUS})"]
        kept.start_workers()
        said = []
        with mock.patch.object(keeper, "_say", said.append):
            for _ in range(keeper.RESTARTS_MOST + 2):
                kept._workers[0].process.wait()
                kept.replace_dead_workers()
        self.assertEqual(len(said), keeper.RESTARTS_MOST + 2)
        for line in said:
            self.assertRegex(line, "ended with a task that was cancelled; process .* takes its place; 1 of 1 workers run")


if __name__ == "__main__":
    unittest.main()
