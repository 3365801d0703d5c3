"""Values as `Obj` messages: what programs in other languages can read, and pickles of everything else.

An `Obj` is a union by presence of one field. Simple values of exactly the built-in types, and small numpy
arrays of standard types, are written as such; whatever is not simple is pickled as a whole. A pickle with
handles inside is the tuple `("tripod.pickle", pickle, id, id, ...)`, so that the scheduler sees the ids.
Values of users that would look like one of our own marks are pickled too.
"""

import pickle
import sys

import cloudpickle
from google.protobuf.message import DecodeError

from .errors import ObjectLostError, TaskCancelledError, TaskError
from .reference import ObjectRef, collecting
from .wire import Obj

PICKLE_MARK = "tripod.pickle"
ERROR_MARK = "tripod.error"
CALL_MARK = "tripod.call"
# The word for an exception that a task raised; other words are the scheduler's. Workers in Rust wrote it in
# small letters.
EXCEPTION = TaskError.reason
_EXCEPTIONS = frozenset((EXCEPTION, EXCEPTION.lower()))

# Larger structures are pickled: building messages takes longer than pickling from here on.
NODES_MOST = 500
DEPTH_MOST = 20
# Larger arrays are kept as they are in memory.
ARRAY_ELEMENTS_MOST = 64

# numpy's own numbers of types, which the field has carried since 2016, and the field with the elements.
_DTYPES = {
    "bool": (0, "uint_data"),
    "int8": (1, "int_data"),
    "uint8": (2, "uint_data"),
    "int16": (3, "int_data"),
    "uint16": (4, "uint_data"),
    "int32": (5, "int_data"),
    "uint32": (6, "uint_data"),
    "int64": (7, "int_data"),
    "uint64": (8, "uint_data"),
    "float32": (11, "float_data"),
    "float64": (12, "double_data"),
}
_DTYPE_NAMES = {number: (name, field) for name, (number, field) in _DTYPES.items()}


class _NotSimple(Exception):
    """The value needs a pickle."""


def write(obj, value, refs):
    """Writes a value into an empty `Obj`; handles inside are appended to `refs`, once per occurrence."""
    if not write_simple(obj, value, refs):
        own = []
        write_pickle(obj, dumps(value, own), own)
        refs.extend(own)


def write_simple(obj, value, refs):
    """Writes a value that needs no pickle; otherwise answers False and leaves everything as it was."""
    before = len(refs)
    try:
        _Writer(refs).write(obj, value, 0)
    except _NotSimple:
        del refs[before:]
        obj.Clear()
        return False
    return True


def write_pickle(obj, data, refs):
    """Writes a pickle, and the handles that are in it."""
    if not refs:
        obj.pyobj_data.data = data
        return
    add = obj.tuple_data.elem.add
    add().string_data.data = PICKLE_MARK.encode()
    add().pyobj_data.data = data
    for ref in refs:
        add().objectid_data.data = ref.id


def dumps(value, refs, buffers=None):
    """A pickle; handles go to `refs`, large buffers to `buffers` if it is given."""
    collect = buffers.append if buffers is not None else None
    with collecting(refs):
        if type(value) in (bytes, bytearray) or _is_plain_array(value):
            return pickle.dumps(value, protocol=5, buffer_callback=collect)
        return cloudpickle.dumps(value, protocol=5, buffer_callback=collect)


def loads(data, refs, buffers=()):
    with collecting(refs):
        return pickle.loads(data, buffers=buffers)


def write_error(obj, error):
    """Writes why a task failed, as it is stored in place of its results."""
    entries = {
        ERROR_MARK: error.reason,
        "function": error.function_name,
        "text": error.traceback_text,
        "history": [],
    }
    for key, value in entries.items():
        entry = obj.dict_data.elem.add()
        entry.key.string_data.data = key.encode()
        _Writer([]).write(entry.value, value, 0)
    if error.cause is not None:
        try:
            data = cloudpickle.dumps(error.cause)
            # Exceptions with arguments of their own are often pickled and cannot be read back.
            pickle.loads(data)
        except Exception:  # Whatever its author's code raises: the text is there without it.
            return
        entry = obj.dict_data.elem.add()
        entry.key.string_data.data = b"cause"
        entry.value.pyobj_data.data = data


def read(obj, handle):
    """The value of an `Obj`. `handle(id)` makes a handle of an id inside it.

    Raises `TaskError` or `ObjectLostError` if it stands for a failure.
    """
    for name, reader in _READERS:
        if obj.HasField(name):
            return reader(getattr(obj, name), handle)
    raise ValueError("an Obj without a value")


def failure(data):
    """The failure that an encoded `Obj` stands for, without the exception itself: nothing is unpickled. None if it stands
    for none, or is something else."""
    try:
        entries = Obj.FromString(bytes(data)).dict_data.elem
    except DecodeError:
        return None
    if not entries or entries[0].key.string_data.data != ERROR_MARK.encode():
        return None
    texts = {_text(entry.key): entry.value for entry in entries}
    told = {name: _text(texts[name]) for name in (ERROR_MARK, "function", "text") if name in texts}
    if "history" in texts:
        told["history"] = [_text(line) for line in texts["history"].list_data.elem]
    return _error(told)


