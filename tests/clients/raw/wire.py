"""Requests and replies of all dialects, by hand: no generated code is needed.

A request is described by names that mean the same in all dialects (`task`, `key`, ...); the tables say
under which number and in which form each dialect sends them. Default values are not sent, as in proto3.
"""

SERVICES = {"n": "xla.coordination.CoordinationService", "t": "tensorflow.CoordinationService",
            "l": "xla.DistributedRuntimeService"}

COORDINATION_KEY = "type.googleapis.com/tensorflow.CoordinationServiceError"
BARRIER_KEY = "type.googleapis.com/tensorflow.BarrierError"
MISMATCH_KEY = "type.googleapis.com/tensorflow.ServiceMismatchError"

# name -> (field number, form). `service` is the incarnation that N's requests carry in field 1.
REQUESTS = {
    "n": {
        "RegisterTask": {"incarnation": (3, "fixed64"), "task": (5, "task")},
        "Heartbeat": {"service": (1, "service"), "incarnation": (2, "fixed64"), "task": (3, "task")},
        "ShutdownTask": {"service": (1, "service"), "task": (2, "task")},
        "WatchTasks": {"service": (1, "service"), "version": (2, "varint")},
        "InsertKeyValue": {"service": (1, "service"), "kv": (2, "kv"), "overwrite": (3, "varint")},
        "GetKeyValue": {"service": (1, "service"), "key": (2, "text")},
        "TryGetKeyValue": {"service": (1, "service"), "key": (2, "text")},
        "IncrementKeyValue": {"service": (1, "service"), "key": (2, "text"), "by": (3, "varint")},
        "GetKeyValueDir": {"service": (1, "service"), "key": (2, "text")},
        "DeleteKeyValue": {"service": (1, "service"), "key": (2, "text"), "directory": (3, "varint")},
        "Barrier": {"service": (1, "service"), "barrier": (2, "text"), "timeout": (3, "varint"),
                    "tasks": (4, "tasks"), "task": (5, "task"), "counter": (6, "varint")},
        "CancelBarrier": {"service": (1, "service"), "barrier": (2, "text"), "counter": (3, "varint"),
                          "task": (4, "task")},
        "GetAliveTasks": {"service": (1, "service"), "task": (2, "task"), "tasks": (3, "tasks")},
        "PollForError": {"service": (1, "service"), "task": (2, "task")},
        "ReportErrorToService": {"service": (1, "service"), "task": (2, "task"), "code": (3, "varint"),
                                 "text": (4, "text")},
    },
    "t": {
        "RegisterTask": {"incarnation": (3, "fixed64"), "task": (5, "task")},
        "Heartbeat": {"incarnation": (3, "fixed64"), "task": (4, "task")},
        "ShutdownTask": {"task": (1, "task")},
        "WatchTasks": {"version": (2, "varint")},
        "InsertKeyValue": {"kv": (1, "kv"), "overwrite": (2, "varint")},
        "GetKeyValue": {"key": (1, "text")},
        "TryGetKeyValue": {"key": (1, "text")},
        "IncrementKeyValue": {"key": (1, "text"), "by": (2, "varint")},
        "GetKeyValueDir": {"key": (1, "text")},
        "DeleteKeyValue": {"key": (1, "text"), "directory": (2, "varint")},
        "Barrier": {"barrier": (1, "text"), "timeout": (2, "varint"), "tasks": (3, "tasks"),
                    "task": (4, "task"), "counter": (5, "varint")},
        "CancelBarrier": {"barrier": (1, "text"), "task": (2, "task"), "counter": (3, "varint")},
        "GetAliveTasks": {"task": (1, "task"), "tasks": (2, "tasks")},
        "PollForError": {"task": (1, "task")},
    },
    # What L calls a session is the incarnation of the service, what it calls a node is a task.
    "l": {
        "Connect": {"version": (1, "varint"), "timeout": (2, "varint"), "task": (3, "varint"),
                    "client": (4, "varint")},
        "EnumerateDevices": {"service": (1, "varint"), "topology": (3, "text")},
        "Heartbeat": {"service": (1, "varint"), "task": (2, "varint")},
        "Shutdown": {"service": (1, "varint"), "task": (2, "varint")},
        "KeyValueGet": {"service": (1, "varint"), "key": (2, "text"), "timeout": (3, "varint")},
        "KeyValueSet": {"service": (1, "varint"), "key": (2, "text"), "value": (3, "text")},
        "WaitAtBarrier": {"service": (1, "varint"), "barrier": (2, "text"), "task": (3, "varint"),
                          "timeout": (4, "varint")},
    },
}
# One step has one name in both dialects.
PATHS = {"t": {"WatchTasks": "WatchJobState"}}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tagged(number, kind, body):
    return varint(number << 3 | kind) + body


def delimited(number, body):
    return tagged(number, 2, varint(len(body)) + body)


def number_field(number, value):
    return tagged(number, 0, varint(value)) if value else b""


def encode_task(dialect, number, task):
    """N sends a number, T a message, which is there even for task 0."""
    return number_field(number, task) if dialect == "n" else delimited(number, number_field(2, task))


def encode_tasks(dialect, number, tasks):
    if dialect == "n":
        return delimited(number, b"".join(varint(task) for task in tasks)) if tasks else b""
    return b"".join(delimited(number, number_field(2, task)) for task in tasks)


def encode_text(number, text):
    body = text if isinstance(text, bytes) else text.encode()
    return delimited(number, body) if body else b""


def encode_kv(number, pair):
    return delimited(number, encode_text(1, pair[0]) + encode_text(2, pair[1]))


def encode_fixed64(number, value):
    return tagged(number, 1, value.to_bytes(8, "little")) if value else b""


def encode(dialect, rpc, fields):
    """The bytes of a request. Fields that the dialect does not have are left out."""
    forms = {
        "varint": lambda number, value: number_field(number, int(value)),
        "fixed64": encode_fixed64,
        "text": encode_text,
        "kv": encode_kv,
        "task": lambda number, value: encode_task(dialect, number, value),
        "tasks": lambda number, value: encode_tasks(dialect, number, value),
        "service": lambda number, value: delimited(number, encode_fixed64(3, value)),
    }
    table = REQUESTS[dialect][rpc]
    parts = [(table[name], value) for name, value in fields.items() if name in table and value is not None]
    return b"".join(forms[form](number, value) for (number, form), value in sorted(parts, key=lambda p: p[0]))


def decode(data):
    """A message as a list of (field number, value): integers, or bytes for everything delimited."""
    fields, at = [], 0

    def read_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = read_varint()
        kind = key & 7
        if kind == 0:
            value = read_varint()
        elif kind == 1:
            value = int.from_bytes(data[at:at + 8], "little")
            at += 8
        elif kind == 2:
            length = read_varint()
            value = data[at:at + length]
            at += length
        else:
            raise ValueError(f"wire type {kind}")
        fields.append((key >> 3, value))
    return fields


def first(data, number, default=0):
    return next((value for at, value in decode(data) if at == number), default)


def payloads(trailer):
    """The payload map of an error, from the bytes of `grpc-status-details-bin`."""
    found = {}
    for _, entry in decode(trailer):
        found[first(entry, 1, b"").decode()] = first(entry, 2, b"")
    return found
