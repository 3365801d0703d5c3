"""What is asked of a service, step by step. Each scenario gets a job of its own.

A scenario is a function of a `probe.Probe`. `p.ask` waits for the answer; `p.hold` starts a call that
the service is expected to hold, and `p.end` records how it ended. Incarnations are fixed numbers, so
that texts can be compared.
"""

import steps_l

ONE, TWO, OTHER = 0x1111, 0x2222, 0x3333


def register_both(p):
    first = p.hold("RegisterTask", task=0, incarnation=ONE)
    p.ask("register_1", "RegisterTask", task=1, incarnation=TWO)
    p.end("register_0", first)


def scope(p):
    p.ask("get_before", "TryGetKeyValue", key="k", service=None)
    p.ask("insert_wrong_service", "InsertKeyValue", kv=("k", "v"), service=12345)
    p.ask("beat_wrong_service", "Heartbeat", task=0, incarnation=ONE, service=12345)
    p.ask("poll_wrong_service", "PollForError", task=0, service=12345)
    p.ask("barrier_wrong_service", "Barrier", barrier="b", timeout=1000, task=0, service=12345)
    p.ask("watch_wrong_service", "WatchTasks", version=-1, service=12345)
    p.ask("alive_wrong_service", "GetAliveTasks", task=0, tasks=[0], service=12345)
    p.ask("shutdown_wrong_service", "ShutdownTask", task=0, service=12345)
    p.learn_service()


def unregistered(p):
    p.learn_service()
    p.ask("beat", "Heartbeat", task=0, incarnation=ONE)
    p.ask("beat_unknown", "Heartbeat", task=9, incarnation=ONE)
    p.ask("beat_negative", "Heartbeat", task=-1, incarnation=ONE)
    p.ask("poll", "PollForError", task=0)
    p.ask("poll_unknown", "PollForError", task=9)
    p.ask("register_unknown", "RegisterTask", task=7, incarnation=ONE)
    p.ask("register_negative", "RegisterTask", task=-1, incarnation=ONE)
    p.ask("insert", "InsertKeyValue", kv=("before", "v"))
    p.ask("try_get", "TryGetKeyValue", key="before")
    p.ask("watch_now", "WatchTasks", version=-1)
    p.ask("alive", "GetAliveTasks", task=0, tasks=[0, 1])
    p.ask("alive_outsider", "GetAliveTasks", task=1, tasks=[0])
    p.ask("alive_empty_list", "GetAliveTasks", task=0, tasks=[])
    p.ask("barrier_alone", "Barrier", barrier="alone", timeout=5000, tasks=[0], task=0)
    p.ask("cancel_unknown", "CancelBarrier", barrier="never", task=0)
    p.ask("barrier_after_cancel", "Barrier", barrier="never", timeout=1000, task=0)
    p.ask("cancel_again", "CancelBarrier", barrier="never", task=0)
    p.ask("barrier_next_after_cancel", "Barrier", barrier="never", timeout=1000, tasks=[0], task=0, counter=1)
    p.ask("cancel_unknown_counter", "CancelBarrier", barrier="never2", counter=5, task=0)
    p.ask("barrier_unknown_counter", "Barrier", barrier="skip", timeout=1000, task=0, counter=3)
    p.ask("barrier_after_unknown_counter", "Barrier", barrier="skip", timeout=1000, tasks=[0], task=0)
    p.ask("report", "ReportErrorToService", task=0, code=5, text="boom")
    p.ask("report_unknown", "ReportErrorToService", task=9, code=5, text="boom")


