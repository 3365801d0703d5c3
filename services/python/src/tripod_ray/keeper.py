"""The process that keeps a cluster on this machine for one driver: nodes, an object store and workers.

It is the driver's only child, and ends everything that it began when its standard input ends: however the
driver ends, nothing is left behind. It says on standard output, in one line of JSON, where the cluster is, or
why there is none. It is run as a file and needs nothing but Python, so that it is there at once.
"""

import argparse
import contextlib
import json
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# Each of three nodes: for clients, for its peers, for people.
_PORTS = [base + node for base in (0, 100, 200) for node in range(3)]
# Below the ports that systems give out by themselves.
_FIRST_PORT, _LAST_PORT = 12_000, 31_000
_SPAN = 600
_TRIES = 5
# Three nodes on a machine that is busy with other things.
START_S = 60.0
_STOP_S = 10.0
_LOOK_S = 0.02
_REPLACE_S = 1.0
_TAIL_BYTES = 2000
# A worker that dies so often in a row is not begun again: whatever kills it does so at once. One that has run for so
# long has begun well, and what comes later is not in a row.
RESTARTS_MOST = 5
_STEADY_S = 60.0
# The first time in a row its place is taken at once, and then after a pause that doubles.
_PAUSE_FIRST_S, _PAUSE_MOST_S = 1.0, 16.0
# How a worker ends whose task was cancelled and did not end: that is not its own fault.
CANCELLED_STATUS = 86


class StartError(Exception):
    """The cluster did not begin; the text says what the program that failed has said."""


class _Ended(Exception):
    """The cluster is not wanted any more."""


class _Worker:
    """A worker's process, and how often in a row its place was taken anew."""

    def __init__(self, process, restarts=0):
        self.process = process
        self.begun = time.monotonic()
        self.restarts = restarts

    def restarts_in_a_row(self):
        return 0 if time.monotonic() - self.begun >= _STEADY_S else self.restarts


def pause_before(restarts):
    """Seconds before the place of a worker is taken that was taken so often in a row already."""
    return min(_PAUSE_FIRST_S * 2 ** (restarts - 1), _PAUSE_MOST_S) if restarts else 0.0


