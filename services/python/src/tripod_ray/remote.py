"""Remote functions: `@remote` and `f.remote()`."""

import functools
import hashlib
import inspect
import pickle
import threading

import cloudpickle

from . import layout, needs, runtime, values, wire
from .calls import Alone
from .edge import interface
from .reference import ObjectRef
from .typed import Typed, Types
from .values import CALL_MARK
from .wire import Obj

# How an exported function of ours begins; workers in other languages leave it alone.
FUNCTION_MAGIC = b"TPY1"
# Larger arguments are put into the store first, and so are further ones when a task has this much inside.
_ARGUMENT_BYTES_MOST = 64 * 1024
_TASK_BYTES_MOST = 256 * 1024
# The scheduler's own number of attempts after the first.
RETRIES = 3

_state = threading.local()


class RemoteFunction:
    """A function that workers execute. Made by `remote`.

    Its key is `module.name:digest`; the digest is of the function as it is serialised, so programs with
    functions of the same name do not disturb each other, and a function that is defined again is another one.
    """

    def __init__(
        self, function, num_returns=1, max_retries=None, retry_exceptions=False, types=None, **of_worker
    ):
        if not callable(function) or inspect.isclass(function):
            raise TypeError("only functions can be remote")
        options = _checked(num_returns, max_retries, retry_exceptions)
        self._needs = needs.changed(needs.NONE, of_worker)
        functools.update_wrapper(self, function)
        self._function = function if types is None else Typed(function, types)
        self._types = types
        self._num_returns = num_returns
        self._options = options
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._signature = inspect.signature(function)
        self._least, self._most = _arity(self._signature)
        self._key = None
        self._encoded_key = None

    def __call__(self, *args, **kwargs):
        raise TypeError(f"{self._name} is a remote function: call {self.__name__}.remote() instead")

    def options(self, **changed):
        """The same function with another `num_returns`, `max_retries`, `retry_exceptions`, `num_cpus`, `memory`,
        `resources` or `priority`."""
        of_worker = {name: changed.pop(name) for name in needs.NAMES & set(changed)}
        unknown = set(changed) - {"num_returns", "max_retries", "retry_exceptions"}
        if unknown:
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        max_retries, retry_exceptions = self._options
        num_returns = changed.get("num_returns", self._num_returns)
        options = _checked(
            num_returns,
            changed.get("max_retries", max_retries),
            changed.get("retry_exceptions", retry_exceptions),
        )
        other = RemoteFunction.__new__(RemoteFunction)
        other.__dict__.update(self.__dict__)
        other._options = options
        other._needs = needs.changed(self._needs, of_worker)
        if num_returns != self._num_returns:
            if self._function is None or self._types is not None:
                raise TypeError("num_returns is changed where the function is defined")
            other._num_returns, other._key, other._encoded_key = num_returns, None, None
        return other

    @interface
    def remote(self, *args, **kwargs):
        """Submits a task and answers at once: with a handle, a list of handles if there are several results,
        or None if there is none. Arguments that are handles are replaced by their values; the task waits for
        them."""
        process = runtime.process()
        call = self._bind(args, kwargs)
        if self._types is not None:
            self._types.check_arguments(self._name, call)
        if self._encoded_key not in process.exported:
            self._export(process)
        arguments = _arguments(process, call, self._options)
        # Nothing is said of needs where there are none.
        of_worker = () if self._needs == needs.NONE else (self._needs,)
        refs = process.submit(self._encoded_key, arguments, self._num_returns, self._options, *of_worker)
        if self._num_returns == 1:
            return refs[0]
        return refs or None

    def __reduce__(self):
        defining = getattr(_state, "defining", None)
        if defining is not None and self in defining:
            # A function that refers to itself has no key yet.
            _state.cyclic = True
            return _unknown, (self._name,)
        self._define()
        fields = (self._key, self._num_returns, self._options, self._name, self._signature, self._types)
        if self._needs != needs.NONE:
            # Processes with earlier versions of this package read the others.
            fields += (tuple(self._needs),)
        restored = (self._key, cloudpickle.dumps(fields))
        # Whoever gets the function may submit it, so it must be known before.
        process = runtime.connected()
        if process is not None and self._encoded_key not in process.exported and defining is None:
            self._export(process)
        return _restored, restored

    def _define(self):
        """Finds the key."""
        if self._key is not None:
            return
        outer, outer_cyclic = getattr(_state, "defining", ()) or (), getattr(_state, "cyclic", False)
        _state.defining, _state.cyclic = (*outer, self), False
        try:
            digest = hashlib.sha256(cloudpickle.dumps((self._function, self._num_returns)))
            if _state.cyclic:
                # The digest does not cover what it refers back to, so it is made this process's own.
                digest.update(runtime.PROCESS_KEY)
        finally:
            _state.cyclic = _state.cyclic and bool(outer) or outer_cyclic
            _state.defining = outer or None
        self._key = f"{self._name}:{digest.hexdigest()[:12]}"
        self._encoded_key = self._key.encode()

    def _export(self, process):
        self._define()
        if self._encoded_key in process.exported:
            return
        process.exported.add(self._encoded_key)
        if self._function is None:
            # It came from another process, which has exported it.
            return
        try:
            # Functions that this one refers to are exported while it is serialised.
            implementation = export_bytes(self._key, self._num_returns, self._function)
            function = wire.Function(implementation=implementation)
            process.outbox.ask(Alone(wire.EXPORT_FUNCTION, wire.ExportFunctionRequest(function=function)))
        except BaseException:
            process.exported.discard(self._encoded_key)
            raise

    def _bind(self, args, kwargs):
        """The call as positional arguments; what can be given by name only comes last, with its names."""
        if not kwargs:
            if not self._least <= len(args) <= self._most:
                self._signature.bind(*args)  # Raises Python's own text.
            return args, ()
        bound = self._signature.bind(*args, **kwargs)
        return bound.args, tuple(bound.kwargs.items())