def keys(p):
    p.learn_service()
    p.ask("insert", "InsertKeyValue", kv=("//a///b/", "1"))
    p.ask("insert_again", "InsertKeyValue", kv=("a/b", "1"))
    p.ask("insert_over", "InsertKeyValue", kv=("a/b", "2"), overwrite=True)
    p.ask("get_echo", "GetKeyValue", key="/a//b")
    p.ask("try_get_echo", "TryGetKeyValue", key="a/b/")
    p.ask("try_get_missing", "TryGetKeyValue", key="//missing//x/")
    p.ask("insert_empty_key", "InsertKeyValue", kv=("", "e"))
    p.ask("insert_slash_key", "InsertKeyValue", kv=("///", "f"))
    p.ask("try_get_empty_key", "TryGetKeyValue", key="/")
    p.ask("insert_empty_value", "InsertKeyValue", kv=("empty", ""))
    p.ask("try_get_empty_value", "TryGetKeyValue", key="empty")
    p.ask("insert_nul_key", "InsertKeyValue", kv=("nul\0rest", "n"))
    p.ask("try_get_nul_key", "TryGetKeyValue", key="nul")
    p.ask("insert_no_kv", "InsertKeyValue", kv=None)
    p.ask("insert_binary", "InsertKeyValue", kv=("bin", b"\x00\xff\xfe"))
    p.ask("try_get_binary", "TryGetKeyValue", key="bin")
    p.ask("increment_new", "IncrementKeyValue", key="n//c", by=5)
    p.ask("increment_down", "IncrementKeyValue", key="/n/c", by=-7)
    p.ask("increment_zero", "IncrementKeyValue", key="n/c", by=0)
    p.ask("increment_text", "IncrementKeyValue", key="a/b/", by=40)
    p.ask("insert_words", "InsertKeyValue", kv=("words", "x\"y"))
    p.ask("increment_words", "IncrementKeyValue", key="words", by=1)
    p.ask("increment_empty", "IncrementKeyValue", key="empty", by=1)
    p.ask("increment_wide", "IncrementKeyValue", key="wide", by=2999999997)
    p.ask("increment_wide_again", "IncrementKeyValue", key="wide", by=1)
    p.ask("dir", "GetKeyValueDir", key="//a/")
    p.ask("insert_leaf", "InsertKeyValue", kv=("d/x", "1"))
    p.ask("insert_leaf_2", "InsertKeyValue", kv=("d/x/y", "2"))
    p.ask("insert_sibling", "InsertKeyValue", kv=("dx", "3"))
    p.ask("dir_nested", "GetKeyValueDir", key="d")
    p.ask("dir_leaf", "GetKeyValueDir", key="dx")
    p.ask("dir_empty", "GetKeyValueDir", key="")
    p.ask("delete", "DeleteKeyValue", key="d/x", directory=False)
    p.ask("dir_after_delete", "GetKeyValueDir", key="d")
    p.ask("delete_missing", "DeleteKeyValue", key="nothing", directory=True)
    held = p.hold("GetKeyValue", key="later//k")
    p.ask("insert_waited", "InsertKeyValue", kv=("later/k", "now"))
    p.end("get_waited", held)
    p.ask("insert_long", "InsertKeyValue", kv=("k" * 4000, "v"))
    p.ask("insert_long_again", "InsertKeyValue", kv=("k" * 4000, "v"))


def registered(p):
    register_both(p)
    p.ask("register_again", "RegisterTask", task=0, incarnation=ONE)
    p.ask("beat", "Heartbeat", task=0, incarnation=ONE)
    p.ask("watch_now", "WatchTasks", version=-1)
    p.ask("watch_old", "WatchTasks", version=0)
    first = p.hold("PollForError", task=0)
    second = p.hold("PollForError", task=0)
    p.end("poll_replaced", first)
    alive = p.hold("GetAliveTasks", task=0, tasks=[0, 1, 1, 9])
    p.ask("alive_1", "GetAliveTasks", task=1, tasks=[9, 1, 0])
    p.end("alive_0", alive)
    p.ask("alive_single", "GetAliveTasks", task=1, tasks=[1])
    if not p.has("ReportErrorToService"):
        return
    watch = p.hold("WatchTasks", version=p.version())
    p.ask("report_timeout_code", "ReportErrorToService", task=1, code=14, text="gone")
    p.end("watch_held", watch)
    p.end("poll_told", second)


