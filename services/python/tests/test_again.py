"""What becomes of a task that runs again: U27, and stores that are gone."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import unittest

import numpy as np
from cluster import DEADLINE_S, ClusterTest, eventually, only_fake
from machines import MachinesTest

import tripod_ray as ray
from tripod_ray import calls, keeper, layout
from tripod_ray.again import _Wanted
from tripod_ray.local import LocalCluster

# Objects from here on travel through shared memory.
LARGE_BYTES = 1 << 20


class AgainTest(ClusterTest):
    """A driver at store 0, and workers that tests start."""

    stores = 2
    workers = 0

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # The driver's; the others are workers.
        self.known = len(self.fake.scheduler.workers) if self.fake else 0

    def start_worker(self, store, **more):
        return self.fake.start_worker("--objstore-address", self.fake.stores[store].address, **more)

    def await_registered(self, count):
        """The ids of the workers of this test, when there are so many."""
        self.fake.await_true(lambda: len(self.fake.scheduler.workers) >= self.known + count, DEADLINE_S)
        return list(range(self.known, self.known + count))


@only_fake("gives workers up")
class StoresThatAreGone(AgainTest):
    def test_a_function_without_results_whose_store_begins_anew_while_it_gets_an_object_is_run_again(self):
        """It has no result in whose place an error could be written: what it makes of the end of its store
        would be reported as its own fault."""
        process, scheduler, store = ray.runtime.process(), self.fake.scheduler, self.fake.stores[1]
        objectid, _ = process.outbox.ask(calls.Put(None))
        unwritten = ray.ObjectRef(process.outbox, objectid)
        worker = self.start_worker(1)
        (before,) = self.await_registered(1)

        @ray.remote(num_returns=0)
        def gets(refs, folder):
            open(os.path.join(folder, "begun"), "a").close()
            ray.get(refs[0])
            open(os.path.join(folder, "ended"), "a").close()

        gets.remote([unwritten], self.folder)
        eventually(lambda: store.waits_for(objectid), "the task to get the object")
        store.begin_anew()
        self.fake.await_true(lambda: scheduler.failed or len(scheduler.workers) > before + 1, DEADLINE_S)
        self.assertEqual(scheduler.failed, [])
        scheduler.expire(before)
        eventually(lambda: store.waits_for(objectid), "the task to be run again")
        process.store.put(objectid, layout.pack(7), None, lambda _: None)
        eventually(lambda: ray.task_info()["num_succeeded"] == 1, "the task's end")
        worker.kill()
        worker.wait()
        scheduler.expire(before + 1)
        self.assertEqual((sorted(os.listdir(self.folder)), scheduler.failed), (["begun", "ended"], []))


    def test_a_worker_that_is_told_to_end_while_it_loses_its_store_ends(self):
        process, store = ray.runtime.process(), self.fake.stores[1]
        objectid, _ = process.outbox.ask(calls.Put(None))
        unwritten = ray.ObjectRef(process.outbox, objectid)
        worker = self.start_worker(1)
        (before,) = self.await_registered(1)

        @ray.remote(num_returns=0)
        def ends_its_worker(refs):
            try:
                ray.get(refs[0])
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        ends_its_worker.remote([unwritten])
        eventually(lambda: store.waits_for(objectid), "the task to get the object")
        store.begin_anew()
        self.assertEqual(worker.wait(DEADLINE_S), 0)
        self.fake.scheduler.expire(before)


@only_fake("gives workers up")
class PutsThatDiffer(AgainTest):
    def test_a_put_that_differs_in_a_second_attempt_is_told_and_the_first_one_stays(self):
        @ray.remote
        def draws(size, folder):
            import time

            same = ray.put("the same every time")
            drawn = os.urandom(size)
            ref = ray.put(drawn)
            with open(os.path.join(folder, "drawn"), "ab") as written:
                written.write(drawn[:16])
            begun = os.path.join(folder, "begun")
            if not os.path.exists(begun):
                open(begun, "w").close()
                time.sleep(600)
            ray.get(same)
            return ray.get(ref)

        # At another store what was put has to come there first; at the same one it is found when the store
        # was faster than its word to the scheduler.
        for size, place, heard in [(16, 0, True), (LARGE_BYTES, 0, True), (16, 1, False)]:
            with self.subTest(size=size, place=place):
                self.setUp()
                self.fake.scheduler.hears_stores = heard
                self.one_that_differs(draws.remote(size, self.folder), size, place)

    def one_that_differs(self, ref, size, place):
        scheduler = self.fake.scheduler
        first = self.start_worker(1)
        (before,) = self.await_registered(1)
        eventually(lambda: os.path.exists(os.path.join(self.folder, "begun")), "the first attempt")
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = self.start_worker(place, stderr=subprocess.PIPE)
        self.await_registered(2)
        scheduler.expire(before)
        value = ray.get(ref, timeout=DEADLINE_S)
        with open(os.path.join(self.folder, "drawn"), "rb") as written:
            drawn = [written.read(16), written.read(16)]
        self.assertNotEqual(drawn[0], drawn[1])
        self.assertEqual((value[:16], len(value)), (drawn[0], size), "the first one stays")

        told = []

        def read():
            for line in second.stderr:
                if "another value" in line:
                    told.append(line)

        reader = threading.Thread(target=read)
        reader.start()
        eventually(lambda: told, "the warning")
        eventually(lambda: not any(w.tasks for w in scheduler.workers if w.alive), "the task's end")
        second.kill()
        reader.join(DEADLINE_S)
        self.assertRegex(told[0], r"object \d+: attempt 2 of task \d+ \(\S*draws\) puts another value")
        self.assertEqual(len(told), 1, f"of what is the same nothing is told: {told}")
        objectid = int(re.search(r"object (\d+)", told[0])[1])
        self.assertIn(objectid, scheduler.children.values())
        second.wait()
        scheduler.expire(before + 1)


class StoresThatAreKilled(MachinesTest):
    """With real nodes, stores and workers: one machine is the cluster's own, and another one comes."""

    def test_a_function_without_results_whose_store_is_killed_while_it_gets_an_object_is_run_again(self):
        cluster = LocalCluster(workers=1)
        self.addCleanup(cluster.close)
        ray.init(cluster.endpoints, node_ip=cluster.node_ip)
        gate, host = self.path("gate"), keeper._own_address()

        @ray.remote
        def waits(gate):
            import time

            open(f"{gate}-waits", "w").close()
            while not os.path.exists(gate):
                time.sleep(0.02)

        @ray.remote(num_returns=0)
        def gets(refs, gate):
            open(f"{gate}-gets-{os.getpid()}", "w").close()
            ray.get(refs[0])
            open(f"{gate}-got-{os.getpid()}", "w").close()

        slow = waits.remote(gate)
        eventually(lambda: os.path.exists(f"{gate}-waits"), "the worker of the cluster to be busy")
        store, log = self.start_store("first", cluster.endpoints, host)
        self.await_text(log, '"socket"')
        worker, log = self.start_worker("worker", cluster.endpoints, host)
        gets.remote([slow], gate)
        eventually(lambda: os.path.exists(f"{gate}-gets-{worker.pid}"), "the task to get the object")
        store.kill()
        self.await_text(log, "registering again")
        open(gate, "w").close()
        self.await_tasks(2, cluster, "both tasks' ends")
        self.assertEqual(ray.task_info()["failed_tasks"], [])
        self.assertFalse(os.path.exists(f"{gate}-got-{worker.pid}"), "it was run again, elsewhere")

        _, log = self.start_store("second", cluster.endpoints, host)
        self.await_text(log, '"socket"')
        available = lambda: ray.scheduler_info()["available_workers"]
        eventually(lambda: len(available()) == 2, "the worker to be there again")
        self.assertIsNone(worker.poll())


class Wanted(unittest.TestCase):
    def test_values_are_compared_as_they_are_stored(self):
        arrays = [np.arange(100), np.ones(7), "x" * 100]
        for value in (None, 1.5, float("nan"), "text", b"\0" * 100_000, arrays, {"a": arrays}):
            packed = layout.pack(value)
            wanted, data = _Wanted(packed), packed.whole()
            self.assertTrue(wanted.is_like(data, packed.metadata_offset))
            self.assertFalse(wanted.is_like(data, packed.metadata_offset + 8))
            self.assertFalse(wanted.is_like(data + b"\0", packed.metadata_offset))
            if data:
                other = bytearray(data)
                other[0] ^= 1
                self.assertFalse(wanted.is_like(other, packed.metadata_offset))

    def test_what_the_task_does_with_a_value_afterwards_is_of_no_matter(self):
        array = np.zeros(100_000)
        packed = layout.pack(array)
        wanted, data = _Wanted(packed), packed.whole()
        array += 1
        self.assertTrue(wanted.is_like(data, packed.metadata_offset))


if __name__ == "__main__":
    unittest.main()
