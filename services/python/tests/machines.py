"""Real processes that tests begin and end, on addresses of the loopback network of their own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cluster import DEADLINE_S, eventually
from test_local import FOUND, alone

import tripod_ray as ray

# Of each log, when a test has failed.
_TOLD_CHARS = 3000


@unittest.skipUnless(FOUND, "TRIPOD_BIN names no program, and PATH has none")
class MachinesTest(unittest.TestCase):
    def setUp(self):
        patched = mock.patch.dict(os.environ, alone(), clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        # Short: the path of a store's socket has room for some 100 bytes.
        self.folder = tempfile.mkdtemp(prefix="tripod-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(ray.shutdown)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, name, command):
        """A process, and the file that it writes to."""
        log = pathlib.Path(self.path(f"{name}.log"))
        with open(log, "ab") as written:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=written, stderr=written)
        self.addCleanup(self.end, process)
        return process, log

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(DEADLINE_S)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()

    def start_store(self, name, endpoints, host):
        """An object store, which may still have to wait."""
        command = [FOUND, "objstore", "--exit-with-parent", "--json", "--endpoints", endpoints]
        return self.start(name, [*command, "--listen", f"{host}:0", "--directory", self.path(name)])

    def start_worker(self, name, endpoints, host, *more):
        command = [sys.executable, "-m", "tripod_ray.worker", "--until-eof", "--address", endpoints]
        return self.start(name, [*command, "--node-ip", host, *more])

    def await_tasks(self, count, cluster, what):
        """Waits until so many tasks have succeeded. If they do not, everything is told that may say why."""
        try:
            eventually(lambda: ray.task_info()["num_succeeded"] == count, what)
        except AssertionError as error:
            told = [str(error), str(ray.task_info()), str(ray.scheduler_info())]
            for folder in (cluster.folder, self.folder):
                for log in sorted(pathlib.Path(folder).glob("*.log")):
                    told.append(f"{log}:\n{log.read_text(errors='replace')[-_TOLD_CHARS:]}")
            raise AssertionError("\n".join(told)) from None

    @staticmethod
    def await_text(log, text):
        eventually(lambda: text in log.read_text(), f"{text} in {log}")
