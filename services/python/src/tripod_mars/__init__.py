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
| `mutable` | tensors that are written in place |
| `context` | the calls as functions |
| `scheduler`, `workers`, `wire` | calls to nodes and to workers; messages |
| `visualize` | graphs as pictures |
| `dtypes`, `errors` | types of elements; what can go wrong |
| `chunk`, `worker` | what workers compute |
"""

from .context import Context, Environment, get_context
from .errors import (
    ChunkLostError,
    DamagedDataError,
    ExecutionError,
    GraphRefusedError,
    MutableError,
    NotExecutedError,
    RefusedError,
    SessionError,
    TripodError,
    UnreachableError,
    UnsupportedError,
)
from .mutable import MutableTensor
from .session import Session, get_default_session, new_session, set_default_session
from .tileable import execute, fetch

__all__ = [
    "ChunkLostError",
    "Context",
    "DamagedDataError",
    "Environment",
    "ExecutionError",
    "GraphRefusedError",
    "MutableError",
    "MutableTensor",
    "NotExecutedError",
    "RefusedError",
    "Session",
    "SessionError",
    "TripodError",
    "UnreachableError",
    "UnsupportedError",
    "execute",
    "fetch",
    "get_context",
    "get_default_session",
    "new_session",
    "set_default_session",
]
