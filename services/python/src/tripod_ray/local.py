"""A cluster on this machine that lasts as long as the driver that began it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from . import credentials
from .errors import ClusterError

PROGRAM = "TRIPOD_BIN"
STORE_MIB = 1024
_STOP_S = 30.0
_KEEPER = pathlib.Path(__file__).with_name("keeper.py")


class LocalCluster:
    """Three nodes, an object store and workers, each a process of its own, with their data in a temporary
    directory. `close` ends them; so does the end of this process, whatever it is."""

    def __init__(self, workers, store_mib=STORE_MIB, host=None, of_worker=None):
        """Begins everything, and waits for the nodes and the store. `of_worker` is what each worker has, by the names
        of `needs.offers`. Raises `ClusterError`."""
        command = [sys.executable, str(_KEEPER), "--program", find_program()]
        command += ["--workers", str(workers), "--store-mib", str(store_mib)]
        command += ["--host", host] if host else []
        command += [f"--worker-flag={flag}" for flag in _flags(of_worker or {})]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
        # What the workers of this cluster are told by their command line.
        for name in ("TRIPOD_ENDPOINTS", "TRIPOD_NODE_IP", "TRIPOD_NUM_CPUS", "TRIPOD_MEMORY", "TRIPOD_RESOURCES"):
            environment.pop(name, None)
        # They are for other clusters: this one is in plain text.
        for name in (credentials.TLS_DIR, credentials.TOKEN_FILE):
            environment.pop(name, None)
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        try:
            line = self._keeper.stdout.readline()
            told = json.loads(line) if line else {"error": "the process that keeps the cluster ended"}
            if "error" in told:
                raise ClusterError(f"no cluster could be started on this machine: {told['error']}")
        except BaseException:
            self.close()
            raise
        self.endpoints = told["endpoints"]
        self.node_ip = told["node_ip"]
        # Logs of all processes, until `close`.
        self.folder = told["folder"]
        # Of nodes, store and workers.
        self.pids = told["pids"]

    def close(self):
        """Ends all of it, if it has not ended."""
        if self._keeper.stdin.closed:
            return
        self._keeper.stdin.close()
        try:
            self._keeper.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._keeper.terminate()
            self._keeper.wait()
        self._keeper.stdout.close()

    def leave_to_parent(self):
        """In a process that was forked, which may live longer than the driver: as long as it has the other end of the
        keeper's input too, the driver's end would not be seen."""
        self._keeper.stdin.close()


def find_program():
    """The path of the program `tripod`: what TRIPOD_BIN names, that of the package `tripod`, or the one in PATH. Raises
    `ClusterError`, whose text says what to do."""
    named = os.environ.get(PROGRAM)
    found = shutil.which(named) if named else _of_package() or shutil.which("tripod")
    if found is not None:
        return found
    what = f"{PROGRAM}={named} is no program" if named else "there is no program `tripod` in PATH"
    raise ClusterError(
        f"no cluster was named, and none can be started on this machine: {what}.\n"
        "Install the wheel of `tripod` that has it, or build it in the checkout with\n"
        f"    cargo build --release -p tripod && export {PROGRAM}=$PWD/target/release/tripod\n"
        'or name a cluster that runs: init("HOST:7700,HOST:7700,HOST:7700"), or TRIPOD_ENDPOINTS.'
    )


def _of_package():
    """The program that the package `tripod` has brought along, or None."""
    try:
        from tripod import binary
    except ImportError:
        # It is not installed, or another package has the name.
        return None
    try:
        return binary()
    except Exception:  # Whatever it raises, there may be a program in PATH.
        return None


def _flags(of_worker):
    """What a worker has, as it is told."""
    for name, value in of_worker.items():
        if value is not None:
            if name == "resources" and not isinstance(value, str):
                value = ",".join(f"{resource}={amount}" for resource, amount in value.items())
            yield f"--{name.replace('_', '-')}={value}"


def _import_path():
    """Where this program finds modules. Its workers must find the same ones: functions of modules other than
    the program itself travel by name."""
    return [os.path.abspath(place) for place in sys.path if not place.endswith(".zip")]
