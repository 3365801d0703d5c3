"""The shape of the measurement, the same for every system: no-op tasks in a batch, one at a time, and in a
chain.

A system is given as functions: `submit(previous)` submits a no-op task, which depends on `previous` unless
that is None, and answers with its future; `gather(futures)` waits for all of them. Times are wall clock in
this process. With `--paced` each part begins when a line comes in, and ends with a line of output, so that
who measures from outside knows when it runs.
"""

import argparse
import json
import statistics
import sys
import time


def run(system, submit, gather, workers):
    """Measures, and prints one line of JSON. `workers` is what the line says of the cluster."""
    options = arguments()
    gather([submit(None) for _ in range(options.warm_up)])
    line = {"system": system, "workers": workers, "tasks": options.tasks, "batch_tasks_per_s": []}
    for _ in range(options.rounds):
        with part("batch", options):
            line["batch_tasks_per_s"].append(round(batch(submit, gather, options.tasks), 1))
    with part("one by one", options):
        took = sorted(one_by_one(submit, gather, options.calls))
    line["submit_to_done_p50_ms"] = round(statistics.median(took) * 1e3, 3)
    line["submit_to_done_p99_ms"] = round(took[int(len(took) * 0.99)] * 1e3, 3)
    line["chain_length"] = options.chain
    with part("chain", options):
        line["chain_s"] = round(chain(submit, gather, options.chain), 4)
    print(json.dumps(line), flush=True)


class part:
    """A part that is measured from outside."""

    def __init__(self, name, options):
        self._name = name
        self._paced = options.paced

    def __enter__(self):
        self._say("ready")

    def __exit__(self, *_):
        self._say("done")

    def _say(self, state):
        if self._paced:
            print(json.dumps({"part": self._name, "state": state}), flush=True)
            sys.stdin.readline()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--address", help="of a cluster that runs; without it one is started where the system can"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=5000, help="in one batch")
    parser.add_argument("--rounds", type=int, default=3, help="of batches")
    parser.add_argument("--calls", type=int, default=500, help="one at a time")
    parser.add_argument("--chain", type=int, default=200)
    parser.add_argument("--warm-up", type=int, default=500)
    parser.add_argument("--paced", action="store_true", help="wait for a line before and after each part")
    return parser.parse_args()


def batch(submit, gather, tasks):
    """Tasks per second, from the first submission until all are done."""
    begin = time.perf_counter()
    gather([submit(None) for _ in range(tasks)])
    return tasks / (time.perf_counter() - begin)


def one_by_one(submit, gather, calls):
    """Seconds from submission until done, for each."""
    took = []
    for _ in range(calls):
        begin = time.perf_counter()
        gather([submit(None)])
        took.append(time.perf_counter() - begin)
    return took


def chain(submit, gather, length):
    """Seconds until the last of tasks is done of which each takes the result of the one before."""
    begin = time.perf_counter()
    last = None
    for _ in range(length):
        last = submit(last)
    gather([last])
    return time.perf_counter() - begin