class Keeper:
    """What was begun, and how it ends."""

    def __init__(self, options, ended):
        """`ended(seconds)` waits at most so long, and answers whether everything is to end."""
        self._options = options
        self._ended = ended
        self._folder = tempfile.mkdtemp(prefix="tripod-ray-")
        self._children = []
        self._dev = None
        self._workers = {}
        # Places of workers that died, by number: when each is taken, and how often in a row that was done then.
        self._pausing = {}
        self._worker = []
        # Workers listen at ports that the scheduler counts: each cluster needs an address of its own.
        self.host = options.host or _own_address()
        self.endpoints = ""

    def start(self):
        """Begins everything. Raises `StartError`."""
        for left in reversed(range(_TRIES)):
            try:
                self._start_nodes(_free_port())
                break
            except StartError:
                # Another program may have taken one of the ports meanwhile.
                if not left:
                    raise
        store = ["objstore", "--exit-with-parent", "--json", "--endpoints", self.endpoints]
        store += ["--listen", f"{self.host}:0", "--directory", os.path.join(self._folder, "objects")]
        store += ["--capacity-mib", str(self._options.store_mib)]
        self._await("objstore", self._begin("objstore", [self._options.program, *store]), '"socket"')
        worker = ["-m", "tripod_ray.worker", "--until-eof", "--address", self.endpoints]
        self._worker = [sys.executable, *worker, "--node-ip", self.host, *self._options.worker_flag]
        self.start_workers()

    def start_workers(self):
        for number in range(self._options.workers):
            self._workers[number] = _Worker(self._begin(f"worker-{number}", self._worker))

    def replace_dead_workers(self):
        """A worker that died is begun again, and whoever reads the driver's standard error is told: what killed it may
        be a task. One that was told to end stays away, and so does one that dies again and again."""
        for number, worker in list(self._workers.items()):
            status = worker.process.poll()
            if status is None:
                continue
            self._children.remove(worker.process)
            with contextlib.suppress(OSError):
                worker.process.stdin.close()
            was_cancelled = status == CANCELLED_STATUS
            restarts = worker.restarts_in_a_row()
            if status == 0:
                del self._workers[number]
                what = "was told to end, and is not begun again"
            elif restarts >= RESTARTS_MOST and not was_cancelled:
                del self._workers[number]
                what = f"{_ended_by(status)}, {restarts + 1} times in a row, and is not begun again; its log: "
                what += self._log(f"worker-{number}")
            elif was_cancelled or not restarts:
                self._replace(number, restarts + (not was_cancelled))
                what = f"{_ended_by(status)}; process {self._workers[number].process.pid} takes its place"
            else:
                del self._workers[number]
                pause_s = pause_before(restarts)
                self._pausing[number] = time.monotonic() + pause_s, restarts + 1
                what = f"{_ended_by(status)}; another one takes its place in {pause_s:g} s"
            left = f"{len(self._workers)} of {self._options.workers} workers run"
            _say(f"worker {number} (process {worker.process.pid}) {what}; {left}")
        for number, (due, restarts) in list(self._pausing.items()):
            if time.monotonic() >= due:
                del self._pausing[number]
                self._replace(number, restarts)

    def _replace(self, number, restarts):
        self._workers[number] = _Worker(self._begin(f"worker-{number}", self._worker), restarts)

    def told(self):
        """What the driver needs to know."""
        with open(self._log("dev"), encoding="utf-8") as log:
            lines = [json.loads(line) for line in log if line.startswith("{")]
        pids = [self._dev.pid, *(child.pid for child in self._children)]
        pids += [line["pid"] for line in lines if "pid" in line]
        return {"endpoints": self.endpoints, "node_ip": self.host, "folder": self._folder, "pids": pids}

    def stop(self):
        """Ends everything, by process id, workers first."""
        for child in self._children:
            # They end with their standard input.
            with contextlib.suppress(OSError):
                child.stdin.close()
        if self._dev is not None:
            self._dev.terminate()
        end = time.monotonic() + _STOP_S
        for child in filter(None, [*self._children, self._dev]):
            try:
                child.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_nodes(self, port):
        dev = ["dev", "--json", "--port", str(port), "--data", os.path.join(self._folder, "nodes")]
        self._dev = self._spawn("dev", [self._options.program, *dev])
        self._await("dev", self._dev, '"ready":true')
        self.endpoints = ",".join(f"127.0.0.1:{port + node}" for node in range(3))

    def _begin(self, name, command):
        child = self._spawn(name, command)
        self._children.append(child)
        return child

    def _spawn(self, name, command):
        with open(self._log(name), "ab") as log:
            try:
                # An interrupt from the keyboard is the driver's: it ends us by our input.
                return subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as error:
                raise StartError(f"cannot start {command[0]}: {error}") from None

    def _await(self, name, child, word):
        end = time.monotonic() + START_S
        while True:
            running = child.poll() is None
            with open(self._log(name), "rb") as log:
                said = log.read()
            if word.encode() in said:
                return
            if not running or time.monotonic() > end:
                what = "did not begin in time" if running else f"ended with status {child.returncode}"
                tail = said[-_TAIL_BYTES:].decode("utf-8", "replace")
                raise StartError(f"`tripod {name}` {what}: {tail}")
            if self._ended(_LOOK_S):
                raise _Ended

    def _log(self, name):
        return os.path.join(self._folder, f"{name}.log")


def _ended_by(status):
    if status == CANCELLED_STATUS:
        return "ended with a task that was cancelled"
    if status > 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _say(text):
    # Nobody may read there, and that is no reason to end the cluster.
    with contextlib.suppress(OSError, ValueError):
        print(f"tripod_ray: {text}", file=sys.stderr, flush=True)


def _own_address():
    """An address of this machine's loopback network that no other cluster is likely to have."""
    return f"127.{random.randint(64, 127)}.{random.randint(0, 255)}.{random.randint(1, 254)}"


def _free_port():
    """The first port of a range whose ports nobody uses now."""
    while True:
        first = random.randrange(_FIRST_PORT, _LAST_PORT - _SPAN)
        if all(_is_free(first + port) for port in _PORTS):
            return first


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _read_to_end():
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--store-mib", type=int, required=True)
    parser.add_argument("--host")
    parser.add_argument("--worker-flag", action="append", default=[])
    # The driver decides when this ends; its input tells, also when the driver was interrupted or killed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = parser.parse_args()
    # Of all that wakes a waiting thread, this alone can be used in the handler of a signal: the thread that is
    # interrupted may hold the lock of the others.
    ends = queue.SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: ends.put(None))
    threading.Thread(target=lambda: (_read_to_end(), ends.put(None)), daemon=True).start()

    def ended(seconds):
        try:
            ends.get(timeout=seconds)
            return True
        except queue.Empty:
            return False

    keeper = Keeper(options, ended)
    try:
        try:
            keeper.start()
        except StartError as error:
            print(json.dumps({"error": str(error)}), flush=True)
            return 1
        print(json.dumps(keeper.told()), flush=True)
        while not ended(_REPLACE_S):
            keeper.replace_dead_workers()
        return 0
    except (_Ended, BrokenPipeError):
        # The driver is gone already, or wants to be.
        return 0
    finally:
        keeper.stop()


if __name__ == "__main__":
    sys.exit(main())
