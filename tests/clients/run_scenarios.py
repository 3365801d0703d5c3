"""Every conformance scenario with real clients; the outcomes as JSON.

Against jaxlib's own service (how goldens are recorded):

    python run_scenarios.py --out golden/api_VERSION.json

Against a cluster, with a fresh job for every scenario and every client at the first node:

    python run_scenarios.py --out ours.json --job-cmd 'tripod --endpoints A,B,C job'
"""

import argparse
import json
import pathlib
import signal
import socket
import subprocess
import sys
import time

import new_job
from patience import scaled
from process import HERE, Process
from reserved_port import ReservedPort

# Longest time that one scenario may take, in seconds.
_SCENARIO_LIMIT = scaled(180)


def _wait_port(port, timeout=30):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port} after {timeout} s")


class Service:
    """The service of one scenario: a fresh job of a cluster, or a fresh process of jaxlib's own."""

    def __init__(self, run, tasks, heartbeat=30, shutdown=60, register=120, recoverable=False):
        self._child = None
        self._job_cmd = run.options.job_cmd
        if self._job_cmd:
            self._name, self.address = new_job.create(
                self._job_cmd, tasks, heartbeat, shutdown, register, recoverable
            )
            return
        self._port = ReservedPort()
        self.address = self._port.address
        command = [run.options.python, str(HERE / "serve_jaxlib.py"), "--bind", self.address]
        command += ["-n", str(tasks), "--heartbeat-timeout", str(heartbeat)]
        command += ["--shutdown-timeout", str(shutdown), "--register-timeout", str(register)]
        if recoverable:
            command.append("--recoverable")
        with (run.logs / "service.err").open("a") as log:
            self._child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        _wait_port(self._port.number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._job_cmd:
            new_job.delete(self._job_cmd, self._name)
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._port.close()


class Run:
    """One run of the scenarios and what came of it so far."""

    def __init__(self, options):
        self.options = options
        self.logs = pathlib.Path(options.logs)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.results = {}
        ask = "import jaxlib.version as v; print(v.__version__)"
        self.jaxlib = subprocess.check_output([options.python, "-c", ask], text=True).strip()

    def worker(self, name, service, scenario, tasks, task, *extra, life=0):
        """A client that plays `scenario` as `task` of `tasks`."""
        arguments = [scenario, "--address", service.address, "-n", tasks, "--id", task, "--life", life]
        return Process(
            "worker.py",
            *arguments,
            *extra,
            name=f"{name}_{task}_{life}",
            logs=self.logs,
            python=self.options.python,
        )

    def finish(self, name, processes):
        """Wait for the processes of a scenario and write all results so far."""
        outcome = {}
        deadline = time.monotonic() + _SCENARIO_LIMIT
        for key, process in processes.items():
            status = process.wait(max(deadline - time.monotonic(), 0.1))
            outcome[key] = {"exit": status, "steps": process.steps(), "fatal": process.fatal()}
        self.results[name] = outcome
        document = {"jaxlib": self.jaxlib, "results": self.results}
        with open(self.options.out, "w") as out:
            json.dump(document, out, indent=1, sort_keys=True)
            out.write("\n")
        print(name, {key: process["exit"] for key, process in outcome.items()}, flush=True)

    def simple(self, name, scenario, tasks, **service_options):
        """All tasks at once, nobody disturbed."""
        with Service(self, tasks, **service_options) as service:
            workers = {str(i): self.worker(name, service, scenario, tasks, i) for i in range(tasks)}
            self.finish(name, workers)


def kv(run):
    """Every operation on keys."""
    run.simple("kv", "kv", 1)


def kv_blocking(run):
    """Gets that wait."""
    run.simple("kv_blocking", "kv_blocking", 2)


def barriers(run):
    """Barriers and their errors."""
    run.simple("barriers", "barriers", 3)


def shutdown_sync(run):
    """A shutdown that waits."""
    run.simple("shutdown_sync", "shutdown_sync", 2)


def shutdown_straggler(run):
    """A shutdown that somebody misses."""
    run.simple("shutdown_straggler", "shutdown_straggler", 2, shutdown=4)


def live(run):
    """Who is alive, with a task killed."""
    for recoverable in (False, True):
        name = "live_recoverable" if recoverable else "live_not_recoverable"
        with Service(run, 3, heartbeat=5, recoverable=recoverable) as service:
            workers = {
                str(i): run.worker(name, service, "live", 3, i, "--heartbeat-timeout", 5)
                for i in range(3)
            }
            for task, last in (("0", "live_unknown"), ("1", "live_01"), ("2", "live_not_member")):
                workers[task].wait_step(last)
            time.sleep(0.5)  # What follows those steps is one call.
            workers["2"].kill()
            run.finish(name, workers)


def killed(run):
    """A killed task, while the others idle or wait."""
    for scenario in ("idle", "in_barrier", "in_get"):
        name = "killed_peer_" + scenario
        extra = ("--heartbeat-timeout", 5, "--secs", 60)
        with Service(run, 3, heartbeat=5) as service:
            workers = {
                str(i): run.worker(name, service, scenario, 3, i, *extra) for i in range(3)
            }
            for worker in workers.values():
                worker.wait_step("ready")
            time.sleep(1)  # What follows is one call.
            workers["2"].kill()
            run.finish(name, workers)


def restarted(run):
    """A killed task that comes back."""
    for recoverable in (False, True):
        name = "restart_" + ("recoverable" if recoverable else "not_recoverable")
        with Service(run, 2, recoverable=recoverable) as service:
            workers = {str(i): run.worker(name, service, "recover", 2, i) for i in range(2)}
            for worker in workers.values():
                worker.wait_step("ready")
            workers["1"].kill()
            extra = ("--init-timeout", 5)
            workers["1_restarted"] = run.worker(name, service, "recover", 2, 1, *extra, life=1)
            run.finish(name, workers)


def register(run):
    """Registrations that fail or come late or twice."""
    with Service(run, 2, register=4) as service:
        _register_one(run, "register_timeout", service, 2, 0, 4)
    with Service(run, 2) as service:
        _register_one(run, "register_client_timeout_first", service, 2, 0, 2)
    with Service(run, 2) as service:
        _register_one(run, "register_unknown_id", service, 2, 7, 4)
    with Service(run, 2) as service:
        workers = {"0": run.worker("late", service, "connect_only", 2, 0)}
        workers["0"].wait_connecting()
        time.sleep(4)
        workers["1"] = run.worker("late", service, "connect_only", 2, 1)
        run.finish("register_late_joiner", workers)
    with Service(run, 2) as service:
        workers = {"0a": run.worker("dup", service, "connect_only", 2, 0)}
        workers["0a"].wait_connecting()
        time.sleep(1)  # What follows is one call.
        workers["0b"] = run.worker("dup", service, "connect_only", 2, 0, life=1)
        # The second one has come, because the first one ends.
        workers["0a"].wait(_SCENARIO_LIMIT)
        workers["1"] = run.worker("dup", service, "connect_only", 2, 1)
        run.finish("register_duplicate_before_barrier", workers)


def _register_one(run, name, service, tasks, task, init_timeout):
    worker = run.worker(name, service, "connect_only", tasks, task, "--init-timeout", init_timeout)
    run.finish(name, {str(task): worker})


def register_no_server(run):
    """A registration where nobody listens."""
    with ReservedPort() as nobody:
        _register_one(run, "register_no_server", nobody, 1, 0, 4)


def soft(run):
    """A client with a callback for errors."""
    with Service(run, 2, heartbeat=5) as service:
        extra = ("--heartbeat-timeout", 5, "--secs", 60, "--soft")
        workers = {str(i): run.worker("soft", service, "soft_idle", 2, i, *extra) for i in range(2)}
        for worker in workers.values():
            worker.wait_step("ready")
        workers["1"].kill()
        run.finish("soft_callback", workers)


GROUPS = {
    "soft": soft,
    "kv": kv,
    "kv_blocking": kv_blocking,
    "barriers": barriers,
    "shutdown_sync": shutdown_sync,
    "shutdown_straggler": shutdown_straggler,
    "live": live,
    "killed": killed,
    "restarted": restarted,
    "register": register,
    "register_no_server": register_no_server,
}


def main():
    """Run the groups one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", required=True, help="file for the outcomes")
    parser.add_argument("--logs", required=True, help="directory for the clients' output")
    parser.add_argument("--only", help="groups, separated by commas: " + ", ".join(GROUPS))
    parser.add_argument("--job-cmd", help="the job commands of a cluster's command line")
    parser.add_argument("--python", default=sys.executable, help="the clients' interpreter")
    options = parser.parse_args()
    # As an exit, so that every process started here is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    run = Run(options)
    for name in options.only.split(",") if options.only else GROUPS:
        GROUPS[name](run)


main()
