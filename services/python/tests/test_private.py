"""Whose sockets are believed."""

import contextlib
import os
import socket
import tempfile
import unittest

from tripod_ray import private
from tripod_ray.errors import StoreError

STRANGER = 12_345


class Private(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.path = os.path.join(place.name, "s")

    def listener(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.path)
        listener.listen()
        return listener

    def connect(self):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            private.connect(connection, self.path)

    def test_what_others_could_replace_is_not_connected_to(self):
        self.listener()
        self.connect()
        os.chmod(self.folder, 0o777)
        self.assertRaisesRegex(StoreError, r"T1402 not-private: .*\(mode 777\)", self.connect)
        os.chmod(self.folder, 0o700)
        os.rename(self.path, self.path + "t")
        os.symlink(self.path + "t", self.path)
        self.assertRaisesRegex(StoreError, "is no socket", self.connect)

    @unittest.skipIf(os.geteuid() != 0, "not root: nothing can be given to another user")
    def test_a_socket_or_a_directory_of_another_user_is_not_believed(self):
        self.listener()
        os.chown(self.path, STRANGER, -1)
        self.assertRaisesRegex(StoreError, f"belongs to user {STRANGER}", self.connect)
        os.chown(self.path, 0, -1)
        os.chown(self.folder, STRANGER, -1)
        self.assertRaisesRegex(StoreError, f"belongs to user {STRANGER}", self.connect)

    @unittest.skipIf(os.geteuid() != 0, "not root: there can be no process of another user")
    def test_a_process_of_another_user_that_listens_is_not_believed(self):
        os.chmod(self.folder, 0o777)
        told, tell = os.pipe()
        end, hold = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(STRANGER)
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(self.path)
                listener.listen()
                os.write(tell, b"!")
                os.close(hold)
                os.read(end, 1)
            finally:
                os._exit(0)
        os.close(tell)
        self.assertEqual(os.read(told, 1), b"!")
        # As if the path had been replaced after it was looked at.
        os.chmod(self.folder, 0o700)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.connect(self.path)
            self.assertRaisesRegex(StoreError, f"user {STRANGER} listens", private.check_listener, connection)
        os.close(hold)
        os.waitpid(child, 0)


if __name__ == "__main__":
    unittest.main()
