"""jaxlib's own coordination service, alone in a process: the server that goldens are recorded from."""

import argparse
import signal
import threading

from binding import make_service
from steps import emit


def main():
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", required=True, help="HOST:PORT to listen on")
    parser.add_argument("-n", type=int, required=True, help="number of tasks")
    parser.add_argument("--heartbeat-timeout", type=int, help="seconds")
    parser.add_argument("--shutdown-timeout", type=int, help="seconds")
    parser.add_argument("--register-timeout", type=int, help="seconds")
    parser.add_argument("--recoverable", action="store_true")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    service = make_service(
        options.bind,
        options.n,
        heartbeat_timeout=options.heartbeat_timeout,
        shutdown_timeout=options.shutdown_timeout,
        cluster_register_timeout=options.register_timeout,
        recoverable=options.recoverable or None,
    )
    emit(step="serving")
    # A wait without end would also hold back the signal handler, which runs in this thread.
    while not stop.wait(0.1):
        pass
    service.shutdown()
    emit(step="stopped")


main()
