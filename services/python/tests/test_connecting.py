"""Servers that are slow to greet, as on a machine that is busy with other things or far away."""

import socket
import threading
import unittest
from concurrent import futures

import grpc
from cluster import eventually

from tripod_ray import link
from tripod_ray.errors import UnreachableError
from tripod_ray.link import Link

PATH = "/Test/Ask"
# Longer than any pause between two attempts to connect.
LATE_S = 0.8


class Late:
    """Takes connections, passes on what comes, and answers nothing before its time. With `never` it never does."""

    def __init__(self, port, never=False):
        self._port, self._never, self._open = port, never, []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.taken = 0
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        while True:
            try:
                come, _ = self._listener.accept()
            except OSError:
                return
            self.taken += 1
            self._open.append(come)
            if not self._never:
                threading.Thread(target=self._serve, args=(come,), daemon=True).start()

    def _serve(self, come):
        with come, socket.create_connection(("127.0.0.1", self._port)) as gone:
            threading.Thread(target=pass_on, args=(come, gone), daemon=True).start()
            # Of an instance that nobody sets: a pause.
            threading.Event().wait(LATE_S)
            pass_on(gone, come)

    def close(self):
        self._listener.close()
        for come in self._open:
            come.close()


def pass_on(source, target):
    try:
        while data := source.recv(4096):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


class LateGreetings(unittest.TestCase):
    def setUp(self):
        handler = grpc.unary_unary_rpc_method_handler(lambda data, _: data + b", too")
        service = grpc.method_handlers_generic_handler("Test", {"Ask": handler})
        server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(service,))
        self.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())

    def late(self, **how):
        late = Late(self.port, **how)
        self.addCleanup(late.close)
        return late

    def test_a_store_that_greets_late_is_asked_at_the_first_attempt(self):
        late = self.late()
        self.assertEqual(link.ask(late.address, PATH, b"me", timeout_s=60.0), b"me, too")
        self.assertEqual(late.taken, 1)

    def test_a_node_that_greets_late_is_asked(self):
        late = self.late()
        to = Link(late.address)
        self.addCleanup(to.close)
        self.assertEqual(to.call(PATH, b"me"), b"me, too")

    def test_the_next_node_is_asked_when_one_never_greets(self):
        frozen = self.late(never=True)
        to = Link([frozen.address, f"127.0.0.1:{self.port}"])
        self.addCleanup(to.close)
        self.assertEqual(to.call(PATH, b"me"), b"me, too")
        eventually(lambda: frozen.taken, "it was asked first")

    def test_who_is_not_there_is_told_at_once(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            with self.assertRaisesRegex(UnreachableError, "refused"):
                link.ask(f"127.0.0.1:{nobody.getsockname()[1]}", PATH, b"me", timeout_s=3600.0)


if __name__ == "__main__":
    unittest.main()
