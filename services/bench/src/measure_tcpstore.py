"""One load on torch's TCPStore, as one line of JSON on standard output.

Arguments: set, compare_set or get; processes of clients; threads of each; seconds before the measured window; its seconds;
bytes of a value.
"""

import datetime
import json
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as distributed

KEYS = 1_000
# Until all clients are connected.
PATIENCE = datetime.timedelta(seconds=60)
# From the last client's connection to the window's warm-up.
HEAD_START_S = 0.1


def connect(port):
    return distributed.TCPStore("127.0.0.1", port, None, False, timeout=PATIENCE, wait_for_workers=False)


def call_of(store, op, number, value):
    """One call of a client, which has a number."""
    if op == "get":
        count = [number]

        def get():
            count[0] = (count[0] + 7) % KEYS
            if len(store.get(f"bench/key/{count[0]}")) != len(value):
                raise ValueError("another value")

        return get
    key = f"bench/own/{number}"
    if op == "set":
        return lambda: store.set(key, value)
    other = "b" * len(value)
    store.set(key, value)
    state = [value, other]

    def compare_set():
        if store.compare_set(key, state[0], state[1]) != state[1].encode():
            raise ValueError("another value")
        state.reverse()

    return compare_set


def loop(call, begin, end, latencies_us, errors):
    """Calls until the end; what ends within the window counts."""
    while True:
        called = time.monotonic()
        if called >= end:
            return
        try:
            call()
        except Exception:
            errors.append(1)
            continue
        answered = time.monotonic()
        if begin <= answered < end:
            latencies_us.append((answered - called) * 1e6)


def work(op, number, threads, value_bytes, port):
    """A process of clients: says that they are connected, is told the window, and tells their latencies."""
    value = "a" * value_bytes
    calls = [call_of(connect(port), op, number * threads + thread, value) for thread in range(threads)]
    print("connected", flush=True)
    begin, end = json.loads(sys.stdin.readline())
    latencies_us = [[] for _ in calls]
    errors = []
    clients = [
        threading.Thread(target=loop, args=(call, begin, end, own, errors)) for call, own in zip(calls, latencies_us)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    together = [round(latency) for own in latencies_us for latency in own]
    print(json.dumps({"latencies_us": together, "errors": len(errors)}), flush=True)


def measure(op, processes, threads, warm_up_s, seconds, value_bytes):
    """The store, and the processes of its clients."""
    store = distributed.TCPStore("127.0.0.1", 0, None, True, timeout=PATIENCE, wait_for_workers=False)
    for number in range(KEYS if op == "get" else 0):
        store.set(f"bench/key/{number}", "a" * value_bytes)
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "work", op, str(number), str(threads), str(value_bytes), str(store.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    try:
        for worker in workers:
            if worker.stdout.readline() != "connected\n":
                sys.exit("a process of clients did not connect")
        # One clock for all processes of the machine.
        begin = time.monotonic() + HEAD_START_S + warm_up_s
        for worker in workers:
            worker.stdin.write(json.dumps([begin, begin + seconds]) + "\n")
            worker.stdin.flush()
        told = [json.loads(worker.stdout.readline()) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    latencies_us = sorted(latency for one in told for latency in one["latencies_us"])
    if not latencies_us:
        sys.exit("no call was answered within the window")
    return {
        "version": torch.__version__,
        "ops_per_s": len(latencies_us) / seconds,
        "p50_us": latencies_us[len(latencies_us) // 2],
        "p99_us": latencies_us[len(latencies_us) * 99 // 100],
        "errors": sum(one["errors"] for one in told),
    }


if sys.argv[1] == "work":
    work(sys.argv[2], *map(int, sys.argv[3:7]))
else:
    print(
        json.dumps(
            measure(
                sys.argv[1],
                int(sys.argv[2]),
                int(sys.argv[3]),
                float(sys.argv[4]),
                float(sys.argv[5]),
                int(sys.argv[6]),
            )
        )
    )
