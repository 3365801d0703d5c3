"""What is asked of a service of dialect L, step by step; see `steps.py` for how it is written."""

from wire import delimited, number_field

LONG = 20000


def connect(p, step, task, client, **fields):
    p.ask(step, "Connect", version=3, task=task, client=client, **({"timeout": LONG} | fields))


def connect_both(p):
    first = p.hold("Connect", version=3, timeout=LONG, task=0, client=1)
    connect(p, "connect_1", 1, 2)
    p.end("connect_0", first)


def device(ordinal):
    """A device with numbers that only the service should give."""
    return (number_field(1, ordinal) + delimited(2, b"gpu") + delimited(3, b"vendor")
            + number_field(4, 77) + number_field(5, 7) + delimited(9, b"unknown"))


def topology(node, boot_id, devices):
    """A node in the layout of jaxlib 0.4.13."""
    parts = [number_field(1, node), delimited(2, boot_id) if boot_id else b""]
    parts += [delimited(3, device(ordinal)) for ordinal in range(devices)]
    return b"".join(parts) + delimited(7, b"unknown")


def not_connected(p):
    p.ask("beat_wrong_session", "Heartbeat", service=12345)
    p.learn_service()
    p.ask("beat", "Heartbeat", task=0)
    p.ask("get", "KeyValueGet", key="k", timeout=100)
    p.ask("set", "KeyValueSet", key="k", value="v")
    p.ask("barrier", "WaitAtBarrier", barrier="b", timeout=100)
    p.ask("enumerate", "EnumerateDevices", topology=topology(0, b"a", 1))
    p.ask("shutdown", "Shutdown")
    p.ask("beat_unknown", "Heartbeat", task=9)


def connecting(p):
    p.ask("wrong_version", "Connect", version=2, timeout=100, task=0, client=1)
    p.ask("no_version", "Connect", timeout=100, task=0, client=1)
    connect(p, "negative", -1, 1)
    connect(p, "unknown", 2, 1)
    for timeout in (0, -1500, 300, 1250):
        connect(p, f"alone_{timeout}", 0, 1, timeout=timeout)
    connect(p, "alone_1", 1, 2, timeout=300)
    first = p.hold("Connect", version=3, timeout=LONG, task=0, client=1)
    second = p.hold("Connect", version=3, timeout=1000, task=0, client=3)
    p.end("replaced", first)
    p.end("replacing_alone", second)
    # Not of task 0: upstream's service hangs when that one's call comes twice.
    first = p.hold("Connect", version=3, timeout=LONG, task=1, client=2)
    again = p.hold("Connect", version=3, timeout=LONG, task=1, client=2)
    connect(p, "connect_0", 0, 4)
    p.end("connect_1", first)
    p.end("connect_1_again", again)
    connect(p, "restarted", 1, 4)
    connect(p, "reply_lost", 1, 2)
    p.ask("beat", "Heartbeat", task=1)
    p.ask("beat_negative", "Heartbeat", task=-1)
    p.ask("beat_unknown", "Heartbeat", task=2)
    for rpc, fields in (("Heartbeat", {}), ("KeyValueGet", {"key": "k"}), ("KeyValueSet", {"key": "k"}),
                        ("WaitAtBarrier", {"barrier": "b"}), ("EnumerateDevices", {}), ("Shutdown", {})):
        p.ask(f"wrong_session_{rpc}", rpc, service=12345, **fields)


def keys(p):
    connect_both(p)
    p.ask("set", "KeyValueSet", key="//a//b/", value="1")
    p.ask("get", "KeyValueGet", key="//a//b/", timeout=100)
    p.ask("get_normalised", "KeyValueGet", key="a/b", timeout=100)
    p.ask("overwrite", "KeyValueSet", key="//a//b/", value="2")
    p.ask("get_at_once", "KeyValueGet", key="//a//b/")
    p.ask("get_missing_at_once", "KeyValueGet", key="missing")
    p.ask("get_missing_negative", "KeyValueGet", key="missing", timeout=-1)
    p.ask("set_empty", "KeyValueSet", key="", value="e")
    p.ask("get_empty", "KeyValueGet", key="")
    p.ask("set_binary", "KeyValueSet", key=b"\x00\xff/", value=b"\x00\xff")
    p.ask("get_binary", "KeyValueGet", key=b"\x00\xff/")
    p.ask("set_percent", "KeyValueSet", key="%00%FF%2F", value="text")
    p.ask("get_binary_again", "KeyValueGet", key=b"\x00\xff/")
    p.ask("set_no_value", "KeyValueSet", key="none")
    p.ask("get_no_value", "KeyValueGet", key="none")
    held = p.hold("KeyValueGet", key="later/", timeout=LONG)
    p.ask("set_other", "KeyValueSet", key="later", value="other")
    p.ask("set_waited", "KeyValueSet", key="later/", value="now")
    p.end("get_waited", held)