def barriers(p):
    register_both(p)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=0)
    again = p.hold("Barrier", barrier="b", timeout=20000, task=0)
    p.end("replaced", held)
    p.ask("pass_1", "Barrier", barrier="b", timeout=20000, task=1)
    p.end("pass_0", again)
    p.ask("repeat", "Barrier", barrier="b", timeout=20000, task=0)
    p.ask("cancel_passed", "CancelBarrier", barrier="b", task=0)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=0, counter=1)
    p.ask("cancel_wrong_counter", "CancelBarrier", barrier="b", counter=0, task=1)
    p.ask("old_counter", "Barrier", barrier="b", timeout=20000, task=1, counter=0)
    p.end("failed_by_old_counter", held)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=0, counter=2)
    p.ask("cancel", "CancelBarrier", barrier="b", counter=2, task=1)
    p.end("cancelled", held)
    p.ask("cancel_cancelled", "CancelBarrier", barrier="b", counter=2, task=1)
    p.ask("after_cancel", "Barrier", barrier="b", timeout=20000, task=1, counter=2)
    p.ask("skip_ahead", "Barrier", barrier="b", timeout=20000, task=1, counter=7)
    p.ask("skip_ahead_again", "Barrier", barrier="b", timeout=20000, task=1, counter=7)
    p.ask("duplicates", "Barrier", barrier="dup", timeout=20000, tasks=[0, 0, 1], task=0)
    p.ask("duplicates_stored", "Barrier", barrier="dup", timeout=20000, tasks=[0, 1], task=1)
    p.ask("unknown_member", "Barrier", barrier="unk", timeout=20000, tasks=[0, 99], task=0)
    p.ask("unknown_member_repeat", "Barrier", barrier="unk", timeout=20000, tasks=[0, 99], task=0)
    p.ask("outsider", "Barrier", barrier="out", timeout=20000, tasks=[0], task=1)
    p.ask("outsider_stored", "Barrier", barrier="out", timeout=20000, tasks=[0], task=0)
    held = p.hold("Barrier", barrier="conf", timeout=20000, task=0)
    p.ask("conflicting", "Barrier", barrier="conf", timeout=20000, tasks=[1], task=1)
    p.end("conflicting_first", held)
    p.ask("subset", "Barrier", barrier="sub", timeout=20000, tasks=[0], task=0)
    p.ask("subset_no_list", "Barrier", barrier="sub", timeout=20000, task=0, counter=1)
    p.ask("subset_no_list_old", "Barrier", barrier="sub", timeout=20000, task=0, counter=1)
    # A caller that the job does not have, with an empty list, crashes jaxlib's service: not asked here.
    p.ask("timeout_zero", "Barrier", barrier="zero", timeout=0, task=0)
    p.ask("timeout_negative", "Barrier", barrier="neg", timeout=-5, task=0)
    p.ask("timed_out_late", "Barrier", barrier="neg", timeout=20000, task=1)
    p.ask("timed_out_next", "Barrier", barrier="neg", timeout=0, task=1, counter=1)
    p.ask("empty_id", "Barrier", barrier="", timeout=20000, tasks=[0], task=0)


def reported(code, text):
    def scenario(p):
        register_both(p)
        polls = [p.hold("PollForError", task=task) for task in (0, 1)]
        held = p.hold("Barrier", barrier="b", timeout=20000, task=1)
        p.ask("report", "ReportErrorToService", task=0, code=code, text=text)
        for task in (0, 1):
            p.end(f"poll_{task}", polls[task])
        p.end("barrier_held", held)
        p.ask("report_again", "ReportErrorToService", task=0, code=code, text=text)
        p.ask("poll_late_1", "PollForError", task=1)
        p.ask("poll_late_0", "PollForError", task=0)
        p.ask("beat_0", "Heartbeat", task=0, incarnation=ONE)
        p.ask("beat_1", "Heartbeat", task=1, incarnation=TWO)
        p.ask("barrier_new", "Barrier", barrier="c", timeout=20000, task=1)
        p.ask("watch", "WatchTasks", version=-1)
        p.ask("alive", "GetAliveTasks", task=1, tasks=[0, 1])
        p.ask("keys", "InsertKeyValue", kv=("still", "works"))
        p.ask("register_0_other", "RegisterTask", task=0, incarnation=OTHER)
        p.ask("register_0_again", "RegisterTask", task=0, incarnation=OTHER)
        p.ask("shutdown_1", "ShutdownTask", task=1)
        p.ask("beat_1_after", "Heartbeat", task=1, incarnation=TWO)
    return scenario