def ids(obj):
    """The ids inside an `Obj`, once per occurrence. Nothing is unpickled."""
    left = [obj]
    while left:
        at = left.pop()
        if at.HasField("objectid_data"):
            yield at.objectid_data.data
        yield from at.array_data.objectid_data
        left.extend(at.list_data.elem)
        left.extend(at.tuple_data.elem)
        for entry in at.dict_data.elem:
            left.extend((entry.key, entry.value))


def _text(obj):
    return obj.string_data.data.decode("utf-8", "replace")


class _Writer:
    def __init__(self, refs):
        self.refs = refs
        self.nodes = 0

    def write(self, obj, value, depth):
        self.nodes += 1
        if self.nodes > NODES_MOST or depth > DEPTH_MOST:
            raise _NotSimple
        writer = _WRITERS.get(type(value))
        if writer is not None:
            writer(self, obj, value, depth)
        elif type(value) is ObjectRef:
            obj.objectid_data.data = value.id
            self.refs.append(value)
        else:
            _write_array(obj, value)


def _write_none(_, obj, value, depth):
    obj.empty_data.SetInParent()


def _write_bool(_, obj, value, depth):
    obj.bool_data.data = value


def _write_int(_, obj, value, depth):
    if not -(2**63) <= value < 2**63:
        raise _NotSimple
    obj.int_data.data = value


def _write_float(_, obj, value, depth):
    obj.double_data.data = value


def _write_str(_, obj, value, depth):
    try:
        obj.string_data.data = value.encode()
    except UnicodeEncodeError:
        raise _NotSimple from None


def _write_list(writer, obj, value, depth):
    obj.list_data.SetInParent()
    add = obj.list_data.elem.add
    for element in value:
        writer.write(add(), element, depth + 1)


def _write_tuple(writer, obj, value, depth):
    if value and value[0] == PICKLE_MARK and type(value[0]) is str:
        raise _NotSimple
    obj.tuple_data.SetInParent()
    add = obj.tuple_data.elem.add
    for element in value:
        writer.write(add(), element, depth + 1)


def _write_dict(writer, obj, value, depth):
    obj.dict_data.SetInParent()
    add = obj.dict_data.elem.add
    for key, element in value.items():
        if type(key) is str and key.startswith("tripod."):
            raise _NotSimple
        entry = add()
        writer.write(entry.key, key, depth + 1)
        writer.write(entry.value, element, depth + 1)


_WRITERS = {
    type(None): _write_none,
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    list: _write_list,
    tuple: _write_tuple,
    dict: _write_dict,
}


def _is_plain_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject


def _write_array(obj, value):
    numpy = sys.modules.get("numpy")
    if numpy is None:
        raise _NotSimple
    scalar = isinstance(value, numpy.generic)
    known = _DTYPES.get(value.dtype.name) if scalar or type(value) is numpy.ndarray else None
    if known is None or value.size > ARRAY_ELEMENTS_MOST or not value.dtype.isnative:
        raise _NotSimple
    number, field = known
    array = obj.array_data
    array.SetInParent()
    array.dtype = number
    array.is_scalar = scalar
    array.shape.extend(value.shape)
    flat = value.reshape(-1)
    getattr(array, field).extend((flat.astype("uint8") if number == 0 else flat).tolist())


def _read_list(message, handle):
    return [read(element, handle) for element in message.elem]


def _read_tuple(message, handle):
    elements = message.elem
    if len(elements) > 1 and elements[0].string_data.data == PICKLE_MARK.encode():
        refs = [handle(element.objectid_data.data) for element in elements[2:]]
        return loads(elements[1].pyobj_data.data, refs)
    return tuple(read(element, handle) for element in elements)


def _read_dict(message, handle):
    made = {read(entry.key, handle): read(entry.value, handle) for entry in message.elem}
    if ERROR_MARK in made:
        raise _error(made)
    return made


def _error(entries):
    reason, function = entries[ERROR_MARK], entries.get("function") or ""
    text, history = entries.get("text") or "", entries.get("history") or ()
    if reason in _EXCEPTIONS:
        return TaskError(function, entries.get("cause"), text)
    if reason == TaskCancelledError.REASON:
        return TaskCancelledError(function, text, history)
    return ObjectLostError(reason, function, text, history)


def _read_array(message, _):
    import numpy

    name, field = _DTYPE_NAMES[message.dtype]
    array = numpy.array(getattr(message, field), dtype=name).reshape(tuple(message.shape))
    if message.is_scalar:
        return array[()]
    # As with arrays in shared memory: whoever wants to change it makes a copy.
    array.flags.writeable = False
    return array


_READERS = (
    ("empty_data", lambda message, handle: None),
    ("int_data", lambda message, handle: message.data),
    ("pyobj_data", lambda message, handle: loads(message.data, ())),
    ("string_data", lambda message, handle: message.data.decode("utf-8", "surrogateescape")),
    ("bool_data", lambda message, handle: message.data),
    ("double_data", lambda message, handle: message.data),
    ("list_data", _read_list),
    ("tuple_data", _read_tuple),
    ("dict_data", _read_dict),
    ("array_data", _read_array),
    ("objectid_data", lambda message, handle: handle(message.data)),
    ("long_data", lambda message, handle: message.data),
)
