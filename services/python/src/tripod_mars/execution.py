"""One execution: graphs are sent until all targets are there. What only execution tells is executed first if the rest cannot
be cut without it."""

import re

from . import progress, put, wire
from .errors import ExecutionError, GraphRefusedError, RefusedError, SessionError, TripodError
from .graph import Placed, Sent, ancestors
from .scheduler import SUBMIT_S, new_id

# A node answers a wait after this time, and is asked again.
HELD_S = 20.0
_SHOWN_S = 0.5
# A graph beyond this is sent in parts of it. Nodes take no larger messages.
PART_BYTES = 2 << 20
# No node keeps more of one graph.
GRAPH_BYTES_MAX = 1 << 30
# Keys of one question for metas.
_METAS_MAX = 1000
_SUCCEEDED = "succeeded"
_INVALID_ARGUMENT, _NOT_FOUND, _UNIMPLEMENTED = 3, 5, 12
_REFUSALS = (_INVALID_ARGUMENT, 9, _UNIMPLEMENTED)
_NAMED = re.compile(r"tileable ([A-Za-z0-9._-]+): (.*)", re.DOTALL)
_CHUNK_KEY = re.compile(r"([A-Za-z0-9._-]+)[:~]")


class Options:
    """How graphs are executed."""

    def __init__(self, timeout_s=None, priority=0, fuse=False, max_reschedules=None, show_progress=None):
        self.timeout_s = timeout_s
        self.priority = priority
        self.fuse = fuse
        self.max_reschedules = max_reschedules
        self.show_progress = show_progress

    def message(self):
        found = wire.GraphOptions(fuse=self.fuse, priority=self.priority)
        if self.timeout_s is not None:
            set_duration(found.timeout, self.timeout_s)
        if self.max_reschedules is not None:
            found.max_reschedules = self.max_reschedules
        return found


def set_duration(duration, seconds):
    duration.seconds = int(seconds)
    duration.nanos = int((seconds - int(seconds)) * 1e9)


def execute(session, nodes, options):
    """Executes nodes of which none is there. Afterwards each knows where its chunks are."""
    targets = list({node.key: node for node in nodes}.values())
    put.bring(session, ancestors(targets, session.session_id))
    targets = [node for node in targets if node.placed_in(session.session_id) is None]
    while targets:
        sent = Sent(targets, session.session_id)
        try:
            graph_key = _submit(session, sent, options)
        except GraphRefusedError as refused:
            first = _unknown_inputs(session, sent, refused)
            if not first:
                raise
            execute(session, first, options)
            targets = [node for node in targets if node.placed_in(session.session_id) is None]
            continue
        try:
            _wait(session, sent, graph_key, options)
        except BaseException:
            session.releases.give_up_graph(graph_key)
            raise
        _settle(session, sent, targets, graph_key)
        return


def _unknown_inputs(session, sent, refused):
    """What has to be executed before the node that was refused can be cut."""
    node = sent.nodes.get(refused.key)
    if node is None or not refused.needs_execution or node.placed_in(session.session_id) is not None:
        return []
    return [
        one for one in node.inputs if None in one.content.shape and one.placed_in(session.session_id) is None
    ]


def _submit(session, sent, options):
    graph_key = new_id()
    fields = {"session_id": session.session_id, "graph_key": graph_key}
    try:
        data = sent.message.SerializeToString()
        if len(data) > GRAPH_BYTES_MAX:
            raise GraphRefusedError(
                f"the graph has {len(data)} bytes, and the limit is {GRAPH_BYTES_MAX}: execute some of it first, or have "
                "workers read what it brings"
            )
        if len(data) <= PART_BYTES:
            session.scheduler.call(
                "SubmitTileableGraph",
                held_s=SUBMIT_S,
                request_id=new_id(),
                graph=sent.message,
                target_keys=sent.target_keys,
                options=options.message(),
                **fields,
            )
            return graph_key
        for offset in range(0, len(data), PART_BYTES):
            piece = data[offset : offset + PART_BYTES]
            is_last = offset + PART_BYTES >= len(data)
            if is_last:
                fields.update(target_keys=sent.target_keys, options=options.message())
            part = {"offset": offset, "bytes": piece, "last": is_last}
            session.scheduler.call(
                "SubmitTileableGraph", held_s=SUBMIT_S, request_id=new_id(), part=part, **fields
            )
    except RefusedError as error:
        raise _refusal(session, sent, error) from None
    return graph_key


