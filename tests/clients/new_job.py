"""Create a job of a cluster by its command line and print the job's address on the first node.

    python new_job.py --job-cmd 'tripod --endpoints A,B,C job' --tasks 3 --heartbeat-timeout 10
        --shutdown-timeout 20 --register-timeout 30 [--recoverable]
"""

import argparse
import json
import shlex
import subprocess
import uuid


def create(job_cmd, tasks, heartbeat, shutdown, register, recoverable):
    """A fresh job whose polls are held, as upstream does: its name and its address. Seconds."""
    name = f"conformance-{uuid.uuid4()}"
    command = [*shlex.split(job_cmd), "create", name, "--tasks", str(tasks), "--poll", "hold"]
    command += ["--heartbeat-timeout", str(heartbeat), "--shutdown-timeout", str(shutdown)]
    command += ["--register-timeout", str(register), "-o", "json"]
    if recoverable:
        command.append("--recoverable")
    return name, json.loads(subprocess.check_output(command))["addresses"][0]


def delete(job_cmd, name):
    """Delete a job that `create` made."""
    command = [*shlex.split(job_cmd), "delete", name, "--yes"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main():
    """Print HOST:PORT."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--job-cmd", required=True, help="the job commands of a cluster's command line")
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--heartbeat-timeout", required=True, help="seconds")
    parser.add_argument("--shutdown-timeout", required=True, help="seconds")
    parser.add_argument("--register-timeout", required=True, help="seconds")
    parser.add_argument("--recoverable", action="store_true")
    options = parser.parse_args()
    _, address = create(
        options.job_cmd,
        options.tasks,
        options.heartbeat_timeout,
        options.shutdown_timeout,
        options.register_timeout,
        options.recoverable,
    )
    print(address)


if __name__ == "__main__":
    main()