def unheard(p):
    register_both(p)
    p.ask("report", "ReportErrorToService", task=0, code=5, text="nobody listens")
    p.ask("beat_0", "Heartbeat", task=0, incarnation=ONE)
    p.ask("beat_1", "Heartbeat", task=1, incarnation=TWO)
    p.ask("watch", "WatchTasks", version=-1)


def restarted(p):
    register_both(p)
    poll = p.hold("PollForError", task=1)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=1)
    p.ask("register_other", "RegisterTask", task=0, incarnation=OTHER)
    p.end("poll_1", poll)
    p.end("barrier_1", held)
    p.ask("register_other_again", "RegisterTask", task=0, incarnation=OTHER)
    p.ask("beat_0", "Heartbeat", task=0, incarnation=OTHER)
    p.ask("watch", "WatchTasks", version=-1)


def other_life(p):
    register_both(p)
    poll = p.hold("PollForError", task=1)
    p.ask("beat_other", "Heartbeat", task=0, incarnation=OTHER)
    p.end("poll_1", poll)
    p.ask("beat_other_again", "Heartbeat", task=0, incarnation=OTHER)
    p.ask("beat_right", "Heartbeat", task=0, incarnation=ONE)


def shutdown(p):
    register_both(p)
    poll = p.hold("PollForError", task=1)
    first = p.hold("ShutdownTask", task=0)
    again = p.hold("ShutdownTask", task=0)
    p.end("shutdown_replaced", first)
    p.ask("shutdown_1", "ShutdownTask", task=1)
    p.end("shutdown_0", again)
    p.end("poll_1", poll)
    p.ask("shutdown_repeated", "ShutdownTask", task=1)
    p.ask("beat_in_grace", "Heartbeat", task=1, incarnation=TWO)
    p.ask("watch", "WatchTasks", version=-1)
    p.ask("report", "ReportErrorToService", task=1, code=5, text="late")
    p.ask("register_0_new", "RegisterTask", task=0, incarnation=OTHER)


def shutdown_straggler(p):
    register_both(p)
    poll = p.hold("PollForError", task=1)
    p.ask("shutdown_0", "ShutdownTask", task=0)
    p.end("poll_1", poll)
    p.ask("beat_1", "Heartbeat", task=1, incarnation=TWO)
    p.ask("shutdown_1", "ShutdownTask", task=1)
    p.ask("register_1", "RegisterTask", task=1, incarnation=TWO)


def shutdown_alone(p):
    register_both(p)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=1)
    p.ask("shutdown_0", "ShutdownTask", task=0)
    p.end("barrier_1", held)
    p.ask("shutdown_0_again", "ShutdownTask", task=0)
    p.ask("shutdown_unknown", "ShutdownTask", task=9)
    p.ask("beat_in_grace", "Heartbeat", task=0, incarnation=ONE)
    p.ask("register_0_other", "RegisterTask", task=0, incarnation=OTHER)


def replaced_registration(p):
    first = p.hold("RegisterTask", task=0, incarnation=ONE)
    second = p.hold("RegisterTask", task=0, incarnation=OTHER)
    p.end("first", first)
    third = p.hold("RegisterTask", task=0, incarnation=OTHER)
    p.end("second", second)
    p.ask("register_1", "RegisterTask", task=1, incarnation=TWO)
    p.end("third", third)
    p.ask("beat_new", "Heartbeat", task=0, incarnation=OTHER)


