"""Processes that drivers and tasks fork: what they inherit is their parent's."""

import multiprocessing
import os
import signal
import unittest

from cluster import DEADLINE_S, ClusterTest, only_fake

import tripod_ray as ray

FORK = multiprocessing.get_context("fork")


@ray.remote
def end_of_a_child(deadline_s):
    """How a process that this task forks ends when it is told to."""
    import multiprocessing
    import threading

    child = multiprocessing.get_context("fork").Process(target=threading.Event().wait, daemon=True)
    child.start()
    child.terminate()
    child.join(deadline_s)
    try:
        return child.exitcode
    finally:
        child.kill()


@only_fake("forks beside the threads of a real cluster's tests")
class Forked(ClusterTest):
    def of_child(self, function):
        """What a function does in a process that was forked: the status of its end."""
        child = FORK.Process(target=function)
        child.start()
        self.addCleanup(child.kill)
        child.join(DEADLINE_S)
        return child.exitcode

    def test_the_end_of_a_process_that_a_driver_forked_is_not_the_drivers(self):
        self.assertEqual(self.of_child(ray.shutdown), 0)
        self.assertEqual(ray.get(ray.remote(lambda: 5).remote(), timeout=DEADLINE_S), 5)

    def test_a_process_that_a_driver_forked_does_not_wait_for_threads_that_it_has_not(self):
        ref = ray.put(1)

        def gets():
            try:
                ray.get(ref)
            except ray.NotConnectedError:
                os._exit(7)

        self.assertEqual(self.of_child(gets), 7)

    def test_a_process_that_a_task_forked_ends_when_it_is_told(self):
        self.assertEqual(ray.get(end_of_a_child.remote(DEADLINE_S), timeout=DEADLINE_S), -signal.SIGTERM)
        self.assertEqual(ray.get(ray.remote(lambda: 5).remote(), timeout=DEADLINE_S), 5)


if __name__ == "__main__":
    unittest.main()
