"""Clusters that have no schedulers yet, since they are at an earlier feature level."""

import pathlib
import re
import subprocess
import threading
import unittest
from unittest import mock

from cluster import DEADLINE_S, eventually
from fake import FakeCluster
from machines import FOUND, MachinesTest

import tripod_ray as ray
from tripod_ray import keeper

TOO_EARLY = "T4401 level-low: ray needs feature level 3, and the cluster is at 2; see `tripod level show`"


class BelowTheLevelOfSchedulers(unittest.TestCase):
    def setUp(self):
        self.fake = FakeCluster()
        self.addCleanup(self.fake.close)
        self.addCleanup(ray.shutdown)
        self.fake.too_early = TOO_EARLY

    def test_a_worker_waits_says_for_what_and_goes_on(self):
        worker = self.fake.start_worker(stderr=subprocess.PIPE)
        line = worker.stderr.readline()
        self.assertRegex(line, "waiting for .*level-low.*`tripod level show`.*`tripod level unpin`")
        self.fake.await_true(lambda: self.fake.refused_early > 3, DEADLINE_S)
        self.assertIsNone(worker.poll())
        self.fake.too_early = None
        self.fake.await_workers(1, DEADLINE_S)
        self.assertEqual(len(self.fake.scheduler.workers), 1)
        worker.kill()
        self.assertEqual(worker.stderr.read(), "", "it is said once")

    def test_a_driver_waits_and_goes_on(self):
        rises = threading.Thread(target=self.raise_level_after, args=(2,))
        rises.start()
        self.addCleanup(rises.join)
        with self.assertLogs("tripod_ray", "WARNING") as logged:
            ray.init(self.fake.address)
        self.assertIn("level-low", logged.output[0])
        self.assertEqual(ray.get(ray.put(1)), 1)
        self.assertEqual(self.fake.scheduler.violations, [])

    def raise_level_after(self, refusals):
        self.fake.await_true(lambda: self.fake.refused_early >= refusals, DEADLINE_S)
        self.fake.too_early = None

    def test_a_driver_that_has_waited_long_enough_is_told_what_it_waited_for(self):
        with mock.patch("tripod_ray.link.PATIENCE_S", 0.1), self.assertRaises(ray.RefusedError) as caught:
            ray.init(self.fake.address)
        self.assertRegex(str(caught.exception), "no schedulers for .*level-low.*`tripod level unpin`")
        self.assertEqual(caught.exception.reason, "level")
        self.assertFalse(ray.is_initialized())


class OfACluster(MachinesTest):
    """With real nodes, which first behave as those of an earlier build do."""

    def start_nodes(self, name, port, *more):
        command = [FOUND, "dev", "--json", "--port", str(port), "--data", self.path("nodes"), *more]
        nodes, log = self.start(name, command)
        self.await_text(log, '"ready":true')
        return nodes

    def test_workers_and_drivers_wait_until_the_nodes_are_upgraded(self):
        host, port = keeper._own_address(), keeper._free_port()
        endpoints = ",".join(f"127.0.0.1:{port + node}" for node in range(3))
        older = self.start_nodes("older", port, "--feature-level-max", "2")
        self.start_store("store", endpoints, host)
        worker, log = self.start_worker("worker", endpoints, host)
        begun = threading.Thread(target=ray.init, args=(endpoints,), kwargs={"node_ip": host})
        # The leader has to ask the others before it knows which of them holds the level down.
        named = r"needs feature level 3, and the cluster is at 2: node \d supports 2 only \(.*; upgrade it\)"
        with self.assertLogs("tripod_ray", "WARNING") as logged:
            begun.start()
            eventually(lambda: re.search(named, log.read_text()), "the worker to say what it waits for")
            eventually(lambda: re.search(named, "".join(logged.output)), "the driver to say it too")
        self.assertTrue(begun.is_alive())
        self.end(older)
        newer = self.start_nodes("newer", port)
        begun.join(DEADLINE_S)
        self.assertEqual(ray.get(ray.remote(lambda: 5).remote(), timeout=DEADLINE_S), 5)
        self.assertIsNone(worker.poll())
        self.end(newer)
        worker.terminate()
        self.assertEqual(worker.wait(DEADLINE_S), 0, "it is not lost, and waits for no nodes that are gone")

    def test_what_needs_a_later_level_is_refused_and_the_rest_goes_on(self):
        host, port = keeper._own_address(), keeper._free_port()
        endpoints = ",".join(f"127.0.0.1:{port + node}" for node in range(3))
        nodes = self.start_nodes("older", port, "--feature-level-max", "9")
        self.start_store("store", endpoints, host)
        worker, log = self.start_worker("worker", endpoints, host)
        self.start_worker("rich", endpoints, host, "--num-cpus", "2")
        ray.init(endpoints, node_ip=host)
        five = ray.remote(lambda: 5)
        ref = five.remote()
        # Nodes that know the call name who holds the level down; others do that themselves.
        named = r"needs feature level 10, and the cluster is at 9: .*node \d supports 9 only"
        for call in (lambda: ray.cancel(ref), lambda: five.options(num_cpus=0.5).remote()):
            with self.assertRaisesRegex(ray.RefusedError, f"{named}|the node that answered is of an earlier build"):
                call()
        self.assertEqual(ray.get([ref, five.remote()], timeout=DEADLINE_S), [5, 5])
        self.await_text(pathlib.Path(self.path("rich.log")), "does not count yet what workers have")
        self.assertNotIn("registering again", log.read_text())
        self.assertIsNone(worker.poll())
        ray.shutdown()
        self.end(nodes)


if __name__ == "__main__":
    unittest.main()
