"""Compare outcomes of `run_scenarios.py` with a golden, step by step.

Compared: exit status, order of steps, and in every step success, value, error class, payload keys and
text. `normalise` takes out what is a race with TensorFlow's own service, too. Differences that are meant
are in `ACCEPTED`: each must be exactly the meant one. A scenario that was not played is not compared.

    python compare.py golden/VERSION.json ours.json
"""

import json
import re
import sys

# Which of several devices noticed first that a sum was aborted, and who came first to a barrier.
_ABORTED_BY = re.compile(r"\{\{function_node [^}]*\}\} ")
_FIRST_OF_SEVERAL = re.compile(r"(The first task at the barrier: )\S+?(?=\. Some)")


def normalise(text):
    """The text without what differs from run to run of upstream itself."""
    return _FIRST_OF_SEVERAL.sub(r"\1<one>", _ABORTED_BY.sub("", text))


_MARK = "type.googleapis.com/tensorflow.CoordinationServiceError"
_BARRIER = "type.googleapis.com/tensorflow.BarrierError"
_LOST = (
    "Task /job:worker/replica:0/task:1 heartbeat timeout. This indicates that the remote task has failed, "
    "got preempted, or crashed unexpectedly. Check the task logs for an earlier error or scheduler events "
    "(e.g. preemption, eviction) to debug further."
)
_LATE = {
    "payloads": [_BARRIER, _MARK],
    "text": "Barrier timed out. Id: alone::0. This usually happens because a task triggered the barrier too "
    "early or too slowly. Please look at the task logs (both timed out and first task) to debug further.\n"
    "# of tasks that reached the barrier: 1/2.\nThe first task at the barrier: <one>. Some timed out task "
    "names:\n/job:worker/replica:0/task:1\n",
}


def _failed(barrier):
    return {
        "payloads": [_BARRIER, _MARK],
        "text": f"Barrier failed because: task is set to ERROR: UNAVAILABLE: {_LOST} [{_MARK}='']. "
        f"Barrier Id: {barrier}::0, Task: /job:worker/replica:0/task:1",
    }


# Golden's release -> place -> what must stand there instead. There is one service for all releases, and it
# speaks as that of TensorFlow 2.21; older clients pass its words and payloads on as they are.
ACCEPTED = {
    "2.12.0": {
        "kv/0/set again": {"payloads": [], "text": "key dir/k0 already exists."},
        "barrier/0/barrier alone, 1500 ms": _LATE,
        "barrier/1/barrier late to failed": _LATE,
        "killed/0/barrier with dead": _failed("k2"),
        "killed/0/states": {"value": [None, _LOST]},
        "preempt/0/barrier end": _failed("p2"),
    }
}


class Report:
    """The differences found so far."""

    def __init__(self, accepted):
        self._accepted = accepted
        self.wrong = []
        self.accepted = []

    def compare(self, place, golden, ours):
        """Note a difference at `place`, unless there is none."""
        if golden != ours:
            self.wrong.append((place, golden, ours))

    def compare_step(self, place, golden, ours):
        """As `compare`, for one step."""
        golden, ours = _clean(golden), _clean(ours)
        instead = self._accepted.get(place)
        if instead and ours == {**golden, **instead}:
            self.accepted.append(place)
        else:
            self.compare(place, golden, ours)


def _clean(step):
    if step is None or "text" not in step:
        return step
    return {**step, "text": normalise(step["text"])}


def compare(golden, ours):
    """The report on two documents of `run_scenarios.py`."""
    report = Report(ACCEPTED.get(golden["tensorflow"], {}))
    for scenario, workers in ours["results"].items():
        for task, found in workers.items():
            place = f"{scenario}/{task}"
            wanted = golden["results"][scenario][task]
            report.compare(f"{place}/exit", wanted["exit"], found["exit"])
            order = [step["step"] for step in wanted["steps"]]
            report.compare(f"{place}/order", order, [step["step"] for step in found["steps"]])
            steps = {step["step"]: step for step in found["steps"]}
            for step in wanted["steps"]:
                report.compare_step(f"{place}/{step['step']}", step, steps.get(step["step"]))
    return report


def main():
    """Print every difference; exit 1 if there is one that is not meant, or nothing was compared."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} GOLDEN OURS")
    documents = []
    for path in sys.argv[1:]:
        with open(path) as file:
            documents.append(json.load(file))
    report = compare(*documents)
    for place in report.accepted:
        print(f"accepted: {place}")
    for place, golden, ours in report.wrong:
        print(f"{place}\n  golden {str(golden)[:1000]}\n  ours   {str(ours)[:1000]}")
    played = len(documents[1]["results"])
    print(f"{played} scenarios, {len(report.wrong)} differences, {len(report.accepted)} accepted")
    sys.exit(1 if report.wrong or not played else 0)


if __name__ == "__main__":
    main()
