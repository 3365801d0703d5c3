"""Tensors and frames that a cluster of Tripod computes.

    import tripod_mars as mars
    import tripod_mars.tensor as mt

    mars.new_session("node1:7700,node2:7700,node3:7700")
    a = mt.random.rand(1_000, 1_000, chunk_size=250, seed=1)
    print(((a + 1) @ a.T).sum(axis=0).execute().fetch())

Knows: the calls of `mars.v1`, what operators make of shapes and types, and how bytes of chunks come. Does not know: how
graphs are cut into chunks, where those are computed, or what becomes of them; that is the cluster's.

Invariants:
* Nothing is computed before `execute`, and no data passes a scheduler.
* A call that changes something has an id that all of its attempts share.
* What a program refers to has a count in the cluster, and what it has forgotten has none, after a moment.

| module | what |
|---|---|
| `tensor`, `dataframe` | what programs write |
| `tileable`, `graph`, `place` | what is to be computed; the graph that is sent; the line that made it |
| `session`, `execution`, `release`, `progress` | sessions; one execution; counts that have ended; the bar |
| `reader`, `parts`, `codec`, `image`, `compression` | chunks from workers |
| `put` | much data of the program, which goes to workers before its graph |
| `mutable`, `mutable_frame` | tensors and frames that are written in place |
| `context` | the calls as functions |
| `scheduler`, `workers`, `wire` | calls to nodes and to workers; messages |
| `visualize` | graphs as pictures |
| `dtypes`, `errors` | types of elements; what can go wrong |
| `chunk`, `worker` | what workers compute |
"""

import importlib

_HOMES = {
    "Context": "context",
    "Environment": "context",
    "get_context": "context",
    "ChunkLostError": "errors",
    "DamagedDataError": "errors",
    "ExecutionError": "errors",
    "GraphRefusedError": "errors",
    "MutableError": "errors",
    "NotExecutedError": "errors",
    "RefusedError": "errors",
    "SessionError": "errors",
    "TripodError": "errors",
    "UnreachableError": "errors",
    "UnsupportedError": "errors",
    "MutableTensor": "mutable",
    "MutableDataFrame": "mutable_frame",
    "Session": "session",
    "get_default_session": "session",
    "new_session": "session",
    "set_default_session": "session",
    "execute": "tileable",
    "fetch": "tileable",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    """What programs use is imported when they use it: workers compute chunks and need none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    """What programs may use. The modules behind it are found by their names."""
    return list(__all__)