def remote(
    *function,
    num_returns=1,
    max_retries=None,
    retry_exceptions=False,
    num_cpus=None,
    memory=None,
    resources=None,
    priority=None,
):
    """Makes a function remote: `@remote` or `@remote(num_returns=2)`.

    With two lists, `@remote([int, str], [float])`, the types of arguments and results are declared, as in
    2016: arguments are checked when the function is submitted and when it runs, results when it has run; a
    task with a result of another type fails. The last type is that of all further arguments of `*args`. None
    is the type of None, `object` that of anything, and a handle passes for any type where it is not read.

    `max_retries` are the attempts after the first when workers die (3 if not given, -1: without limit);
    `retry_exceptions` has exceptions of the function tried again as well, within the same number.

    `num_cpus`, `memory` (bytes, or a text such as `4GiB`) and `resources` (`{"gpu": 0.5}`) are what a worker must have
    for the task; fractions are counted in thousandths. Of the tasks that can run, one with the highest `priority`, an
    integer and 0 if not given, is the next. They need feature level 10 of the cluster.
    """
    of_worker = {"num_cpus": num_cpus, "memory": memory, "resources": resources, "priority": priority}
    if len(function) == 2 and all(isinstance(types, (list, tuple)) for types in function):
        types = Types(*function)
        return lambda function: RemoteFunction(
            function, len(types.results), max_retries, retry_exceptions, types, **of_worker
        )
    if function:
        if len(function) != 1:
            raise TypeError("remote takes one function, or the types of its arguments and of its results")
        return RemoteFunction(function[0], num_returns, max_retries, retry_exceptions, **of_worker)
    return lambda function: RemoteFunction(
        function, num_returns, max_retries, retry_exceptions, **of_worker
    )


def _checked(num_returns, max_retries, retry_exceptions):
    if num_returns < 0:
        raise ValueError("num_returns is at least 0")
    if max_retries is not None and max_retries < -1:
        raise ValueError("max_retries is at least 0, or -1 for no limit")
    return max_retries, bool(retry_exceptions)


def export_bytes(key, num_returns, function):
    """A function as workers import it. Name and results can be read though the function itself cannot."""
    return FUNCTION_MAGIC + pickle.dumps((key, num_returns, cloudpickle.dumps(function)))


def _restored(key, fields):
    _, num_returns, options, name, signature, types, *of_worker = cloudpickle.loads(fields)
    made = RemoteFunction.__new__(RemoteFunction)
    made.__name__ = made.__qualname__ = name.rpartition(".")[2]
    made._function = None
    made._types = types
    made._needs = needs.Needs(*of_worker[0]) if of_worker else needs.NONE
    made._key, made._encoded_key = key, key.encode()
    made._num_returns, made._options, made._name, made._signature = num_returns, options, name, signature
    made._least, made._most = _arity(signature)
    return made


def _unknown(name):
    raise RuntimeError(f"{name} was serialised only to find its key")


def _arguments(process, call, options):
    positional, named = call
    inside, arguments = 0, []
    for value in positional:
        inside += _argument(process, value, arguments, inside)
    for _, value in named:
        inside += _argument(process, value, arguments, inside)
    if named or options[1]:
        arguments.append((_mark([name for name, _ in named], options), ()))
    return arguments


def _argument(process, value, arguments, inside):
    """Appends one argument, and answers how many bytes it adds to the task."""
    if type(value) is ObjectRef:
        arguments.append(value)
        return 0
    most = min(_ARGUMENT_BYTES_MOST, _TASK_BYTES_MOST - inside)
    obj, refs = Obj(), []
    if not values.write_simple(obj, value, refs):
        buffers = []
        data = values.dumps(value, refs, buffers)
        if len(data) + sum(buffer.raw().nbytes for buffer in buffers) > most:
            arguments.append(process.put_packed(layout.pack_pickle(data, buffers, refs)))
            return 0
        if buffers:
            refs = []
            data = values.dumps(value, refs)
        values.write_pickle(obj, data, refs)
    size = obj.ByteSize()
    if size > most:
        arguments.append(process.put_packed(layout.pack(value)))
        return 0
    arguments.append((obj, refs))
    return size


def _mark(names, options):
    """The last argument of a call with arguments that are given by name, or whose worker must know about
    retries."""
    obj = Obj()
    entries = {CALL_MARK: names}
    if options[1]:
        entries["retries"] = RETRIES if options[0] is None else options[0]
    for key, value in entries.items():
        entry = obj.dict_data.elem.add()
        entry.key.string_data.data = key.encode()
        values.write_simple(entry.value, value, [])
    return obj


def _arity(signature):
    """How many positional arguments a call without names may have."""
    least = most = 0
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            least += parameter.default is parameter.empty
        elif parameter.kind is parameter.VAR_POSITIONAL:
            most = float("inf")
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            least = float("inf")
    return least, most
