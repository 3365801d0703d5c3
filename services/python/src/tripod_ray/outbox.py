"""The one queue of calls from this process to the scheduler, in order, each exactly once.

Whoever holds the lock sends: a thread of the outbox's own, or in a driver the thread that waits for an answer,
which saves both of them a change of threads. While a batch is on its way, what comes in meanwhile becomes the
next one. Nothing waits for company. A call whose handles have no ids yet is parked with the first of them, and
others overtake it; it keeps its handles alive, so no reference that it needs is given up before it. References
that end are sent last in a batch, and alone only after a few milliseconds: giving one up late harms nobody.
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
from .context import sheltered, wait_for
from .errors import ExpiredError, RefusedError, TripodError
from .interrupts import Held

# Bounds of a batch; a node takes messages of 1 MiB.
CALLS_MOST = 256
BYTES_MOST = 256 * 1024
_DROPS_MOST = 2048
_DROP_DELAY_S = 0.005
# So long after another thread has sent by itself the outbox's own does not look whether there is more: that one will send
# that too if it goes on like this, and waking up to no purpose delays it.
_NEAR_S = 0.002
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
        # Calls, ids of references that are given up, and the end, as they come.
        self._incoming = deque()
        # What wakes the outbox's own thread, and whether it is about to look anyway.
        self._bell = queue.SimpleQueue()
        self._rung = False
        self._sending = threading.Lock()
        # What follows belongs to whoever holds that lock.
        self._ready = deque()
        self._drops = []
        # When they are sent at the latest.
        self._drops_due_s = 0.0
        self._later = []
        # Sends again what was sent when a signal broke off the wait for its answer.
        self._unanswered = None
        self._held = Held()
        self._stopping = False
        self._answered = threading.Condition()
        self._thread = None
        # Why nothing can be sent any more.
        self.lost = None
        # Whether a thread that waits for an answer may send by itself. It cannot do anything else meanwhile, however
        # long the cluster takes, so a worker, which can, does not.
        self.direct = False
        # When a thread did so last.
        self._direct_s = 0.0
        # Entered by a thread that waits for long: a worker lets its other tasks run.
        self.pausing = contextlib.nullcontext
        # Called once, when `lost` is set; perhaps in the outbox's own thread.
        self.on_lost = lambda: None

    def register(self, request, extra=()):
        """The session's first call, by the calling thread; afterwards the process has an id and the queue is
        open. It stays the first one, should it be made again."""
        self._seq = 1
        metadata = ((wire.EXTENDED, "1"), *extra, *self._place())
        data = self._link.call(wire.REGISTER_WORKER, request.SerializeToString(), metadata)
        reply = wire.RegisterWorkerReply.FromString(data)
        self._workerid = reply.workerid
        self._thread = threading.Thread(target=self._run, name="tripod-outbox", daemon=True)
        self._thread.start()
        return reply

    def post(self, call):
        """Sends a call, and does not wait."""
        self._leave(call)

    def drop(self, objectid):
        """Gives up a reference. Safe in `__del__`: nothing is locked."""
        self._leave(objectid)

    def ask(self, *posted):
        """Sends calls, and waits for the answer to the last of them. A task that is cancelled is told so afterwards."""
        with sheltered():
            for call in posted:
                self._leave(call)
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
        with sheltered():
            for ref in refs:
                if ref._id is None:
                    in_time = self._wait(lambda: ref._id is not None or ref._error is not None, timeout_s, wait_for)
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
        self._leave(_STOP)
        if first:
            self.on_lost()

    def close(self, patience_s=5.0):
        """Sends what is left, and ends."""
        if self._thread is None:
            return
        if self.lost is None:
            self._leave(calls.Leave())
        self._leave(_STOP)
        if self._thread is not threading.current_thread():
            self._thread.join(patience_s)

    def _leave(self, item):
        self._incoming.append(item)
        self._ring()

    def _ring(self):
        # The thread takes the flag away before it looks, so what comes when the flag is set is seen.
        if not self._rung:
            self._rung = True
            self._bell.put(None)

    def _wait(self, done, timeout_s, wait_for=threading.Condition.wait_for):
        if self.direct and timeout_s is None and not done():
            self._send_until(done)
        first = _ANSWER_S if timeout_s is None else min(_ANSWER_S, timeout_s)
        with self._answered:
            if wait_for(self._answered, lambda: done() or self.lost is not None, first):
                return True
        left = None if timeout_s is None else timeout_s - first
        with self.pausing(), self._answered:
            return wait_for(self._answered, lambda: done() or self.lost is not None, left)

    def _send_until(self, done):
        """Sends in the calling thread, unless another one does, until `done` or there is nothing to send."""
        if not self._sending.acquire(blocking=False):
            return
        try:
            with self._held:
                self._work(done)
        finally:
            self._direct_s = time.monotonic()
            self._sending.release()
            if self._incoming or self._ready or self._drops or self._later or self._unanswered:
                self._ring()

    def _run(self):
        while True:
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=self._until_due_s())
            while time.monotonic() - self._direct_s < _NEAR_S:
                time.sleep(_NEAR_S)
            self._rung = False
            with self._sending:
                if not self._work():
                    break
        self._end()

    def _until_due_s(self):
        """How long there will be nothing to send if nothing comes; None: for ever. Whoever sends meanwhile rings
        the bell if it leaves something."""
        drops, later = self._drops, self._later[:1]
        due = [self._drops_due_s] if drops else []
        due.extend(entry[0] for entry in later)
        return max(0.0, min(due) - time.monotonic()) if due else None

    # What follows runs in the thread that holds that lock.

    def _work(self, enough=lambda: False):
        """Sends what is there, until it is `enough`. Answers whether the queue stays open."""
        try:
            while self.lost is None and (not self._stopping or self._ready or self._drops):
                if self._unanswered is not None:
                    self._exchange(self._unanswered)
                self._gather()
                if not self._is_due():
                    break
                self._flush()
                if enough():
                    break
        except TripodError as error:
            expired = isinstance(error, RefusedError) and error.code == wire.FAILED_PRECONDITION
            self.lose(ExpiredError(str(error)) if expired else error)
        except Exception as error:  # A mistake of ours must not leave others waiting for ever.
            _log.exception("the outbox failed")
            self.lose(TripodError(f"the outbox failed: {error!r}"))
        return self.lost is None and not self._stopping

    def _gather(self):
        """Takes what has come."""
        while len(self._ready) < CALLS_MOST and len(self._drops) < _DROPS_MOST and not self._stopping:
            try:
                item = self._incoming.popleft()
            except IndexError:
                break
            if item is _STOP:
                self._stopping = True
            else:
                self._accept(item)
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._ready.append(heapq.heappop(self._later)[2])

    def _is_due(self):
        if self._ready or not self._drops:
            return bool(self._ready)
        return self._stopping or len(self._drops) >= _DROPS_MOST or self._drops_due_s <= time.monotonic()

    def _accept(self, item):
        if type(item) is int:
            if not self._drops:
                self._drops_due_s = time.monotonic() + _DROP_DELAY_S
            self._drops.append(item)
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

    def _flush(self):
        """One message: a batch, or a call that goes alone."""
        self._seq += 1
        if self._ready and type(self._ready[0]) is calls.Alone:
            item, metadata = self._ready.popleft(), self._place()
            self._exchange(lambda: self._send_alone(item, metadata))
            return
        message = wire.RayLineRequest(seq=self._seq, acked=self._seq - 1)
        sent = self._fill(message.batch)
        self._exchange(lambda: self._send_batch(message, sent))

    def _fill(self, batch):
        """Writes what is ready into a batch, and answers with its calls."""
        batch.workerid = self._workerid
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
            drops, self._drops = calls.Decrement(self._drops), []
            drops.write(batch.calls.add(), self._workerid)
            sent.append(drops)
        return sent

    def _exchange(self, send):
        self._unanswered = send
        send()
        self._unanswered = None

    def _send_batch(self, message, sent):
        try:
            with self._held.allowed():
                reply = self._link.batch(message, self._session)
        except RefusedError as error:
            if error.reason != wire.LEVEL_LOW or not self._leave_out(message, sent, error):
                raise
            # Nothing was done, so the place in the session is free.
            if sent:
                self._send_batch(message, sent)
            else:
                self._seq -= 1
        else:
            self._settle(sent, reply.results)

    def _leave_out(self, message, sent, error):
        """Takes the calls out of a batch for which the cluster's level is too low. Answers whether there were any."""
        places = [place for place, call in enumerate(sent) if call.is_newer]
        left_out = [sent[place] for place in places]
        for place in reversed(places):
            del message.batch.calls[place], sent[place]
        with self._answered:
            for call in left_out:
                call.fail(error)
                if type(call) is calls.Describe:
                    # Nobody waits for it.
                    _log.warning("%s was refused: %s", type(call).__name__, error)
            self._answered.notify_all()
        for call in left_out:
            if type(call) is calls.Submit:
                self._unpark(call.refs)
        return bool(left_out)

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

    def _send_alone(self, item, metadata):
        try:
            with self._held.allowed():
                item.result = self._link.call(item.path, item.request.SerializeToString(), metadata)
        except RefusedError as error:
            item.error = error
        with self._answered:
            item.done = True
            self._answered.notify_all()

    def _place(self):
        """Metadata of one place in the session. It is answered before the next is sent, so all before it are
        acknowledged."""
        worker = () if self._workerid is None else ((wire.WORKER, str(self._workerid)),)
        return (
            (wire.SESSION, self._session),
            (wire.SEQ, str(self._seq)),
            (wire.ACKED, str(self._seq - 1)),
            *worker,
        )

    def _end(self):
        with self._sending, self._answered:
            self.lost = self.lost or TripodError("the connection to the cluster was closed")
            for item in [*self._ready, *(entry[2] for entry in self._later)]:
                item.fail(self.lost)
            self._ready.clear()
            self._answered.notify_all()
