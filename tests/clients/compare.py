"""Compare outcomes of `run_scenarios.py` with a golden, step by step.

Compared: exit status, and in every step success, value, exception type, code, text and payload keys;
and the text with which jaxlib ended a process. Not compared: times, and what is random (64-bit ids)
or a race upstream too; `normalise` lists those. Differences that are meant are in `ACCEPTED`: each
is checked to be exactly the meant one.

    python compare.py golden/api_VERSION.json ours.json
"""

import json
import re
import sys

# A task id that depends on who was faster, and sets of names and payloads without an order.
_FIRST_OF_SEVERAL = re.compile(r"(reached the barrier: (?!1/)\d+/\d+\.\nThe first task at the barrier: )\d+")
_TIMED_OUT_NAMES = re.compile(r"(timed out task names:\n)((?:\d+\n)+)")
_PAYLOADS = re.compile(r"(?: \[type\.googleapis\.com/[^\]]*\])+")
# 64-bit ids, and the length byte that protobuf puts before a text that holds one.
_RANDOM_ID = re.compile(r"\d{15,20}")
_ID_LENGTH = re.compile(r"\\n\\x1[9a-e](?=Shutdown::)")
# The map that the client's own gRPC prints in either order.
_GRPC_MAP = re.compile(r'\{grpc_status:(\d+), grpc_message:(".*?")\}', re.DOTALL)
# Where the reason of a fatal log entry ends and the log goes on.
_FATAL_END = re.compile(r"\n=== Source Location Trace|\n+[EWIF]\d{4} ")
# A failed shutdown reaches a task by its own call or by its poll, whichever is first.
_SHUTDOWN_BY_CALL = "INTERNAL: Failed to disconnect from coordination service with status: "
_SHUTDOWN_ROUTE = re.compile(
    r"(RPC: /\S+/)(?:ShutdownTask|PollForError)( \[[^\]]*\])?(?:Proceeding with agent shutdown.*)?$",
    re.DOTALL,
)


def normalise(text):
    """The text without what differs from run to run of upstream itself."""
    text = _FIRST_OF_SEVERAL.sub(r"\1N", text)
    text = _TIMED_OUT_NAMES.sub(lambda found: found[1] + "".join(sorted(found[2].splitlines(True))), text)
    text = _GRPC_MAP.sub(r"{grpc_message:\2, grpc_status:\1}", text)
    text = _ID_LENGTH.sub(r"\\n<length>", text)
    text = _RANDOM_ID.sub("<id>", text)
    return _PAYLOADS.sub(lambda found: " " + " ".join(sorted(found[0].split())), text)


def normalise_fatal(text):
    """The reason in a fatal log entry: from `absl::Status:` to the RPC that brought it."""
    if text is None:
        return None
    begin = text.find("absl::Status: ")
    reason = text if begin < 0 else text[begin + len("absl::Status: ") :]
    end = _FATAL_END.search(reason)
    reason = normalise(reason[: end.start()] if end else reason).strip()
    if "Shutdown barrier has failed" in reason:
        reason = _SHUTDOWN_ROUTE.sub(r"\1<route>\2", reason.removeprefix(_SHUTDOWN_BY_CALL))
    return reason


def normalise_step(step):
    """The step without its duration, its texts normalised."""
    if step is None:
        return None

    def clean(value):
        if isinstance(value, str):
            return normalise(value)
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return value

    return {key: clean(value) for key, value in step.items() if key != "secs"}


def _increments_beyond_int32(_golden, ours):
    """Upstream stores a sum beyond 32 bits and can then never parse it again; we go on counting."""
    return ours == {"step": "inc_after_int32", "ok": True, "value": 2999999998}


# Place -> what makes the difference the meant one. The docstring is the reason.
ACCEPTED = {
    "kv/0/inc_after_int32": _increments_beyond_int32,
}


class Report:
    """The differences found so far."""

    def __init__(self):
        self.wrong = []
        self.accepted = []

    def compare(self, place, golden, ours):
        """Note a difference at `place`, unless there is none."""
        if golden == ours:
            return
        meant = ACCEPTED.get(place)
        if meant is not None and meant(golden, ours):
            self.accepted.append((place, meant.__doc__))
        else:
            self.wrong.append((place, golden, ours))


def compare(golden, ours):
    """The report on two documents of `run_scenarios.py`."""
    report = Report()
    for scenario, processes in golden["results"].items():
        theirs = ours["results"].get(scenario)
        if theirs is None:
            report.compare(scenario, "ran", "missing")
            continue
        for process, wanted in processes.items():
            place = f"{scenario}/{process}"
            found = theirs.get(process)
            if found is None:
                report.compare(place, "ran", "missing")
            else:
                _compare_process(report, place, wanted, found)
    return report


def _compare_process(report, place, wanted, found):
    report.compare(f"{place}/exit", wanted["exit"], found["exit"])
    report.compare(f"{place}/fatal", normalise_fatal(wanted["fatal"]), normalise_fatal(found["fatal"]))
    order = [step["step"] for step in wanted["steps"]]
    report.compare(f"{place}/order", order, [step["step"] for step in found["steps"]])
    ours = {step["step"]: step for step in found["steps"]}
    for step in wanted["steps"]:
        name = step["step"]
        report.compare(f"{place}/{name}", normalise_step(step), normalise_step(ours.get(name)))


def main():
    """Print every difference; exit 1 if there is one that is not meant."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} GOLDEN OURS")
    documents = []
    for path in sys.argv[1:]:
        with open(path) as file:
            documents.append(json.load(file))
    report = compare(*documents)
    for place, reason in report.accepted:
        print(f"accepted: {place}: {reason}")
    for place, golden, ours in report.wrong:
        print(f"{place}\n  golden {str(golden)[:1000]}\n  ours   {str(ours)[:1000]}")
    print(f"{len(report.wrong)} differences, {len(report.accepted)} accepted")
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main()