def register_timeout(p):
    p.ask("register_0", "RegisterTask", task=0, incarnation=ONE)
    p.learn_service()
    p.ask("register_0_again", "RegisterTask", task=0, incarnation=ONE)
    p.ask("register_1", "RegisterTask", task=1, incarnation=TWO)
    p.ask("beat_0", "Heartbeat", task=0, incarnation=ONE)
    p.ask("watch", "WatchTasks", version=-1)


def silent(p):
    register_both(p)
    # A real client sends its first heartbeat later than a job may give up. Who has sent one is silent afterwards.
    p.beat(2.5, task=0, incarnation=ONE)
    poll = p.hold("PollForError", task=1)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=1)
    p.beat_until_done(poll, task=1, incarnation=TWO)
    p.end("poll_1", poll)
    p.end("barrier_1", held)
    p.ask("beat_0", "Heartbeat", task=0, incarnation=ONE)
    p.ask("register_0_restarted", "RegisterTask", task=0, incarnation=OTHER)
    p.ask("barrier_new", "Barrier", barrier="c", timeout=20000, task=1)


def recoverable(p):
    register_both(p)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=0)
    p.ask("restart_0", "RegisterTask", task=0, incarnation=OTHER)
    p.end("barrier_stale", held)
    p.ask("beat_old_life", "Heartbeat", task=0, incarnation=ONE)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=0)
    p.ask("barrier_1", "Barrier", barrier="b", timeout=20000, task=1)
    p.end("barrier_0", held)
    held = p.hold("Barrier", barrier="b", timeout=20000, task=0)
    p.ask("barrier_1_next", "Barrier", barrier="b", timeout=20000, task=1, counter=1)
    p.end("barrier_0_restarted", held)
    if not p.has("ReportErrorToService"):
        return
    poll = p.hold("PollForError", task=1)
    p.ask("report_0", "ReportErrorToService", task=0, code=5, text="boom")
    p.ask("beat_0", "Heartbeat", task=0, incarnation=OTHER)
    p.ask("register_0_in_error", "RegisterTask", task=0, incarnation=OTHER)
    p.ask("shutdown_0", "ShutdownTask", task=0)
    p.ask("shutdown_1", "ShutdownTask", task=1)
    p.end("poll_1", poll)


# name: (scenario, what the job is created with; times in seconds).
SCENARIOS = {
    "scope": (scope, {}),
    "unregistered": (unregistered, {}),
    "keys": (keys, {}),
    "registered": (registered, {}),
    "barriers": (barriers, {}),
    "reported": (reported(5, "boom"), {}),
    "reported_cancelled": (reported(1, "stop"), {}),
    "reported_99": (reported(99, ""), {}),
    "reported_long": (reported(13, "x" * 6000), {}),
    "unheard": (unheard, {}),
    "restarted": (restarted, {}),
    "other_life": (other_life, {}),
    "shutdown": (shutdown, {}),
    "shutdown_straggler": (shutdown_straggler, {"shutdown": 1}),
    "shutdown_alone": (shutdown_alone, {"shutdown": 0}),
    "replaced_registration": (replaced_registration, {}),
    "register_timeout": (register_timeout, {"register": 1}),
    "silent": (silent, {"heartbeat": 5}),
    "recoverable": (recoverable, {"recoverable": True}),
}
# Dialect T has no service incarnation, and no jaxlib serves its ReportErrorToService (we do, for
# TensorFlow).
ONLY_N = {"scope", "reported", "reported_cancelled", "reported_99", "reported_long", "unheard"}


def of_dialect(dialect):
    if dialect == "l":
        yield from ((name, *scenario) for name, scenario in steps_l.SCENARIOS.items())
        return
    for name, (scenario, job) in SCENARIOS.items():
        if dialect == "n" or name not in ONLY_N:
            yield name, scenario, job
