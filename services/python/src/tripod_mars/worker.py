"""Workers of chunks: `python -m tripod_ray.worker --mars --address HOST:PORT,...`.

They have one function more than others, which belongs to every program and is exported by none. A chunk is computed by
what is in `chunk.operators`; nothing that a graph brings is ever run or unpickled.
"""

from .chunk import layout, operators
from .chunk.node import Node

__all__ = ["FUNCTION", "register"]

FUNCTION = "tripod.mars.chunk"


def compute(argument, inputs):
    """The chunk of an encoded `mars.v1.ChunkNode` and pairs of memory and metadata offset, ready to be written. Raises
    `UnknownOperatorError`, `DamagedChunkError` and what the operator raises."""
    node = Node.decoded(argument)
    values = []
    for place, (view, metadata_offset) in enumerate(inputs):
        try:
            values.append(layout.unpack(view, metadata_offset))
        except layout.DamagedChunkError as error:
            raise layout.DamagedChunkError(f"input {place} of {node.name}: {error}") from None
    return layout.pack(operators.run(node, values))


def register():
    """Has this process compute chunks, when it is a worker."""
    from tripod_ray import raw

    def function(argument, inputs):
        chunk = compute(argument, inputs)
        return raw.RawResult(
            size=chunk.size_bytes,
            write=chunk.write,
            metadata_offset=chunk.metadata_offset,
            shape=chunk.shape,
            element_type=chunk.element_type,
            bytes=chunk.data_bytes,
        )

    raw.register(FUNCTION, function)
