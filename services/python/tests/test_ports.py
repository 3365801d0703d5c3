"""Workers whose port somebody else has: the scheduler counts ports, and the system gives the same ones to
connections that go out."""

import socket
import subprocess
import unittest

from cluster import DEADLINE_S
from fake import FakeCluster


class TakenPorts(unittest.TestCase):
    def setUp(self):
        self.fake = FakeCluster()
        self.addCleanup(self.fake.close)
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        outgoing = socket.create_connection(listener.getsockname())
        self.addCleanup(outgoing.close)
        self.taken = [socket_.getsockname()[1] for socket_ in (listener, outgoing)]

    def test_a_worker_whose_port_is_taken_registers_again_and_says_why(self):
        addresses, free = [f"127.0.0.1:{port}" for port in self.taken], self.fake.scheduler.port
        left = list(addresses)
        self.fake.scheduler.port = lambda: left.pop(0) if left else free()
        worker = self.fake.start_worker(stderr=subprocess.PIPE)
        self.fake.await_workers(1, DEADLINE_S)
        alive = [known.alive for known in self.fake.scheduler.workers]
        self.assertEqual(alive, [False, False, True], "nobody need wait until the others are missed")
        self.assertIsNone(worker.poll())
        worker.kill()
        said = worker.stderr.read()
        for address in addresses:
            self.assertRegex(said, f"trying again: cannot listen on {address}, .*Address already in use")


if __name__ == "__main__":
    unittest.main()
