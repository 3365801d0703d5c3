"""Messages and paths of the protocols, from the compiled descriptors that come with the package.

They live in a pool of their own: names such as `String` and `Task` have no package, and must not meet those
of other libraries in the same process.
"""

import pathlib

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_pool = descriptor_pool.DescriptorPool()
for _file in descriptor_pb2.FileDescriptorSet.FromString(
    (pathlib.Path(__file__).parent / "descriptors.bin").read_bytes()
).file:
    _pool.AddSerializedFile(_file.SerializeToString())


def message(name):
    """The class of a message, by its full name in the .proto files."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(name))


Obj = message("Obj")
Value = message("Value")
Function = message("Function")
AckReply = message("AckReply")
RegisterWorkerRequest = message("RegisterWorkerRequest")
RegisterWorkerReply = message("RegisterWorkerReply")
ExportFunctionRequest = message("ExportFunctionRequest")
ExportReusableVariableRequest = message("ExportReusableVariableRequest")
KillWorkersRequest = message("KillWorkersRequest")
KillWorkersReply = message("KillWorkersReply")
SchedulerInfoRequest = message("SchedulerInfoRequest")
SchedulerInfoReply = message("SchedulerInfoReply")
TaskInfoRequest = message("TaskInfoRequest")
TaskInfoReply = message("TaskInfoReply")
ObjStoreInfoRequest = message("ObjStoreInfoRequest")
ObjStoreInfoReply = message("ObjStoreInfoReply")
ExecuteTaskRequest = message("ExecuteTaskRequest")
ExecuteTaskReply = message("ExecuteTaskReply")
ImportFunctionRequest = message("ImportFunctionRequest")
ImportFunctionReply = message("ImportFunctionReply")
DieRequest = message("DieRequest")
DieReply = message("DieReply")
RayBatchRequest = message("tripod.v1.RayBatchRequest")
RayBatchResponse = message("tripod.v1.RayBatchResponse")
RayLineRequest = message("tripod.v1.RayLineRequest")
RayLineResponse = message("tripod.v1.RayLineResponse")
RayCancelOrder = message("tripod.v1.RayCancelOrder")
RayTellRequest = message("tripod.v1.RayTellRequest")
RayTellResponse = message("tripod.v1.RayTellResponse")
RayWaitRequest = message("tripod.v1.RayWaitRequest")
RayWaitResponse = message("tripod.v1.RayWaitResponse")
HeartbeatRequest = message("tripod.v1.HeartbeatRequest")
HeartbeatResponse = message("tripod.v1.HeartbeatResponse")
LocalRequest = message("tripod.v1.LocalRequest")
LocalReply = message("tripod.v1.LocalReply")
LocalRelayed = message("tripod.v1.LocalRelayed")

# Paths of the calls that the package makes.
REGISTER_WORKER = "/Scheduler/RegisterWorker"
EXPORT_FUNCTION = "/Scheduler/ExportFunction"
EXPORT_VARIABLE = "/Scheduler/ExportReusableVariable"
KILL_WORKERS = "/Scheduler/KillWorkers"
SCHEDULER_INFO = "/Scheduler/SchedulerInfo"
TASK_INFO = "/Scheduler/TaskInfo"
STORE_INFO = "/ObjStore/ObjStoreInfo"
BATCH = "/tripod.v1.Ray/Batch"
LINE = "/tripod.v1.RayLine/Batches"
WAIT = "/tripod.v1.Ray/Wait"
HEARTBEAT = "/tripod.v1.Membership/Heartbeat"

# Metadata keys.
JOB = "x-tripod-job"
SESSION = "x-tripod-session"
SEQ = "x-tripod-seq"
ACKED = "x-tripod-acked"
WORKER = "x-tripod-worker"
SLOTS = "x-tripod-slots"
CPUS_MILLI = "x-tripod-cpus-milli"
MEMORY_BYTES = "x-tripod-memory-bytes"
RESOURCES_MILLI = "x-tripod-resources-milli"
EXTENDED = "x-tripod-extended"
LEADER = "x-tripod-leader"
REASON = "x-tripod-reason"
OUTAGE = "x-tripod-outage"
BASE_OBJECT = "x-tripod-base-object"
BASE_OPERATION = "x-tripod-base-operation"

# The reason of refusals that end when the cluster's feature level rises.
LEVEL_LOW = "level"

# Numbers with a meaning of their own in the lists of SchedulerInfo; people see -1, as in 2016.
DEALLOCATED = 2**64 - 1

# gRPC status codes, as numbers.
OK = 0
CANCELLED = 1
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
UNIMPLEMENTED = 12
UNAVAILABLE = 14
DATA_LOSS = 15
