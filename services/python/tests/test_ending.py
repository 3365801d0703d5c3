"""Workers that are told to end, in whatever state they are, and those whose input ends."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from cluster import DEADLINE_S, eventually
from fake import FakeCluster
from test_local import state_of

import tripod_ray as ray
from tripod_ray import calls
from tripod_ray.reference import ObjectRef

# For which a cluster is gone that has been silent for half a second.
IMPATIENT = """
import sys
from tripod_ray import worker
worker._GONE_S = 0.5
sys.exit(worker.main())
"""


@ray.remote
def held(begun, go):
    """Says that it has begun, and goes on when it may."""
    open(begun, "w").close()
    open(go).close()
    return 5


class EndingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / "worker.log"
        self.fake = FakeCluster()
        self.addCleanup(self.fake.close)
        self.addCleanup(ray.shutdown)
        # What ignores interrupts starts workers that do, and a shell starts what runs in the background so.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def start_worker(self, *more):
        """A worker that can be given tasks."""
        with open(self.log, "ab") as log:
            worker = self.fake.start_worker("--verbose", *more, stderr=log)
        self.fake.await_workers(1, DEADLINE_S)
        return worker

    def await_log(self, text):
        eventually(lambda: text in self.log.read_text(), f"{text} in the log of the worker")

    def hold(self):
        """A task that has begun, and what lets it go on."""
        begun, go = self.folder / "begun", self.folder / "go"
        os.mkfifo(go)
        ref = held.remote(str(begun), str(go))
        eventually(begun.exists, "the task begins")
        return ref, lambda: open(go, "w").close()


class ToldToEnd(EndingTest):
    def test_a_worker_ends_whose_nodes_are_gone(self):
        # Nobody answers so often: when the worker knows that, and the nodes are gone, it may begin nothing any more.
        self.fake.ttl_ms = 1
        worker = self.start_worker()
        eventually(lambda: self.fake.beats > 1, "a second heartbeat")
        self.fake.stop_nodes()
        worker.terminate()
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_a_worker_ends_that_was_stopped_when_it_was_told(self):
        """As `kill` of a shell's stopped job does. The system gives such a signal to any thread."""
        for _ in range(3):
            worker = self.start_worker()
            worker.send_signal(signal.SIGSTOP)
            eventually(lambda worker=worker: state_of(worker.pid) == "T", "the worker is stopped")
            worker.terminate()
            worker.send_signal(signal.SIGCONT)
            self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_a_task_gets_what_it_waits_for_from_a_worker_that_is_to_end(self):
        worker = self.start_worker()
        ray.init(self.fake.address)
        begun, go = str(self.folder / "begun"), str(self.folder / "go")
        os.mkfifo(go)

        @ray.remote
        def asks():
            ray.get(ray.remote(lambda: 1).remote())
            ray.get(held.remote(begun, go))
            return ray.get(ray.remote(lambda: 7).remote())

        ref = asks.remote()
        eventually(lambda: os.path.exists(begun), "the inner task begins")
        worker.terminate()
        self.await_log("was told to end")
        open(go, "w").close()
        self.assertEqual(ray.get(ref, timeout=DEADLINE_S), 7)
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_a_task_does_not_wait_for_ever_for_a_cluster_that_is_gone(self):
        command = [sys.executable, "-c", IMPATIENT, "--address", self.fake.address]
        worker = subprocess.Popen(command)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        self.fake.await_workers(1, DEADLINE_S)
        ray.init(self.fake.address)
        outbox = ray.runtime.process().outbox
        # One that nobody makes.
        never = ObjectRef(outbox, outbox.ask(calls.Put(None))[0])
        ref = ray.remote(lambda refs: ray.get(refs)).remote([never])
        eventually(lambda: self.fake.stores[0].waits_for(never.id), "the task waits")
        # The store knows that before the scheduler does; the worker has nothing more to say after that.
        eventually(lambda: (0, never.id) in self.fake.scheduler.gets, "the object is asked for")
        self.assertIsNotNone(ref.id)
        self.fake.stop_nodes()
        worker.terminate()
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_a_thread_that_a_task_left_behind_keeps_no_worker(self):
        worker = self.start_worker()
        ray.init(self.fake.address)

        @ray.remote
        def leaves_a_thread():
            import threading

            threading.Thread(target=threading.Event().wait).start()

        ray.get(leaves_a_thread.remote())
        worker.terminate()
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_an_interrupt_ends_a_worker_and_fails_no_task(self):
        worker = self.start_worker()
        ray.init(self.fake.address)
        ref, go_on = self.hold()
        worker.send_signal(signal.SIGINT)
        self.await_log("was told to end")
        go_on()
        self.assertEqual(ray.get(ref, timeout=DEADLINE_S), 5)
        self.assertEqual(worker.wait(DEADLINE_S), 0)
        self.assertEqual(self.fake.scheduler.failed, [])

    def test_a_second_interrupt_ends_a_worker_at_once(self):
        worker = self.start_worker()
        ray.init(self.fake.address)
        self.hold()
        worker.send_signal(signal.SIGINT)
        self.await_log("was told to end")
        # The thread that hears of signals may have been faster than the main one, which takes the handler away.
        eventually(lambda: not catches(worker.pid, signal.SIGINT), "the next one is not caught")
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(DEADLINE_S), -signal.SIGINT)


class InputEnds(EndingTest):
    def start(self, *before, **more):
        command = [sys.executable, "-m", "tripod_ray.worker", "--address", self.fake.address, "--until-eof"]
        worker = subprocess.Popen([*before, *command], **more)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def test_a_worker_without_input_ends(self):
        worker = self.start("sh", "-c", 'exec "$0" "$@" <&-')
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_a_worker_ends_with_an_input_that_does_not_block(self):
        read, written = os.pipe()
        os.set_blocking(read, False)
        with open(written, "wb"):
            worker = self.start(stdin=read)
            os.close(read)
            self.fake.await_workers(1, DEADLINE_S)
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_a_worker_ends_whose_task_has_closed_the_input(self):
        worker = self.start(stdin=subprocess.PIPE)
        self.addCleanup(worker.stdin.close)
        self.fake.await_workers(1, DEADLINE_S)
        ray.init(self.fake.address)

        @ray.remote
        def closes():
            import sys

            sys.stdin.close()

        ray.get(closes.remote())
        worker.stdin.write(b"more")
        worker.stdin.close()
        self.assertEqual(worker.wait(DEADLINE_S), 0)


def catches(pid, number):
    """Whether a process handles a signal, as the kernel tells."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    raise AssertionError(f"process {pid} has no signals")


if __name__ == "__main__":
    unittest.main()
