"""A worker process: `python -m tripod_ray.worker --address HOST:PORT,...`."""

import argparse
import contextlib
import importlib.util
import logging
import os
import random
import sys
import threading
import time

from . import calls, cancelling, context, credentials, link, needs, runtime, wire
from .api import ENDPOINTS
from .cancelling import Cancels
from .ending import Signals, end_with_input, limit_end
from .errors import RefusedError, TripodError, UnreachableError
from .execution import Executor, Functions
from .keeper import CANCELLED_STATUS
from .process import Process
from .reusable import reusables
from .service import Service
from .turn import Turn

# Tasks that the scheduler hands out ahead, at most: it begins with few, and has more wait here the faster
# they end.
SLOTS = 128
# A task that runs longer keeps no others waiting: they go back.
_PATIENCE_S = 0.1
_LOOK_S = 0.05
_AGAIN_MOST_S = 5.0
# How long a process that ends with a cancelled task tells the cluster so. Whoever is not told waits until it is missed.
_LEAVE_S = 0.5
# The package whose functions a worker executes where it is installed.
_MARS = "tripod_mars"
# A cluster that has been silent for longer than any election, or restart of a node, takes is gone.
_GONE_S = link.PATIENCE_S

_log = logging.getLogger("tripod_ray")


class Life:
    """One registration of a worker: it lasts until the scheduler ends it or gives it up."""

    def __init__(self, options):
        # Whether the scheduler had it end; and whether somebody else told it to.
        self._dismissed = self._told = False
        # Attempts that were given to the worker and that it has not reported.
        self._held = {}
        self._process = Process(
            options.address,
            driver=False,
            node_ip=options.node_ip,
            store_address=options.objstore_address,
            job=options.job,
            slots=options.slots,
            offers=options.offers,
        )
        process = self._process
        self._turn = Turn(self._start_runner)
        self._turn.set_allowed(self._may_begin)
        process.outbox.pausing = self._pausing
        process.running = lambda: list(self._held)
        process.on_order = lambda: self._turn.put([None])
        process.on_lost = self._turn.close
        if process.lost is not None:
            self._turn.close()
        self._functions = Functions(process)
        turn = self._turn
        self._cancels = Cancels(self._held.__contains__, self._drop, self._end_process)
        self._executor = Executor(
            process, self._functions, self._cancels, self._forget, turn.has_more, turn.keeps_up
        )
        try:
            self._service = Service(process.workerid, self._arrived)
            self._server = self._service.serve(process.address)
            if process.store.relay_path is not None:
                self._service.follow(process.store.relay_path)
        except OSError:
            process.close()
            raise

    def run(self):
        """Runs tasks until the end."""
        runtime.connect(self._process)
        _log.info("worker %d listens on %s", self._process.workerid, self._process.address)
        self._functions.register_raw()
        self._process.outbox.post(calls.Idle())
        over = threading.Event()
        threading.Thread(target=self._watch, args=(over,), name="tripod-watch", daemon=True).start()
        self._take_turns()
        over.set()
        # The answer to what ended it is still to be sent.
        self._server.stop(0.5).wait(1.0)
        self._service.close()
        runtime.connect(None)
        self._process.close()

    def is_last(self):
        """Whether the worker was told to end, perhaps when there was nothing to finish any more."""
        return self._dismissed or self._told

    @property
    def lost(self):
        """Why this registration is over."""
        return self._process.lost

    def end(self):
        """Has the worker end after the task that runs, and after what that waits for. Safe in a signal handler."""
        self._told = True

    def _watch(self, over):
        """Gives back what need not wait for a task that takes long, or for a worker that is to end."""
        ending = False
        while not over.wait(_LOOK_S):
            if self._told and not ending:
                ending = True
                _log.info("worker %d was told to end", self._process.workerid)
                self._give_back(self._turn.withdraw(_can_go_back))
                self._turn.put([None])
            if ending:
                self._end_without_cluster()
            self._give_back(self._turn.withdraw(_can_go_back, running_s=_PATIENCE_S))

    def _end_without_cluster(self):
        """What a task waits for does not come from a cluster that nobody will start again."""
        if self._silent_s() > _GONE_S and self._process.lost is None:
            text = f"the worker was told to end, and no node has answered for {_GONE_S:.0f} s"
            self._process.lose(UnreachableError(text))

    def _give_back(self, items):
        runs = [_run(item) for item in items]
        if runs:
            self._process.outbox.post(calls.GiveBack(runs))
            for run in runs:
                self._forget(run)

    def _forget(self, run):
        self._held.pop(run, None)
        self._cancels.forget(run)

    def _arrived(self, items):
        queued = []
        for item in items:
            if isinstance(item, wire.RayCancelOrder):
                # It may be about a task that came before it.
                self._turn.put(queued)
                queued = []
                self._cancels.take(item)
            else:
                if isinstance(item, wire.ExecuteTaskRequest):
                    self._held[_run(item)] = None
                queued.append(item)
        self._turn.put(queued)

    def _drop(self, run):
        """Reports a run that was cancelled, if it is in the queue."""
        for item in self._turn.withdraw(lambda item: _can_go_back(item) and _run(item) == run):
            self._executor.drop(item)

    def _end_process(self, cancellation, grace_s):
        """A cancelled task did not end in time. What else is here is given to others."""
        operationid, attempt = cancellation.run
        late = f"had not ended {grace_s:g} s later" if grace_s else "was to end at once"
        with contextlib.suppress(OSError, ValueError):
            print(
                f"tripod_ray: task {cancellation.name} (operation {operationid}, attempt {attempt}) was cancelled and "
                f"{late}: its worker ends with it",
                file=sys.stderr,
                flush=True,
            )
        self._process.outbox.close(_LEAVE_S)
        os._exit(CANCELLED_STATUS)

    def _take_turns(self):
        while (item := self._turn.take()) is not None:
            try:
                self._handle(item)
            except (
                Exception
            ):  # A mistake of ours must not end the worker: the task's silence would never end.
                _log.exception("the worker failed")
                self._process.lose(TripodError("the worker failed"))
            finally:
                self._turn.done()
        self._dismissed = self._dismissed or self._process.lost is None
        self._turn.close()

    def _handle(self, item):
        if isinstance(item, wire.ExecuteTaskRequest):
            variables = self._executor.execute(item)
            if variables:
                reusables.renew(variables)
        elif isinstance(item, wire.Function):
            self._functions.take(item.implementation)
        else:
            self._turn.keeps_up()
            reusables.take(item)

    def _start_runner(self):
        threading.Thread(target=self._take_turns, name="tripod-runner", daemon=True).start()

    def _pausing(self):
        """What is behind a task that waits goes back, for whoever has nothing to do; if nobody has, this
        worker says that it can run one of them meanwhile."""
        # Threads that a task started have no turn to give away.
        if context.current() is None:
            return contextlib.nullcontext()
        self._give_back(self._turn.withdraw(_can_go_back))
        self._process.outbox.post(calls.Idle())
        return self._turn.pausing(context.current().cancellation)

    def _may_begin(self):
        """A worker that nobody answers has perhaps been given up, and its tasks given to others."""
        return self._silent_s() < self._process.ttl_ms / 1000

    def _silent_s(self):
        return time.monotonic() - self._process.last_answer_s