def _refusal(session, sent, error):
    if error.code == _NOT_FOUND:
        return SessionError(f"session {session.session_id}: {error}")
    if error.code not in _REFUSALS:
        return error
    named = _NAMED.search(str(error))
    if not named:
        return GraphRefusedError(str(error), code=error.code)
    node = sent.nodes.get(named[1])
    # The key says nothing to people; the line does.
    what = f"{node.op}: {named[2]}" if node is not None else named[2]
    return GraphRefusedError(what, str(node.line) if node is not None else "", named[1], error.code)


def _wait(session, sent, graph_key, options):
    """Until the graph has ended; it goes on when its leader is gone, and so does this. Raises `ExecutionError`."""
    shown, logged = progress.bar(options.show_progress, "graph"), progress.Logged(f"graph {graph_key}")
    held_s = HELD_S if shown is None else _SHOWN_S
    try:
        while True:
            request = wire.SCHEDULER["WaitTileableGraph"][1](session_id=session.session_id, graph_key=graph_key)
            set_duration(request.timeout, held_s)
            answer = session.scheduler.send("WaitTileableGraph", request, held_s=held_s)
            progress.update(shown, answer.info)
            logged.update(answer.info)
            if answer.finished:
                break
    except BaseException as error:
        if not isinstance(error, TripodError):
            # Whoever waited was interrupted.
            _stop(session, graph_key)
        raise
    finally:
        if shown is not None:
            shown.close()
    state = wire.GRAPH_STATES.get(answer.info.state, str(answer.info.state))
    if state != "SUCCEEDED":
        raise _failure(sent, state, answer.info)


def _stop(session, graph_key):
    try:
        session.scheduler.call(
            "StopTileableGraph",
            patience_s=2.0,
            request_id=new_id(),
            session_id=session.session_id,
            graph_key=graph_key,
        )
    except TripodError:
        # Its session ends it.
        pass


def _failure(sent, state, info):
    if not info.HasField("error"):
        return ExecutionError(state, "the graph was stopped" if state == "CANCELLED" else "")
    error = info.error
    keys = [error.tileable_key] if error.tileable_key else []
    keys += [found[1] for found in map(_CHUNK_KEY.match, error.chunk_keys) if found]
    node = next((sent.nodes[key] for key in keys if key in sent.nodes), None)
    return ExecutionError(
        error.code or state,
        error.message,
        error.traceback,
        str(node.line) if node is not None else "",
        node.op if node is not None else "",
        error.worker_id,
        error.attempt,
    )


def _settle(session, sent, targets, graph_key):
    """Notes where the targets are, each with a count of its own."""
    metas = []
    for begin in range(0, len(sent.target_keys), _METAS_MAX):
        metas.extend(_metas(session, sent.target_keys[begin : begin + _METAS_MAX]))
    holds = session.releases.hold_graph(graph_key, sent.target_keys)
    for node, meta, hold in zip(targets, metas, holds):
        if not meta.found:
            raise SessionError(f"session {session.session_id} was deleted while its graph ran")
        node.settle(_placed(session, meta, hold))


def _metas(session, keys):
    """Metas of a graph that has ended. The node that said so needs not ask the others whether it knows all; it is another one
    that answers if that has gone meanwhile."""
    fields = {"session_id": session.session_id, "keys": keys}
    metas = session.scheduler.call("GetTileableMetas", stale_ok=True, **fields).metas
    if all(meta.found and meta.state == _SUCCEEDED for meta in metas):
        return metas
    return session.scheduler.call("GetTileableMetas", **fields).metas


def placed_of(session, meta, key):
    """Where a tileable is, with the extents that its chunks have."""
    return _placed(session, meta, session.releases.hold(key))


def _placed(session, meta, hold):
    placed = Placed.of(session, meta, hold)
    if any(None in axis for axis in placed.splits):
        _measure(session, placed)
    return placed


def _measure(session, placed):
    """Takes extents from the chunks."""
    counts = [len(axis) for axis in placed.splits]
    for place, meta in enumerate(session.reader.metas(placed.chunk_keys)):
        for axis in reversed(range(len(counts))):
            place, part = divmod(place, counts[axis])
            if axis < len(meta.shape.extents) and meta.shape.extents[axis] >= 0:
                placed.splits[axis][part] = meta.shape.extents[axis]
