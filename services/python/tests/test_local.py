"""A cluster on this machine for one driver: `init` without an address. It needs the program `tripod`, which
TRIPOD_BIN names or which is in PATH; without it, only that is told."""

import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest
from unittest import mock

from cluster import DEADLINE_S, eventually

import tripod_ray as ray
from tripod_ray import keeper
from tripod_ray.local import LocalCluster

FOUND = shutil.which(os.environ.get("TRIPOD_BIN", "tripod"))
DRIVER = """
import json, sys
import tripod_ray as ray
from tripod_ray import api

@ray.remote
def square(x):
    return x * x

ray.init(num_workers=1)
assert ray.get(square.remote(3)) == 9
print(json.dumps(api._local.pids), flush=True)
sys.stdin.read()
"""
# Of a cluster without processes, and told to end at every line from when it has begun on.
KEEPER = """
import signal, sys
from tripod_ray import keeper

class Keeper:
    def __init__(self, *_):
        pass

    def start(self):
        sys.settrace(at_every_line)
        sys._getframe(1).f_trace = at_every_line

    def told(self):
        return {}

    def stop(self):
        sys.settrace(None)

def at_every_line(frame, event, _):
    if event == "line" and frame.f_code.co_name != "told":
        signal.raise_signal(signal.SIGTERM)
    return at_every_line

keeper.Keeper = Keeper
sys.argv[1:] = ["--program", "none", "--workers", "0", "--store-mib", "1"]
sys.exit(keeper.main())
"""
# Forks a process that outlives it.
FORKING_DRIVER = """
import json, os, signal, sys
import tripod_ray as ray
from tripod_ray import api

ray.init(num_workers=0)
child = os.fork()
if child == 0:
    signal.pause()
print(json.dumps([child, *api._local.pids]), flush=True)
sys.stdin.read()
"""


def alone():
    """The environment without a cluster of others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIPOD_")}
    return {**kept, **({"TRIPOD_BIN": FOUND} if FOUND else {})}


def state_of(pid):
    """A letter, as the kernel tells it; None if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_running(pid):
    return state_of(pid) not in (None, "Z")


def node_of(local, place):
    """The process id of the node with that place among the endpoints."""
    for pid in local.pids:
        if f"--node={place + 1}" in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            return pid
    raise AssertionError(f"node {place + 1} is none of {local.pids}")


