"""What tests need of a cluster: the fake one, or a real one that TRIPOD_ENDPOINTS names (with an object store
on this machine and no workers). Tests begin their own workers, and refer to objects by the ids of their
handles."""

import gc
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake import FakeCluster

import tripod_ray as ray
from tripod_ray import wire
from tripod_ray.link import Link

ENDPOINTS = os.environ.get("TRIPOD_ENDPOINTS")
# Machines that run tests can be very slow; a test that passes never waits so long.
DEADLINE_S = 120
# Work by which it is measured how busy the machine is.
_MEASURED_S = 0.5


class RealCluster:
    """Workers of a cluster that runs already."""

    def __init__(self):
        self.address = ENDPOINTS
        self._workers = []

    def start_worker(self, *more):
        command = [sys.executable, "-m", "tripod_ray.worker", "--address", self.address, "--until-eof", *more]
        self._workers.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        return self._workers[-1]

    def await_workers(self, count):
        link = Link(self.address)

        def idle():
            data = link.call(wire.SCHEDULER_INFO, b"")
            return len(wire.SchedulerInfoReply.FromString(data).avail_worker) >= count

        eventually(idle, f"{count} workers")
        link.close()

    def close(self):
        for worker in self._workers:
            worker.kill()
            worker.wait()
            worker.stdin.close()


class ClusterTest(unittest.TestCase):
    """A test class with a cluster of its own, `workers` workers and a driver that is connected."""

    workers = 1
    stores = 1

    @classmethod
    def setUpClass(cls):
        cls.fake = None if ENDPOINTS else FakeCluster(stores=cls.stores)
        cls.cluster = cls.fake or RealCluster()
        cls.addClassCleanup(cls.cluster.close)
        for _ in range(cls.workers):
            cls.cluster.start_worker()
        if cls.workers:
            cls.cluster.await_workers(cls.workers)
        ray.init(cls.cluster.address)
        cls.addClassCleanup(ray.shutdown)

    def tearDown(self):
        if self.fake is not None:
            violations = list(self.fake.scheduler.violations)
            self.fake.scheduler.violations.clear()
            self.assertEqual(violations, [])


def only_fake(reason):
    return unittest.skipIf(ENDPOINTS, reason)


def counts(ids):
    """References of objects, as the scheduler counts them; -1: deallocated."""
    info = ray.scheduler_info()
    shown = info["reference_counts"]
    base = info["base_object"]
    return [shown[objectid - base] if objectid >= base else -1 for objectid in ids]


def eventually(condition, what="it"):
    """Waits until a condition holds, which reports on their way may delay. Whoever passes the deadline measures how
    busy the machine is at that moment, and gets as much more."""
    begun, limit_s, measured = time.monotonic(), DEADLINE_S, False
    while not condition():
        if time.monotonic() - begun > limit_s:
            if measured:
                raise AssertionError(f"{what} did not come true in {limit_s:.0f} s")
            measured, limit_s = True, DEADLINE_S * slowdown()
        gc.collect()
        time.sleep(0.01)


def slowdown():
    """How much longer than alone a thread takes now for its work; at least 1."""
    begun, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < _MEASURED_S:
        pass
    return max(1.0, (time.monotonic() - begun) / _MEASURED_S)


def await_counts(test, ids, expected):
    try:
        eventually(lambda: counts(ids) == expected)
    except AssertionError:
        test.assertEqual(counts(ids), expected)
