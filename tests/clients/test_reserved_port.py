"""Reserved ports: what the program that started this test holds is not given here.

Argument: the first port of a range that it holds.
"""

import socket
import sys
import unittest

import reserved_port
from reserved_port import ReservedPort


class Reserved(unittest.TestCase):
    held = 0

    def assert_not_given(self, port):
        everywhere = reserved_port._FIRST, reserved_port._END
        reserved_port._FIRST, reserved_port._END = port, port + reserved_port._UNIT
        try:
            self.assertRaises(RuntimeError, ReservedPort)
        finally:
            reserved_port._FIRST, reserved_port._END = everywhere

    def test_a_port_that_another_process_holds_is_not_given(self):
        self.assert_not_given(self.held)

    def test_a_port_of_which_a_connection_just_ended_is_not_given(self):
        with ReservedPort() as used:
            end_a_connection_of(used.number)
        self.assert_not_given(used.number)

    def test_a_port_can_be_bound_while_it_is_held_and_is_given_once(self):
        with ReservedPort() as one, ReservedPort() as other, socket.socket() as server:
            self.assertNotEqual(one.number, other.number)
            server.bind(("127.0.0.1", one.number))
            server.listen()


def end_a_connection_of(port):
    """The server closes first, so the kernel keeps its end for a minute (TIME_WAIT)."""
    with socket.create_server(("127.0.0.1", port)) as server:
        with socket.create_connection(server.getsockname()) as client:
            server.accept()[0].close()
            client.recv(1)


if __name__ == "__main__":
    Reserved.held = int(sys.argv.pop())
    unittest.main()
