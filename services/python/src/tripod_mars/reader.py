"""Chunks from the workers that have them: many at a time, from another place when one is gone, and from wherever they are
made again."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import parts, wire
from .codec import Assembly
from .compression import offers
from .errors import ChunkLostError, DamagedDataError, SessionError
from .workers import WorkerError

# Calls at a time: enough to be limited by the network, few enough for the workers.
CALLS_MAX = 8
# Chunks of one call, and bytes: what a call that breaks has to ask again.
CHUNKS_MAX = 64
CALL_BYTES_MAX = 64 << 20
# Metas of one call.
METAS_MAX = 1000
# Until chunks that were lost must have been made again.
PATIENCE_S = 120.0
_PAUSE_LEAST_S, _PAUSE_MOST_S = 0.05, 1.0
# A call may take this long, and a second more for each MiB.
_CALL_S = 30.0
_OUT_OF_RANGE = 11


class Want:
    """One chunk, and what of it."""

    __slots__ = ("key", "index", "tried", "why", "value", "is_done")

    def __init__(self, key, index=None):
        self.key = key
        self.index = index
        # Addresses that did not have it since places were last asked for.
        self.tried = set()
        self.why = {}
        self.value = None
        self.is_done = False

    def finish(self, value):
        self.value, self.is_done = value, True

    def fail(self, address, why):
        self.tried.add(address)
        self.why[address] = why


class Reader:
    """Reads chunks of one session."""

    def __init__(self, scheduler, workers, session_id, compressions=(), patience_s=PATIENCE_S):
        self._scheduler = scheduler
        self._workers = workers
        self._session_id = session_id
        self._offers = offers(compressions)
        self._patience_s = patience_s

    def tensor(self, placed, dtype, index=()):
        """An array of what a basic index (slices and ints) picks of an executed tensor."""
        shape, wanted = parts.pieces(placed.splits, index)
        array = np.empty(shape, dtype)
        wants = [Want(placed.chunk_keys[place], ask) for place, ask, _ in wanted]
        places = {id(want): where for want, (_, _, where) in zip(wants, wanted)}

        def put(want):
            array[places[id(want)]] = want.value
            want.value = None

        self.read(wants, put)
        return array

    def frame(self, placed, columns):
        """Columns of an executed frame: arrays by name; values that are missing are masked."""
        wants = [Want(key) for key in placed.chunk_keys]
        self.read(wants, lambda want: None)
        found = {}
        for name, _ in columns:
            pieces = [want.value[name] for want in wants]
            is_masked = any(isinstance(piece, np.ma.MaskedArray) for piece in pieces)
            found[name] = (np.ma if is_masked else np).concatenate(pieces) if len(pieces) > 1 else pieces[0]
        return found

    def metas(self, keys, stale_ok=False):
        """Metas of chunks, in the order of their keys. With `stale_ok` a node answers with what it knows, and is asked again
        for those of which it knows no place."""
        found = []
        for begin in range(0, len(keys), METAS_MAX):
            some = keys[begin : begin + METAS_MAX]
            answer = self._scheduler.call(
                "GetChunkMetas", session_id=self._session_id, keys=some, stale_ok=stale_ok
            )
            found.extend(answer.metas)
        if stale_ok:
            places = [place for place, meta in enumerate(found) if not meta.found or not meta.workers]
            for place, meta in zip(places, self.metas([keys[place] for place in places])):
                found[place] = meta
        return found

    def read(self, wants, put):
        """Reads all of them, and calls `put` with each that has come, from one thread. Raises `ChunkLostError`,
        `IndexError`."""
        end = time.monotonic() + self._patience_s
        pause, stale_ok = _PAUSE_LEAST_S, True
        pending = list(wants)
        while pending:
            calls = self._calls(pending, stale_ok)
            # Where it was a while ago it may not be any more.
            stale_ok = False
            for done in self._run(calls):
                for want in done:
                    put(want)
            before, pending = len(pending), [want for want in pending if not want.is_done]
            if not pending:
                return
            if len(pending) < before:
                end, pause = time.monotonic() + self._patience_s, _PAUSE_LEAST_S
            elif not calls:
                # Every place was tried: they are asked for again, as the chunk is made anew elsewhere.
                if time.monotonic() >= end:
                    raise ChunkLostError(_lost(pending[0]))
                time.sleep(pause)
                pause = min(2 * pause, _PAUSE_MOST_S)
                for want in pending:
                    want.tried.clear()

    def _calls(self, pending, stale_ok):
        """What to ask whom: pairs of an address and of chunks."""
        metas = self.metas([want.key for want in pending], stale_ok)
        by_address = {}
        for number, (want, meta) in enumerate(zip(pending, metas)):
            if not meta.found:
                raise SessionError(f"the session has no chunk {want.key}; it, or what it belongs to, was deleted")
            places = [place.worker_id for place in meta.workers if place.worker_id not in want.tried]
            if places:
                # Readers of copies take turns at their places.
                address = places[number % len(places)]
                by_address.setdefault(address, []).append((want, meta.nbytes))
        return [call for address, found in by_address.items() for call in _cut(address, found)]

    def _run(self, calls):
        """What each call has read, call by call."""
        if len(calls) <= 1:
            yield from (self._ask(*call) for call in calls)
            return
        with ThreadPoolExecutor(min(CALLS_MAX, len(calls)), "tripod-mars-read") as pool:
            yield from pool.map(lambda call: self._ask(*call), calls)

    def _ask(self, address, wants, call_bytes):
        """One call. Answers with the chunks that have come; the others know why they have not."""
        request = wire.GetChunksDataRequest(
            session_id=self._session_id,
            worker_id=address,
            chunk_keys=[want.key for want in wants],
            compression_types=self._offers,
        )
        if any(want.index is not None for want in wants):
            # One for each key.
            request.indexes.extend(want.index or wire.Index() for want in wants)
        done, waiting = [], {}
        for want in wants:
            # A chunk may be asked for twice, with different indexes; they are answered in their order.
            waiting.setdefault(want.key, []).append(want)
        assemblies = {}
        try:
            timeout_s = _CALL_S + call_bytes / (1 << 20)
            for message in self._workers.stream(address, "GetChunksData", request, timeout_s):
                queue = waiting.get(message.chunk_key)
                if not queue:
                    raise DamagedDataError(f"chunk {message.chunk_key} was not asked for")
                if message.HasField("error"):
                    want = queue.pop(0)
                    assemblies.pop(message.chunk_key, None)
                    if message.error.code == _OUT_OF_RANGE:
                        raise IndexError(message.error.message)
                    want.fail(address, message.error.message)
                    continue
                assembly = assemblies.setdefault(message.chunk_key, Assembly(message.chunk_key))
                if assembly.add(message):
                    del assemblies[message.chunk_key]
                    # If it is damaged it still waits.
                    queue[0].finish(assembly.finish())
                    done.append(queue.pop(0))
        except (WorkerError, DamagedDataError) as error:
            _fail(waiting, address, getattr(error, "text", str(error)))
        else:
            _fail(waiting, address, "the answer ended before it came")
        return done


def _fail(waiting, address, why):
    for queue in waiting.values():
        for want in queue:
            want.fail(address, why)


def _cut(address, found):
    """Calls of not too many chunks and bytes, as lists for one address."""
    wants, call_bytes = [], 0
    for want, nbytes in found:
        if wants and (len(wants) == CHUNKS_MAX or call_bytes + nbytes > CALL_BYTES_MAX):
            yield address, wants, call_bytes
            wants, call_bytes = [], 0
        wants.append(want)
        call_bytes += nbytes
    yield address, wants, call_bytes


def _lost(want):
    said = "; ".join(f"{address}: {why}" for address, why in want.why.items())
    return f"no worker has chunk {want.key}, and none made it again{': ' + said if said else ''}"