class WithoutTheProgram(unittest.TestCase):
    def test_what_to_do_is_told(self):
        with tempfile.TemporaryDirectory() as empty, mock.patch.dict(os.environ, {"PATH": empty}, clear=True):
            with self.assertRaisesRegex(ray.ClusterError, "(?s)in PATH.*cargo build --release.*TRIPOD_BIN"):
                ray.init()
            os.environ["TRIPOD_BIN"] = f"{empty}/tripod"
            with self.assertRaisesRegex(ray.ClusterError, f"TRIPOD_BIN={empty}/tripod is no program"):
                ray.init(num_workers=2)
        self.assertFalse(ray.is_initialized())

    def test_n40_what_init_raises_has_no_frames_of_the_package(self):
        """The number is that of the walk-through of a new operator."""
        with mock.patch.dict(os.environ, {**alone(), "TRIPOD_BIN": "none"}, clear=True):
            try:
                ray.init(num_workers=1)
            except ray.ClusterError as error:
                shown = traceback.format_exception(error)
            else:
                self.fail("there is no program")
        self.assertEqual(sum(line.startswith("  File ") for line in shown), 2, shown)
        self.assertIn(", in init", shown[2])

    def test_a_program_that_fails_is_quoted(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "tripod")
            program.write_text("#!/bin/sh\necho no luck today >&2\nexit 3\n")
            program.chmod(0o755)
            with mock.patch.dict(os.environ, {**alone(), "TRIPOD_BIN": str(program)}, clear=True):
                with self.assertRaisesRegex(ray.ClusterError, "(?s)dev. ended with status 3: no luck today"):
                    ray.init(num_workers=1)
        self.assertFalse(ray.is_initialized())

    def test_a_cluster_that_has_not_begun_ends_with_the_input_of_who_keeps_it(self):
        for tell in (lambda keeper: keeper.stdin.close(), lambda keeper: keeper.terminate()):
            with self.subTest(tell), tempfile.TemporaryDirectory() as folder:
                begun, program = pathlib.Path(folder, "begun"), pathlib.Path(folder, "tripod")
                # Never ready.
                said = f"echo $$ > {begun}.new; mv {begun}.new {begun}"
                program.write_text(f"#!/bin/sh\n{said}\nexec cat\n")
                program.chmod(0o755)
                command = [sys.executable, keeper.__file__, "--program", program]
                keeps = subprocess.Popen([*command, "--workers=0", "--store-mib=1"], stdin=subprocess.PIPE)
                self.addCleanup(keeps.wait)
                self.addCleanup(keeps.stdin.close)
                self.addCleanup(keeps.kill)
                eventually(begun.exists, "the program begins")
                tell(keeps)
                self.assertEqual(keeps.wait(DEADLINE_S), 0)
                self.assertFalse(is_running(int(begun.read_text())))

    def test_a_signal_ends_who_keeps_a_cluster_wherever_it_falls(self):
        keeps = subprocess.Popen(
            [sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        self.addCleanup(keeps.stdin.close)
        self.addCleanup(keeps.wait)
        self.addCleanup(keeps.kill)
        self.assertEqual(keeps.wait(DEADLINE_S), 0)

    def test_workers_are_for_a_cluster_of_its_own(self):
        with self.assertRaisesRegex(ValueError, "num_workers"):
            ray.init("127.0.0.1:1", num_workers=2)


class Workers(unittest.TestCase):
    """Of a cluster without nodes. The numbers are those of the walk-through of a new operator."""

    def setUp(self):
        options = argparse.Namespace(program="none", workers=2, store_mib=1, host="127.0.0.1")
        self.keeper = keeper.Keeper(options, lambda _: True)
        self.addCleanup(self.keeper.stop)

    def begin(self, program):
        self.keeper._worker = [sys.executable, "-c", program]
        self.keeper.start_workers()

    def look(self):
        """What is said of workers that ended, by the time it is said."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.keeper.replace_dead_workers()
        return said.getvalue().splitlines()

    def test_n38_a_worker_that_was_killed_comes_back_and_that_is_said(self):
        self.begin("import sys; sys.stdin.read()")
        killed, other = (self.keeper._workers[number].process for number in (0, 1))
        self.assertEqual(self.look(), [])
        killed.kill()
        killed.wait()
        (said,) = self.look()
        new = self.keeper._workers[0].process
        self.assertIsNone(new.poll())
        self.assertIs(self.keeper._workers[1].process, other)
        self.assertEqual(
            said,
            f"tripod_ray: worker 0 (process {killed.pid}) was killed by SIGKILL; process {new.pid} takes its "
            "place; 2 of 2 workers run",
        )
        self.assertEqual(self.look(), [])

    def test_n38_a_worker_that_dies_again_and_again_is_left_out(self):
        self.begin("import sys; sys.exit(3)")
        said = []
        with mock.patch.object(keeper, "_PAUSE_FIRST_S", 0.0):
            for _ in range(keeper.RESTARTS_MOST + 2):
                for worker in self.keeper._workers.values():
                    worker.process.wait()
                said += self.look()
        self.assertEqual(len(said), 2 * (keeper.RESTARTS_MOST + 1), said)
        self.assertRegex(said[0], "ended with status 3; process [0-9]+ takes its place; 2 of 2 workers run$")
        times = keeper.RESTARTS_MOST + 1
        self.assertRegex(said[-1], f"{times} times in a row, and is not begun again; its log: .*; 0 of 2 workers run$")

    def test_n38_pauses_before_a_worker_is_begun_again_double_up_to_a_bound(self):
        pauses = [keeper.pause_before(restarts) for restarts in range(8)]
        self.assertEqual(pauses, [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0])
        self.begin("import sys; sys.stdin.read()")
        died = self.keeper._workers[0]
        died.restarts = 2
        died.process.kill()
        died.process.wait()
        (said,) = self.look()
        expected = f"process {died.process.pid}) was killed by SIGKILL; another one takes its place in 2 s; 1 of 2 workers run"
        self.assertTrue(said.endswith(expected), said)
        self.assertEqual(self.look(), [], "it is said once")
        self.assertNotIn(0, self.keeper._workers)
        due, restarts = self.keeper._pausing[0]
        self.keeper._pausing[0] = due - 2.0, restarts
        self.assertEqual(self.look(), [])
        self.assertIsNone(self.keeper._workers[0].process.poll())
        self.assertEqual(self.keeper._workers[0].restarts, 3)

    def test_a_worker_that_has_run_for_long_has_not_died_in_a_row(self):
        self.begin("import sys; sys.stdin.read()")
        worker = self.keeper._workers[0]
        worker.restarts = keeper.RESTARTS_MOST
        worker.begun -= keeper._STEADY_S
        worker.process.kill()
        worker.process.wait()
        self.assertIn("takes its place", self.look()[0])
        self.assertEqual(self.keeper._workers[0].restarts, 1)

    def test_a_worker_that_was_told_to_end_stays_away(self):
        self.begin("import sys; sys.stdin.read()")
        worker = self.keeper._workers[1].process
        worker.stdin.close()
        worker.wait()
        (said,) = self.look()
        self.assertTrue(said.endswith("was told to end, and is not begun again; 1 of 2 workers run"), said)


@unittest.skipUnless(FOUND, "TRIPOD_BIN names no program, and PATH has none")
class OfItsOwn(unittest.TestCase):
    def setUp(self):
        patched = mock.patch.dict(os.environ, alone(), clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.addCleanup(ray.shutdown)

    def test_init_starts_one_and_shutdown_ends_it(self):
        ray.init(num_workers=2)
        local = ray.api._local

        @ray.remote
        def where():
            return os.getpid()

        self.assertTrue(set(ray.get([where.remote() for _ in range(20)])) <= set(local.pids))
        self.assertEqual([pid for pid in local.pids if not is_running(pid)], [])
        # Three nodes and who keeps them, a store, two workers.
        self.assertEqual(len(local.pids), 7)
        dies = ray.remote(max_retries=0)(lambda: os.kill(os.getpid(), signal.SIGKILL))
        for _ in range(2):
            with self.assertRaises(ray.ObjectLostError):
                ray.get(dies.remote(), timeout=DEADLINE_S)
        self.assertNotIn(ray.get(where.remote()), local.pids, "others took the places of workers that died")
        ray.shutdown()
        self.assertEqual([pid for pid in local.pids if is_running(pid)], [])
        self.assertFalse(os.path.exists(local.folder))
        ray.init(num_workers=1)
        self.assertEqual(len(ray.get([where.remote()])), 1, "and again")

    def test_a_driver_goes_on_when_the_node_of_its_stream_is_stopped_or_killed(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                ray.init(num_workers=2)
                link = ray.runtime.process().link
                square = ray.remote(lambda x: x * x)
                self.assertEqual(ray.get(square.remote(3)), 9)
                self.assertIsNotNone(link._stream, "batches go over a stream")
                node = node_of(ray.api._local, link._stream_at)
                refs = [square.remote(i) for i in range(500)]
                os.kill(node, number)
                refs += [square.remote(i) for i in range(500, 1000)]
                self.assertEqual(ray.get(refs), [i * i for i in range(1000)])
                eventually(lambda node=node: not is_running(node), "the end of the node")
                self.assertEqual(ray.get(square.remote(4)), 16)
                # A result can be had before its task is reported.
                eventually(lambda: ray.task_info()["num_succeeded"] == 1002, "each task is counted once")
                ray.shutdown()

    def test_nothing_outlives_a_driver_that_was_killed(self):
        pids = self.kill_driver(DRIVER)
        eventually(lambda: not any(map(is_running, pids)), "the end of all processes")

    def test_nothing_else_outlives_a_driver_although_a_process_does_that_it_forked(self):
        child, *pids = self.kill_driver(FORKING_DRIVER)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        eventually(lambda: not any(map(is_running, pids)), "the end of all processes")
        self.assertTrue(is_running(child))

    def kill_driver(self, program):
        """The processes that it tells of, after its own end."""
        driver = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(driver.stdin.close)
        self.addCleanup(driver.stdout.close)
        line = driver.stdout.readline()
        self.assertTrue(line, "the driver has begun")
        pids = json.loads(line)
        self.assertEqual([pid for pid in pids if not is_running(pid)], [])
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        return pids

    def test_a_worker_that_has_lost_its_cluster_can_be_ended(self):
        cluster = LocalCluster(workers=0)
        self.addCleanup(cluster.close)
        command = [sys.executable, "-m", "tripod_ray.worker", "--verbose", "--address", cluster.endpoints]
        worker = subprocess.Popen(
            [*command, "--node-ip", cluster.node_ip],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(worker.stderr.close)
        self.addCleanup(worker.kill)
        self.await_line(worker, "listens on")
        cluster.close()
        self.await_line(worker, "registering again")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(DEADLINE_S), -signal.SIGTERM)

    def await_line(self, process, text):
        for line in process.stderr:
            if text in line:
                return
        self.fail(f"the worker ended before it said: {text}")

    def test_two_clusters_do_not_disturb_each_other(self):
        with_other = LocalCluster(workers=1)
        self.addCleanup(with_other.close)
        ray.init(num_workers=1)
        self.assertNotEqual(ray.runtime.process().link.endpoints, with_other.endpoints.split(","))
        self.assertEqual(ray.get(ray.remote(lambda: 5).remote()), 5)


if __name__ == "__main__":
    unittest.main()
