"""The one line of calls from this process to the scheduler, in order, each exactly once.

One thread sends. While a batch is on its way, what comes in meanwhile becomes the next one. Nothing waits for
company. A call whose handles have no ids yet is parked with the first of them, and others overtake it; it
keeps its handles alive, so no reference that it needs is given up before it. References that end are sent
last in a batch, and alone only after a few milliseconds: giving one up late harms nobody.
"""

import contextlib
import heapq
import logging
import queue
import secrets
import threading
import time
from collections import deque

from . import calls, wire
from .errors import ExpiredError, RefusedError, TripodError

# Bounds of a batch; a node takes messages of 1 MiB.
CALLS_MOST = 256
BYTES_MOST = 256 * 1024
_DROPS_MOST = 2048
_DROP_DELAY_S = 0.005
# How long a task waits for an answer of the scheduler before others of its worker may run meanwhile.
_ANSWER_S = 0.05

_log = logging.getLogger("tripod_ray")
_STOP = object()


class Outbox:
    """Sends for one worker or driver. `drop`, `post` and `ask` can be called from any thread."""

    def __init__(self, link):
        self._link = link
        self._session = secrets.token_hex(16)
        self._seq = 0
        self._workerid = None
        self._queue = queue.SimpleQueue()
        self._ready = deque()
        self._drops = []
        # When what was taken from the queue is sent at the latest; None: there is nothing.
        self._due_s = None
        self._later = []
        self._answered = threading.Condition()
        self._thread = None
        # Why nothing can be sent any more.
        self.lost = None
        # Entered by a thread that waits for long: a worker lets its other tasks run.
        self.pausing = contextlib.nullcontext
        # Called once, when `lost` is set; perhaps in the outbox's own thread.
        self.on_lost = lambda: None

    def register(self, request, extra=()):
        """The session's first call, by the calling thread; afterwards the process has an id and the line is
        open. It stays the first one, should it be made again."""
        self._seq = 0
        data = self._send(wire.REGISTER_WORKER, request.SerializeToString(), ((wire.EXTENDED, "1"), *extra))
        reply = wire.RegisterWorkerReply.FromString(data)
        self._workerid = reply.workerid
        self._thread = threading.Thread(target=self._run, name="tripod-outbox", daemon=True)
        self._thread.start()
        return reply

    def post(self, call):
        """Sends a call, and does not wait."""
        self._queue.put(call)

    def drop(self, objectid):
        """Gives up a reference. Safe in `__del__`: nothing is locked."""
        self._queue.put(objectid)

    def ask(self, *posted):
        """Sends calls, and waits for the answer to the last of them."""
        for call in posted:
            self._queue.put(call)
        for call in posted:
            self.finish(call)
        return posted[-1].result

    def finish(self, call):
        """Waits for the answer to a call that was posted. Raises its error."""
        self._wait(lambda: call.done, None)
        if call.error is not None:
            raise call.error
        if not call.done:
            raise self.lost

    def await_ids(self, refs, timeout_s=None):
        """Waits until handles have ids. Raises why one will have none; answers whether all have."""
        for ref in refs:
            if ref._id is None:
                in_time = self._wait(lambda: ref._id is not None or ref._error is not None, timeout_s)
                if ref._error is not None:
                    raise ref._error
                if ref._id is None:
                    if self.lost is not None:
                        raise self.lost
                    return in_time
        return True

    def lose(self, error):
        """Nothing is sent any more; whoever waits is told why."""
        with self._answered:
            first = self.lost is None
            self.lost = self.lost or error
            self._answered.notify_all()
        self._queue.put(_STOP)
        if first:
            self.on_lost()

    def close(self, patience_s=5.0):
        """Sends what is left, and ends."""
        if self._thread is None:
            return
        if self.lost is None:
            self._queue.put(calls.Leave())
        self._queue.put(_STOP)
        if self._thread is not threading.current_thread():
            self._thread.join(patience_s)

    def _wait(self, done, timeout_s):
        first = _ANSWER_S if timeout_s is None else min(_ANSWER_S, timeout_s)
        with self._answered:
            if self._answered.wait_for(lambda: done() or self.lost is not None, first):
                return True
        left = None if timeout_s is None else timeout_s - first
        with self.pausing(), self._answered:
            return self._answered.wait_for(lambda: done() or self.lost is not None, left)

    # What follows runs in the outbox's own thread.

    def _run(self):
        open_ = True
        while open_:
            try:
                open_ = self._gather()
                while self._ready or self._drops:
                    self._flush()
            except TripodError as error:
                expired = isinstance(error, RefusedError) and error.code == wire.FAILED_PRECONDITION
                self.lose(ExpiredError(str(error)) if expired else error)
                open_ = False
            except Exception as error:  # A mistake of ours must not leave others waiting for ever.
                _log.exception("the outbox failed")
                self.lose(TripodError(f"the outbox failed: {error!r}"))
                open_ = False
        self._end()

    def _gather(self):
        """Waits until something is to be sent. Answers whether the line stays open."""
        while True:
            while len(self._ready) < CALLS_MOST and len(self._drops) < _DROPS_MOST:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is _STOP:
                    return False
                self._accept(item)
            self._take_later()
            now = time.monotonic()
            full = len(self._ready) >= CALLS_MOST or len(self._drops) >= _DROPS_MOST
            if full or (self._due_s is not None and self._due_s <= now):
                self._due_s = None
                return True
            due = min(filter(None, (self._due_s, self._later[0][0] if self._later else None)), default=None)
            try:
                item = self._queue.get(timeout=None if due is None else max(0.0, due - now))
            except queue.Empty:
                continue
            if item is _STOP:
                return False
            self._accept(item)

    def _accept(self, item):
        if type(item) is int:
            self._drops.append(item)
            self._send_within(_DROP_DELAY_S)
            return
        for ref in item.needs:
            if ref._id is not None:
                continue
            if ref._error is not None:
                self._refuse(item, ref._error)
            elif ref._parked is None:
                ref._parked = [item]
            else:
                ref._parked.append(item)
            return
        self._ready.append(item)
        self._send_within(0.0)

    def _send_within(self, delay_s):
        due_s = time.monotonic() + delay_s
        if self._due_s is None or due_s < self._due_s:
            self._due_s = due_s

    def _refuse(self, item, error):
        """A call whose handle will never have an id fails like it, and so do those that wait for its own."""
        with self._answered:
            item.fail(error)
            self._answered.notify_all()
        if type(item) is calls.Submit:
            self._unpark(item.refs)

    def _unpark(self, refs):
        for ref in refs:
            parked, ref._parked = ref._parked, None
            for item in parked or ():
                self._accept(item)

    def _take_later(self):
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._ready.append(heapq.heappop(self._later)[2])
            self._send_within(0.0)

    def _flush(self):
        """One message: a batch, or a call that goes alone."""
        if self._ready and type(self._ready[0]) is calls.Alone:
            return self._send_alone(self._ready.popleft())
        batch = wire.RayBatchRequest(workerid=self._workerid)
        sent, size = [], 0
        while self._ready and type(self._ready[0]) is not calls.Alone and len(sent) < CALLS_MOST:
            item = self._ready.popleft()
            holds = item.holds() if type(item) is calls.Submit else None
            for call in (holds, item) if holds else (item,):
                written = batch.calls.add()
                call.write(written, self._workerid)
                size += written.ByteSize()
                sent.append(call)
            if size > BYTES_MOST:
                break
        if sent and type(sent[-1]) is calls.Leave:
            # All references of the process end with it.
            self._drops = []
        if not self._ready and self._drops:
            drops = calls.Decrement(self._drops)
            self._drops = []
            drops.write(batch.calls.add(), self._workerid)
            sent.append(drops)
        reply = wire.RayBatchResponse.FromString(self._send(wire.BATCH, batch.SerializeToString()))
        self._settle(sent, reply.results)

    def _settle(self, sent, results):
        if len(sent) != len(results):
            raise TripodError(f"{len(results)} answers to {len(sent)} calls")
        decided = []
        with self._answered:
            for call, result in zip(sent, results):
                if result.code and result.reason == "expired":
                    raise ExpiredError(result.text)
                again = call.answer(result, self)
                if again is not None:
                    heapq.heappush(self._later, (again, id(call), call))
                elif type(call) is calls.Submit:
                    decided.append(call)
                elif call.error is not None:
                    _log.warning("%s was refused: %s", type(call).__name__, call.error)
            self._answered.notify_all()
        for submit in decided:
            self._unpark(submit.refs)

    def _send_alone(self, item):
        try:
            item.result = self._send(item.path, item.request.SerializeToString())
        except RefusedError as error:
            item.error = error
        with self._answered:
            item.done = True
            self._answered.notify_all()

    def _send(self, path, request, extra=()):
        """One place in the session. It is answered before the next is sent, so all before it are
        acknowledged."""
        self._seq += 1
        metadata = [
            (wire.SESSION, self._session),
            (wire.SEQ, str(self._seq)),
            (wire.ACKED, str(self._seq - 1)),
            *extra,
        ]
        if self._workerid is not None:
            metadata.append((wire.WORKER, str(self._workerid)))
        return self._link.call(path, request, metadata)

    def _end(self):
        with self._answered:
            self.lost = self.lost or TripodError("the connection to the cluster was closed")
            for item in [*self._ready, *(entry[2] for entry in self._later)]:
                item.fail(self.lost)
            self._ready.clear()
            self._answered.notify_all()