def _run(request):
    return request.operationid, request.attempt or 1


def _can_go_back(item):
    return isinstance(item, wire.ExecuteTaskRequest) and item.HasField("operationid")


def serve(options):
    """Registers, again and again if need be, and runs tasks until the scheduler ends the worker."""
    signals = Signals()
    cancelling.hear()
    pause_s = 0.1
    while True:
        try:
            life = Life(options)
        except (TripodError, OSError) as error:
            _log.warning("cannot begin, trying again: %s", error)
            if isinstance(error, RefusedError) and error.code == wire.INVALID_ARGUMENT:
                raise
            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(_AGAIN_MOST_S, pause_s * 2)
            continue
        pause_s = 0.1
        # A worker that belongs to no cluster has nothing to finish.
        with signals.ending(life.end):
            life.run()
        if life.is_last():
            return
        _log.warning("registering again: %s", life.lost)


def _register_mars():
    """Has this process execute the chunks of tensors and frames. Answers whether it can."""
    if importlib.util.find_spec(_MARS) is None:
        return False
    try:
        importlib.import_module(f"{_MARS}.worker").register()
        return True
    except ModuleNotFoundError as error:
        if error.name != f"{_MARS}.worker":
            _log.warning("chunks of tensors and frames are not executed here: %s", error)
    except Exception as error:  # Whatever that package needs and does not find.
        _log.warning("chunks of tensors and frames are not executed here: %r", error)
    return False


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="tripod-ray-worker", description="Executes tasks of a Tripod cluster."
    )
    parser.add_argument(
        "--address",
        default=os.environ.get("TRIPOD_ENDPOINTS"),
        help=f"client addresses of the nodes, with commas between ({ENDPOINTS})",
    )
    parser.add_argument("--node-ip", help="this machine's address, as its object store is registered")
    parser.add_argument(
        "--objstore-address", default="", help="which object store, if this machine has several"
    )
    parser.add_argument("--job", help="the job whose scheduler it serves; the port's own if it is not given")
    parser.add_argument(
        "--tls-dir", help=f"directory of certificates, for nodes that use TLS ({credentials.TLS_DIR})"
    )
    parser.add_argument(
        "--token-file", help=f"file of a token that is shown to nodes over TLS ({credentials.TOKEN_FILE})"
    )
    parser.add_argument("--slots", type=int, default=SLOTS, help="tasks that may wait at this worker")
    parser.add_argument(
        "--num-cpus",
        default=os.environ.get("TRIPOD_NUM_CPUS"),
        help="processors that its tasks may use, for tasks that need some; 1 if it is not given (TRIPOD_NUM_CPUS)",
    )
    parser.add_argument(
        "--memory",
        default=os.environ.get("TRIPOD_MEMORY"),
        help="memory that its tasks may use: bytes, or 512MiB or 4GiB; if it is not given, tasks that need memory do "
        "not come here (TRIPOD_MEMORY)",
    )
    parser.add_argument(
        "--resources",
        default=os.environ.get("TRIPOD_RESOURCES"),
        help="what else it has, such as gpu=1,licence=0.5 (TRIPOD_RESOURCES)",
    )
    parser.add_argument(
        "--mars", action="store_true", help=f"fail if {_MARS}, whose functions it executes, is not installed"
    )
    parser.add_argument("--until-eof", action="store_true", help="end when the standard input does")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    if not options.address:
        parser.error(f"give --address, or set {ENDPOINTS}")
    try:
        options.offers = needs.offers(options.num_cpus, options.memory, options.resources)
        # Whatever connects in this process: what it executes may, too.
        credentials.use(credentials.given(options.tls_dir, options.token_file))
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, stream=sys.stderr)
    if not _register_mars() and options.mars:
        parser.error(f"--mars: the package {_MARS} is not installed, or cannot be imported")
    if options.until_eof:
        end_with_input()
    status = 1
    try:
        serve(options)
        status = 0
    finally:
        limit_end(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
