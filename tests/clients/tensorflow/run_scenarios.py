"""Every scenario with two real TensorFlow workers; the outcomes as JSON.

Against TensorFlow's own service inside worker 0 (how goldens are recorded):

    python run_scenarios.py --out golden/VERSION.json --logs DIR

Against a cluster, with a fresh job for every scenario and both workers at one node:

    python run_scenarios.py --out ours.json --logs DIR --job-cmd 'tripod --endpoints A,B,C job' --node 2

The same with an agent beside each worker:

    ... --job-cmd 'tripod --endpoints A,B,C job' --agent-cmd 'tripod agent --cluster A,B,C'
"""

import argparse
import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from importlib.metadata import version

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from patience import scaled
from process import Process
from reserved_port import ReservedPort
from steps import emit

import scenarios
from agent import Agent
from worker import HEARTBEAT_TIMEOUT, REGISTER_TIMEOUT, SHUTDOWN_TIMEOUT

WORKERS = 2
# Longest time that one scenario may take, in seconds.
_SCENARIO_LIMIT = scaled(300)
# Nodes of the cluster, and how long they may take to announce themselves, in seconds.
_NODES = 3
_ANNOUNCE_LIMIT = scaled(30)
# How often a scenario is looked at, in seconds.
_POLL = 0.1
# Where a client's own words about a failed call begin.
_REMARKS = re.compile(r"\nAdditional GRPC error information|\nRPC: ")


class Job:
    """A fresh job of a cluster that knows where its workers listen."""

    def __init__(self, job_cmd, node, ports):
        self._job_cmd = shlex.split(job_cmd)
        self.name = f"tensorflow-{uuid.uuid4()}"
        command = [*self._job_cmd, "create", self.name, "--members", f"worker:{WORKERS}", "--poll", "hold"]
        for number, port in enumerate(ports):
            command += ["--member", f"worker:{number}=127.0.0.1:{port}"]
        command += ["--heartbeat-timeout", str(HEARTBEAT_TIMEOUT)]
        command += ["--register-timeout", str(REGISTER_TIMEOUT)]
        command += ["--shutdown-timeout", str(SHUTDOWN_TIMEOUT), "-o", "json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.address = self._addresses(node)[node - 1]

    def _addresses(self, least):
        """At least so many: each node announces itself, some time after it serves."""
        command = [*self._job_cmd, "show", self.name, "-o", "json"]
        deadline = time.monotonic() + _ANNOUNCE_LIMIT
        while True:
            addresses = json.loads(subprocess.check_output(command))["addresses"]
            if len(addresses) >= max(least, _NODES):
                return addresses
            if time.monotonic() > deadline:
                raise TimeoutError(f"{command} tells {addresses} only")
            time.sleep(_POLL)

    def delete(self):
        """Remove it with everything in it."""
        command = [*self._job_cmd, "delete", self.name, "--yes"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def play(name, options):
    """One scenario: exit status and steps of each worker."""
    ports = [ReservedPort() for _ in range(WORKERS)]
    numbers = [port.number for port in ports]
    job = Job(options.job_cmd, options.node, numbers) if options.job_cmd else None
    agents = []
    if options.agent_cmd:
        logs = [options.logs / f"{name}_{task}.agent" for task in range(WORKERS)]
        agents = [Agent(options.agent_cmd, job.name, log) for log in logs]
    workers = []
    for task in range(WORKERS):
        arguments = [name, "--ports", ",".join(map(str, numbers)), "--task", task]
        if job:
            arguments += ["--coordinator", agents[task].address if agents else job.address]
        process = Process("tensorflow/worker.py", *arguments, name=f"{name}_{task}", logs=options.logs)
        workers.append(process)
    deadline = time.monotonic() + _SCENARIO_LIMIT
    while time.monotonic() < deadline and not all(worker.has_step("connect") for worker in workers):
        time.sleep(_POLL)
    # Whoever watches may disturb the scenario from here on.
    emit(step="under way", scenario=name, agents=[agent.pid for agent in agents])
    outcome = {}
    for task, worker in enumerate(workers):
        status = worker.wait(max(deadline - time.monotonic(), 0.1))
        outcome[str(task)] = {"exit": status, "steps": [_lasting(step) for step in worker.steps()]}
    for agent in agents:
        agent.end()
    if job:
        job.delete()
    for port in ports:
        port.close()
    return outcome


def _lasting(step):
    """The step without what differs from run to run: times, and the client's own remarks on its transport."""
    step = {key: value for key, value in step.items() if key != "secs"}
    if "text" in step:
        step["text"] = _REMARKS.split(step["text"])[0]
    return step


def main():
    """Play and write after every scenario."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--logs", required=True, type=pathlib.Path)
    parser.add_argument("--job-cmd", help="the job commands of a cluster's command line")
    parser.add_argument("--agent-cmd", help="an agent of the cluster, without its job and its place")
    parser.add_argument("--node", type=int, default=1, help="the node that both workers are attached to")
    parser.add_argument("--scenarios", default=",".join(scenarios.ALL), help="names, separated by commas")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    # An orderly end, in which the workers are killed: TensorFlow takes SIGTERM for a notice only.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = {}
    for name in options.scenarios.split(","):
        results[name] = play(name, options)
        document = {"tensorflow": version("tensorflow-cpu"), "results": results}
        options.out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        emit(step="played", scenario=name, exit=[worker["exit"] for worker in results[name].values()])


if __name__ == "__main__":
    main()
