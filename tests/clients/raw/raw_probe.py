"""Plays raw calls against a coordination service and compares what comes back with upstream's own.

    raw_probe.py run --dialect n --address-cmd CMD --out FILE     any service; CMD prints HOST:PORT of a new
                                                                  job: {n} tasks, heartbeat {hb}, shutdown {sd},
                                                                  register {rt} seconds, {recoverable}
    raw_probe.py run --dialect n --jaxlib --out FILE              jaxlib's own service (records goldens)
    raw_probe.py compare GOLDEN OURS [--intended intended.txt]    the file lists steps that differ on purpose

Needs grpcio; `--jaxlib` needs jaxlib too. Exit status: 0 equal, 1 different, 2 usage.
"""
import argparse
import contextlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

# Behind this folder, which has a `steps` of its own.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

from probe import Probe
from reserved_port import ReservedPort
from steps import of_dialect

TASKS = 2
DEFAULTS = {"heartbeat": 60, "shutdown": 20, "register": 30, "recoverable": False}


@contextlib.contextmanager
def jaxlib_job(dialect, job):
    """Hosts jaxlib's service in a child process: it cannot be run twice in one."""
    with ReservedPort() as port:
        child = subprocess.Popen([sys.executable, __file__, "host", dialect, port.address, json.dumps(job)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            child.stdout.readline()
            yield port.address
        finally:
            child.kill()
            child.wait()


def coordination_service(address, job):
    from jaxlib import _jax

    return _jax.get_distributed_runtime_service(
        address, TASKS, heartbeat_timeout=job["heartbeat"], shutdown_timeout=job["shutdown"],
        cluster_register_timeout=job["register"], recoverable=job["recoverable"])


def legacy_service(address, job):
    """Only jaxlib 0.4.13 has it, and is to be had."""
    from jaxlib import xla_extension

    return xla_extension.get_distributed_runtime_service(
        address, TASKS, False, heartbeat_interval=1, max_missing_heartbeats=job["heartbeat"],
        shutdown_timeout=job["shutdown"], enumerate_devices_timeout=job["register"])


def host(dialect, address, job):
    """The child of `jaxlib_job`: serves until it is killed."""
    serve = legacy_service if dialect == "l" else coordination_service
    service = serve(address, job)
    print("serving", flush=True)
    # The parent holds the other end and never writes: this returns when the parent is gone.
    sys.stdin.read()
    service.shutdown()


@contextlib.contextmanager
def commanded_job(command, job):
    recoverable = "--recoverable" if job["recoverable"] else ""
    text = command.format(n=TASKS, hb=job["heartbeat"], sd=job["shutdown"], rt=job["register"],
                          recoverable=recoverable)
    yield subprocess.check_output(shlex.split(text), text=True).strip()


def run(arguments):
    outcome = {}
    for name, scenario, changes in of_dialect(arguments.dialect):
        if arguments.only and name not in arguments.only.split(","):
            continue
        job = DEFAULTS | changes
        ours = None if arguments.jaxlib else commanded_job(arguments.address_cmd, job)
        with ours or jaxlib_job(arguments.dialect, job) as address:
            probe = Probe(address, arguments.dialect)
            try:
                scenario(probe)
            finally:
                outcome[name] = probe.masked()
                probe.close()
    with open(arguments.out, "w") as file:
        json.dump(outcome, file, indent=1)
        file.write("\n")


def normal(value):
    """Takes out what upstream leaves to chance: the order of payloads inside a text and of missing tasks."""
    text = json.dumps(value, sort_keys=True)
    text = re.sub(r"(?: \[type\.googleapis\.com/[^=]*='[^']*'\])+",
                  lambda found: " " + " ".join(sorted(found.group(0).split(" ["))), text)
    text = re.sub(r"(timed out task names:)(\\n\d+)+", r"\1 <tasks>", text)
    # The service incarnation has 18 to 20 digits, and so do lengths that count it.
    text = re.sub(r"\\\\x1[b-f]Shutdown|1[b-f](?=53687574646f776e3a3a)", "Shutdown", text)
    # How much of a long text fits before it is cut depends on that number's length.
    text = re.sub(r"x{100,}( \.\.\. \[truncated\])", r"x\1", text)
    return json.loads(text)


def intended_steps(path):
    """The steps of a list, one `scenario/step` a line; what follows a # is the reason."""
    if path is None:
        return set()
    with open(path) as file:
        return {line.split("#")[0].strip() for line in file} - {""}


def compare(golden_path, ours_path, intended):
    with open(golden_path) as golden, open(ours_path) as ours:
        golden, ours = json.load(golden), json.load(ours)
    different, seen = 0, set()
    for name, steps in golden.items():
        ours_by_step = {step["step"]: step for step in ours.get(name, [])}
        for step in steps:
            other = ours_by_step.get(step["step"])
            if normal(step) == normal(other):
                continue
            seen.add(f"{name}/{step['step']}")
            if f"{name}/{step['step']}" not in intended:
                different += 1
                print(f"{name}/{step['step']}\n  golden {json.dumps(step)[:700]}\n  ours   {json.dumps(other)[:700]}")
    played = {f"{name}/{step['step']}" for name, steps in golden.items() for step in steps}
    for step in sorted((intended & played) - seen):
        different += 1
        print(f"{step}\n  is listed as intended, but does not differ any more")
    print(f"{different} unintended differences in {sum(map(len, golden.values()))} steps")
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run")
    run_parser.add_argument("--dialect", choices=["n", "t", "l"], required=True)
    run_parser.add_argument("--out", required=True)
    run_parser.add_argument("--only")
    source = run_parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--address-cmd")
    source.add_argument("--jaxlib", action="store_true")
    compare_parser = commands.add_parser("compare")
    compare_parser.add_argument("golden")
    compare_parser.add_argument("ours")
    compare_parser.add_argument("--intended")
    host_parser = commands.add_parser("host")
    host_parser.add_argument("dialect")
    host_parser.add_argument("address")
    host_parser.add_argument("job", type=json.loads)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    elif arguments.command == "host":
        host(arguments.dialect, arguments.address, arguments.job)
    else:
        return compare(arguments.golden, arguments.ours, intended_steps(arguments.intended))
    return 0


if __name__ == "__main__":
    sys.exit(main())