def barriers(p):
    connect_both(p)
    held = p.hold("WaitAtBarrier", barrier="b", task=0, timeout=LONG)
    p.ask("pass_1", "WaitAtBarrier", barrier="b", task=1, timeout=LONG)
    p.end("pass_0", held)
    p.ask("used", "WaitAtBarrier", barrier="b", task=0, timeout=LONG)
    p.ask("unknown_task", "WaitAtBarrier", barrier="u", task=2, timeout=LONG)
    p.ask("negative_task", "WaitAtBarrier", barrier="u", task=-1, timeout=LONG)
    p.ask("alone", "WaitAtBarrier", barrier="alone", task=0, timeout=1250)
    p.ask("spoiled", "WaitAtBarrier", barrier="alone", task=1, timeout=LONG)
    p.ask("at_once", "WaitAtBarrier", barrier="now", task=0)
    waits = p.hold("WaitAtBarrier", barrier="twice", task=0, timeout=1500)
    p.ask("same_task_twice", "WaitAtBarrier", barrier="twice", task=0, timeout=500)
    p.end("same_task_first", waits)
    held = p.hold("WaitAtBarrier", barrier=b"\xff\x00", task=0, timeout=LONG)
    p.ask("binary_1", "WaitAtBarrier", barrier=b"\xff\x00", task=1, timeout=LONG)
    p.end("binary_0", held)


def devices(p):
    connect_both(p)
    p.ask("unknown_task", "EnumerateDevices", topology=topology(2, b"a", 1))
    p.ask("negative_task", "EnumerateDevices", topology=topology(-1, b"a", 1))
    held = p.hold("EnumerateDevices", topology=topology(1, b"b", 2))
    p.ask("enumerate_0", "EnumerateDevices", topology=topology(0, b"a", 1))
    p.end("enumerate_1", held)


def devices_of_one_host(p):
    connect_both(p)
    held = p.hold("EnumerateDevices", topology=topology(0, b"a", 1))
    p.ask("enumerate_1", "EnumerateDevices", topology=topology(1, b"a", 2))
    p.end("enumerate_0", held)


def devices_of_unknown_hosts(p):
    connect_both(p)
    held = p.hold("EnumerateDevices", topology=topology(0, b"", 1))
    p.ask("enumerate_1", "EnumerateDevices", topology=topology(1, b"", 0))
    p.end("enumerate_0", held)


def devices_late(p):
    connect_both(p)
    p.ask("enumerate_alone", "EnumerateDevices", topology=topology(0, b"a", 1))
    p.ask("beat", "Heartbeat", task=0)


def shutdown(p):
    connect_both(p)
    get = p.hold("KeyValueGet", key="never", timeout=1500)
    barrier = p.hold("WaitAtBarrier", barrier="b", timeout=1500)
    p.ask("unknown_task", "Shutdown", task=2)
    first = p.hold("Shutdown")
    p.ask("shutdown_1", "Shutdown")
    p.end("shutdown_0", first)
    p.end("get_waiting", get)
    p.end("barrier_waiting", barrier)
    closed(p)


def closed(p):
    """Every call of a closed service."""
    p.ask("closed_beat", "Heartbeat", task=0)
    p.ask("closed_get", "KeyValueGet", key="k")
    p.ask("closed_set", "KeyValueSet", key="k", value="v")
    p.ask("closed_barrier", "WaitAtBarrier", barrier="new")
    p.ask("closed_enumerate", "EnumerateDevices", topology=topology(0, b"a", 1))
    p.ask("closed_shutdown", "Shutdown")
    connect(p, "closed_connect", 0, 9)


def shutdown_straggler(p):
    connect_both(p)
    p.ask("shutdown_0", "Shutdown")
    closed(p)


def silent(p):
    connect_both(p)
    barrier = p.hold("WaitAtBarrier", barrier="b", task=0, timeout=LONG)
    devices = p.hold("EnumerateDevices", topology=topology(0, b"a", 1))
    leaving = p.hold("Shutdown")
    p.beat_until_done(barrier, task=0)
    p.end("barrier_0", barrier)
    p.end("enumerate_0", devices)
    p.end("shutdown_0", leaving)
    closed(p)


# name: (scenario, what the job is created with; times in seconds).
SCENARIOS = {
    "not_connected": (not_connected, {}),
    "connecting": (connecting, {}),
    "keys": (keys, {}),
    "barriers": (barriers, {}),
    "devices": (devices, {}),
    "devices_of_one_host": (devices_of_one_host, {}),
    "devices_of_unknown_hosts": (devices_of_unknown_hosts, {}),
    "devices_late": (devices_late, {"register": 1}),
    "shutdown": (shutdown, {}),
    "shutdown_straggler": (shutdown_straggler, {"shutdown": 1}),
    "silent": (silent, {"heartbeat": 5}),
}
