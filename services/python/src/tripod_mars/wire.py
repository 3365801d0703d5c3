"""Messages and paths of `mars.v1`, from the compiled descriptors that come with the package.

They live in a pool of their own, as those of `tripod_ray` do, so that they meet those of no other library.
"""

import pathlib

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_pool = descriptor_pool.DescriptorPool()
for _file in descriptor_pb2.FileDescriptorSet.FromString(
    (pathlib.Path(__file__).parent / "descriptors.bin").read_bytes()
).file:
    _pool.AddSerializedFile(_file.SerializeToString())

_PACKAGE = "mars.v1."


def message(name):
    """The class of a message of `mars.v1`."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(_PACKAGE + name))


def enumeration(name):
    """An enum of `mars.v1`, as a dict of numbers by name."""
    values = _pool.FindEnumTypeByName(_PACKAGE + name).values
    return {value.name: value.number for value in values}


def _methods(service):
    found = _pool.FindServiceByName(_PACKAGE + service)
    return {
        method.name: (
            f"/{_PACKAGE}{service}/{method.name}",
            message_factory.GetMessageClass(method.input_type),
            message_factory.GetMessageClass(method.output_type),
        )
        for method in found.methods
    }


# For each call its path, the class of its request and that of its answer.
SCHEDULER = _methods("Scheduler")
WORKER = _methods("Worker")

ChunkData = message("ChunkData")
ChunkGraph = message("ChunkGraph")
ChunkMeta = message("ChunkMeta")
ChunkNode = message("ChunkNode")
Column = message("Column")
DimIndex = message("DimIndex")
Extents = message("Extents")
GraphInfo = message("GraphInfo")
GraphOptions = message("GraphOptions")
Index = message("Index")
MutableBatch = message("MutableBatch")
MutableInfo = message("MutableInfo")
Scalar = message("Scalar")
TileableGraph = message("TileableGraph")
TileableMeta = message("TileableMeta")
TileableNode = message("TileableNode")

GetChunksDataRequest = message("GetChunksDataRequest")
GetMutableChunksDataRequest = message("GetMutableChunksDataRequest")
PutChunksDataResponse = message("PutChunksDataResponse")
PutMutableChunksDataResponse = message("PutMutableChunksDataResponse")

GRAPH_STATES = {number: name[len("GRAPH_STATE_") :] for name, number in enumeration("GraphState").items()}
MUTABLE_STATES = {number: name[len("MUTABLE_STATE_") :] for name, number in enumeration("MutableState").items()}
WORKER_STATUSES = {number: name[len("WORKER_STATUS_") :] for name, number in enumeration("WorkerStatus").items()}
SCHEDULER_ROLES = {number: name[len("SCHEDULER_ROLE_") :] for name, number in enumeration("SchedulerRole").items()}

KIND_TENSOR = enumeration("TileableKind")["TILEABLE_KIND_TENSOR"]
KIND_FRAME = enumeration("TileableKind")["TILEABLE_KIND_FRAME"]

COMPRESSION_NONE = 0
COMPRESSION_LZ4_FRAME = 1
COMPRESSION_ZSTD = 2
COMPRESSION_GZIP = 3

ENCODING_NPY = 1
ENCODING_TPCH = 3
