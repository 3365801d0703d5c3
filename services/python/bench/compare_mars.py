"""Tensors of this project beside Dask's arrays and pymars, in one run: `cargo xtask bench mars`, or

    python compare_mars.py --tripod target/release/tripod --dask VENV/bin/python --pymars VENV/bin/python

with environments that have what `requirements-*.txt` beside this file pin; this interpreter needs that of `tripod`,
unless `--ours` names another one. A peer that is not named is left out, and the table says so. Each system has two
worker processes that compute with one thread each. In each round each is started anew, each part runs once, small, and
is then measured; the order rotates. Other work disturbs a shared machine, so the evidence is the ratio within each
round; the table has medians. Every result is compared with numpy's, and a part with a wrong one has no figure.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading

import mars_parts
import processes

HERE = pathlib.Path(__file__).parent
# One system's parts of one round, small ones included.
_PATIENCE_S = 3600
_ALONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")}
_SUBMIT_S = 2.0
# How many times as fast as that system.
_GOALS = {"dask": 1.0, "pymars": 3.0}
_OURS = "tripod"


def main():
    options = arguments()
    processes.adopt_orphans()
    pythons = {_OURS: options.ours, "dask": options.dask, "pymars": options.pymars}
    systems = [name for name, python in pythons.items() if python]
    for name in pythons:
        if name not in systems:
            print(f"{name} is left out: no --{name} PYTHON", file=sys.stderr)
    load = os.getloadavg()[0]
    rounds = []
    for number in range(options.rounds):
        turn = number % len(systems)
        told = {name: measure(name, pythons[name], options) for name in systems[turn:] + systems[:turn]}
        rounds.append(told)
    text = table(rounds, pythons, options, load)
    print(text)
    if options.write:
        write(pathlib.Path(options.write), text)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tripod", required=True, help="the program, of a release build")
    parser.add_argument("--ours", default=sys.executable, help="a Python with what this package needs")
    parser.add_argument("--dask", help="a Python with Dask's arrays and distributed")
    parser.add_argument("--pymars", help="a Python 3.9 with pymars 0.10.0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="how much of everything, such as 0.01 for a try")
    parser.add_argument("--parts", help="only these, with commas between: product, moments, graphs, subtasks, submit, killed")
    parser.add_argument("--write", metavar="FILE", help="replace this section of the document")
    return parser.parse_args()


def measure(name, python, options):
    """Runs all parts with one system, and answers with its line for each."""
    source = str(HERE.parent / "src")
    environment = {**os.environ, **_ALONE}
    if name == _OURS:
        environment.update(TRIPOD_BIN=os.path.abspath(options.tripod), PYTHONPATH=source)
    command = [python, str(HERE / f"mars_{name}.py"), "--scale", str(options.scale)]
    command += ["--parts", options.parts] if options.parts else []
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment)
    guard = threading.Timer(_PATIENCE_S, child.kill)
    guard.start()
    told = {}
    try:
        for text in child.stdout:
            if text.startswith("{"):
                line = json.loads(text)
                if line["part"] == mars_parts.OVER:
                    break
                told[line["part"]] = line
                print(text, end="", file=sys.stderr, flush=True)
        processes.stop(child)
    finally:
        guard.cancel()
        processes.kill_all_but(os.getpid())
    return told


def table(rounds, pythons, options, load):
    """Medians of seconds, and of the ratios within rounds."""
    peers = [name for name in _GOALS if pythons[name]]
    names = {name: version(rounds, name) for name in (_OURS, *peers)}
    lines = [f"| part | {' | '.join(f'{names[name]}, s' for name in names)} | "]
    lines[0] += " | ".join(f"times as fast as {name} (goal)" for name in peers) + " |"
    lines.append("|---" * (1 + len(names) + len(peers)) + "|")
    for part, title in titles(options.scale).items():
        if any(part in told[_OURS] for told in rounds):
            cells = [median(rounds, name, part) for name in names]
            cells += [judged(rounds, name, part) for name in peers]
            lines.append(f"| {title} | {' | '.join(cells)} |")
    left_out = "".join(f" {name} was left out." for name in _GOALS if not pythons[name])
    head = f"{options.rounds} rounds, 2 workers each, {os.cpu_count()} processors, load average {load:.1f} before the run."
    return "\n".join([head + left_out, "", *lines])


def titles(scale):
    sizes = mars_parts.Sizes(scale)
    return {
        "product": f"`((A + 1) @ A.T).sum(axis=0)`, {sizes.rows:,} x {sizes.rows:,} in 16 chunks",
        "moments": f"mean and variance of {sizes.numbers:,} random numbers in 100 chunks",
        "graphs": f"{sizes.graphs:,} small graphs, one after the other",
        "subtasks": f"{sizes.subtasks:,} subtasks of no work",
        "submit": f"a graph of {sizes.nodes:,} chunks is accepted",
        "killed": f"{sizes.graphs:,} small graphs, and the leader is killed after half of them",
    }


def version(rounds, name):
    lines = [line for told in rounds for line in told.get(name, {}).values()]
    return lines[0]["system"] if lines else name


def figures(rounds, name, part):
    """Of each round, None where there is none."""
    return [told.get(name, {}).get(part, {}).get("s") for told in rounds]


def median(rounds, name, part):
    found = [one for one in figures(rounds, name, part) if one is not None]
    if not found:
        errors = [told.get(name, {}).get(part, {}).get("error") for told in rounds]
        return next((f"failed: {error}" for error in errors if error), "")
    text = f"{statistics.median(found):.3g}"
    if len(found) > 1:
        text += f" ({min(found):.3g}..{max(found):.3g})"
    if part == "submit":
        text += f" (goal: {_SUBMIT_S:g}; {word(statistics.median(found) < _SUBMIT_S)})"
    if part == "killed":
        longest = [told[name][part]["longest_s"] for told in rounds if "longest_s" in told.get(name, {}).get(part, {})]
        text += f" (no graph failed; the longest took {max(longest):.2g})"
    return text


def judged(rounds, peer, part):
    pairs = zip(figures(rounds, _OURS, part), figures(rounds, peer, part))
    ratios = [theirs / ours for ours, theirs in pairs if ours and theirs]
    if not ratios:
        return ""
    ratio, goal = statistics.median(ratios), _GOALS[peer]
    return f"{ratio:.2f}x ({goal:g}: {word(ratio >= goal)})"


def word(is_met):
    return "met" if is_met else "**missed**"


def write(path, text):
    """Replaces what stands between the marks in a document."""
    begin, end = "<!-- begin mars -->", "<!-- end mars -->"
    head, _, rest = path.read_text().partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"{path} has no lines `{begin}` and `{end}`")
    path.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")


if __name__ == "__main__":
    main()
