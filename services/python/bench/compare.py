"""Ours, with drivers and workers in Rust and in Python, beside Ray 2.x and Dask, in one run.

    python compare.py --tripod target/release/tripod --noop target/release/examples/noop_tasks \\
        --ours VENV/bin/python --ray VENV/bin/python --dask VENV/bin/python

Each system runs the same tasks with two workers; in each round each is started anew, warmed up and measured,
in rotating order. Other work disturbs a shared machine, so the evidence is the ratio within each round; the
table has medians. Processor time is of everything: driver, workers, schedulers, stores, all nodes.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import processes

HERE = pathlib.Path(__file__).parent
_RUST, _PYTHON = "tripod, Rust", "tripod, Python"
_COLUMNS = (
    ("tasks/s", "rate", "{:.0f}"),
    ("CPU ms/task", "cpu_ms", "{:.3f}"),
    ("p50 ms", "p50_ms", "{:.2f}"),
    ("p99 ms", "p99_ms", "{:.2f}"),
    ("chain of 200, s", "chain_s", "{:.2f}"),
)


def main():
    options = arguments()
    processes.adopt_orphans()
    systems = [name for name, wanted in measured(options) if wanted]
    figures = {name: [] for name in systems}
    for number in range(options.rounds):
        turn = number % len(systems)
        for name in systems[turn:] + systems[:turn]:
            figure = measure(name, options)
            figures[name].append(figure)
            print(json.dumps({"round": number + 1, "system": name, **figure}), file=sys.stderr, flush=True)
    print(table(figures))


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tripod", required=True, help="the program, of a release build")
    parser.add_argument("--noop", help="the example noop_tasks of tripod-worker; without it no Rust driver")
    parser.add_argument("--ours", default=sys.executable, help="a Python with this package's needs")
    parser.add_argument("--ray", help="a Python with Ray 2.x")
    parser.add_argument("--dask", help="a Python with Dask's distributed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=10_000, help="in one batch (Dask: a third)")
    return parser.parse_args()


def measured(options):
    yield _RUST, options.noop
    yield _PYTHON, options.ours
    yield "ray", options.ray
    yield "dask", options.dask


def measure(name, options):
    try:
        if name == _RUST:
            return rust(options)
        if name == _PYTHON:
            return paced(options.ours, "noop_tripod.py", options.tasks, options)
        if name == "ray":
            return paced(options.ray, "noop_ray.py", options.tasks, options)
        return paced(options.dask, "noop_dask.py", options.tasks // 3, options)
    finally:
        processes.kill_all_but(os.getpid())


def environment(options):
    source = str(HERE.parent / "src")
    return {**os.environ, "TRIPOD_BIN": os.path.abspath(options.tripod), "PYTHONPATH": source}


def paced(python, script, tasks, options):
    """Runs one of the programs beside this one, part by part. Answers with its figures."""
    command = [python, str(HERE / script), "--paced", "--rounds", "1", "--tasks", str(tasks)]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(options)
    )
    before, used = {}, {}
    line = {}
    for text in child.stdout:
        if not text.startswith("{"):
            continue
        line = json.loads(text)
        if "part" in line:
            now = processes.cpu_s(child.pid)
            if line["state"] == "done":
                used[line["part"]] = difference(now, before)
            before = processes.cpu_s(child.pid)
            child.stdin.write("\n")
            child.stdin.flush()
    processes.stop(child)
    if "batch_tasks_per_s" not in line:
        raise RuntimeError(f"{script} ended with {child.returncode} before it was through")
    system = _PYTHON if line["system"] == "tripod" else line["system"]
    times = (line["submit_to_done_p50_ms"], line["submit_to_done_p99_ms"], line["chain_s"])
    return figures_of(line["batch_tasks_per_s"][0], used["batch"], tasks, *times, system)


def rust(options):
    """Runs the driver in Rust at a cluster with two workers in Rust."""
    sys.path.insert(0, str(HERE.parent / "src"))
    os.environ["TRIPOD_BIN"] = os.path.abspath(options.tripod)
    from tripod_ray.local import LocalCluster

    cluster = LocalCluster(workers=0, host="127.0.0.1")
    workers = []
    try:
        command = [options.tripod, "worker", "--exit-with-parent", "--endpoints", cluster.endpoints]
        for _ in range(2):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            workers.append(subprocess.Popen(command, stdin=subprocess.PIPE, **quiet))
        # The workers' windows open with the tasks that they have done.
        noop(options, cluster, 2000, 0)
        before = processes.cpu_s(os.getpid())
        rate = float(re.search(r"tasks: (\d+) a second", noop(options, cluster, options.tasks, 0))[1])
        used = difference(processes.cpu_s(os.getpid()), before)
        times = noop(options, cluster, 1, 500)
        p50_ms, p99_ms = (milliseconds(times, name) for name in ("p50", "p99"))
        return figures_of(rate, used, options.tasks, p50_ms, p99_ms, None, _RUST)
    finally:
        for worker in workers:
            worker.stdin.close()
            processes.stop(worker)
        cluster.close()


def noop(options, cluster, tasks, alone):
    """The example: so many tasks at once, and then so many one after the other. Answers with what it says."""
    command = [options.noop, cluster.endpoints, str(tasks), str(alone)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def milliseconds(text, name):
    number, unit = re.search(name + r" ([\d.]+)(µs|ms|s)", text).groups()
    return float(number) * {"µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def figures_of(rate, used, tasks, p50_ms, p99_ms, chain_s, version):
    return {
        "rate": rate,
        "cpu_ms": sum(used.values()) / tasks * 1e3,
        "cpu_ms_by_process": {name: round(s / tasks * 1e3, 4) for name, s in used.items() if s},
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
        "chain_s": chain_s,
        "version": version,
    }


def difference(now, before):
    return {name: max(0.0, s - before.get(name, 0.0)) for name, s in now.items()}


def table(figures):
    """Medians, and the ratio of our tasks a second to the peer's within each round."""
    names = list(figures)
    lines = ["| system | " + " | ".join(title for title, _, _ in _COLUMNS) + " |"]
    lines.append("|---" * (len(_COLUMNS) + 1) + "|")
    for name in names:
        cells = []
        for _, key, form in _COLUMNS:
            found = [figure[key] for figure in figures[name] if figure.get(key) is not None]
            cells.append(form.format(statistics.median(found)) if found else "")
        lines.append(f"| {figures[name][0]['version']} | " + " | ".join(cells) + " |")
    for ours in (_RUST, _PYTHON):
        for peer in ("ray", "dask"):
            if ours in figures and peer in figures:
                lines.append(f"\n{ours}, beside {peer}: {ratios(figures[ours], figures[peer])}")
    return "\n".join(lines)


def ratios(ours, peer):
    """Medians of what each round's figures of ours are, divided by the peer's of the same round."""
    told = []
    for title, key, _ in _COLUMNS[:3]:
        each = [one[key] / other[key] for one, other in zip(ours, peer)]
        told.append(f"{title} {statistics.median(each):.2f}x")
    return ", ".join(told)


if __name__ == "__main__":
    main()
