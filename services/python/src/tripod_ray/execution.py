"""One task, from its arguments to its results."""

import logging
import pickle
import threading
import traceback

import cloudpickle

from . import calls, layout, raw, values, wire
from .context import TaskContext
from .errors import DependencyFailedError, ObjectLostError, StoreError, TaskError
from .reference import ObjectRef
from .remote import FUNCTION_MAGIC
from .store import Gets

# The scheduler keeps so much of a text.
_ERROR_BYTES_MOST = 16 * 1024
# What a store answers of an object that cannot come to it, and may be had at another one.
_ELSEWHERE = {wire.RESOURCE_EXHAUSTED, wire.ABORTED}
# How long a task's arguments may take to come before it is given back: one of them may have to be made again, by a
# task for which no worker would be left if all waited. Large ones go on coming meanwhile.
_ARGUMENT_WAIT_S = 1.0
# How often a worker gives a task back because an argument cannot come to its store: the scheduler sends it
# here again only if it has forgotten why it came back. And tasks of which that is counted.
_RETURNS_MOST = 16
_RETURNED_MOST = 4096

_log = logging.getLogger("tripod_ray")


class _GoesBack(Exception):
    """The task was not begun and is given back: an argument does not come for now."""


class _Elsewhere(_GoesBack):
    """An argument cannot come to this worker's store, and workers of another one may have it."""


class Functions:
    """What the worker can execute, by key."""

    def __init__(self, process):
        self._process = process
        self._bodies = {}
        self._loaded = {}

    def take(self, implementation):
        """Imports a function that the scheduler sent. It is deserialised when it is first called, so a
        function that cannot be is a task that fails, with its text. Functions of other languages are left to
        their workers.
        """
        if not implementation.startswith(FUNCTION_MAGIC):
            return
        try:
            key, results, body = pickle.loads(implementation[len(FUNCTION_MAGIC) :])
        except Exception as error:  # Whatever was sent must not end the worker.
            _log.warning("an exported function cannot be read: %r", error)
            return
        self._bodies[key] = (results, body)
        self._loaded.pop(key, None)
        self._process.outbox.post(calls.RegisterFunction(key.encode(), results))

    def find(self, key):
        """The function, and whether it is a raw one. Raises what its deserialisation raises."""
        if (function := raw.find(key)) is not None:
            return function, True
        function = self._loaded.get(key)
        if function is None:
            function = cloudpickle.loads(self._bodies[key][1])
            self._loaded[key] = function
        return function, False

    def register_raw(self):
        """Tells the scheduler of the raw functions of this process."""
        for name in raw.names():
            self._process.outbox.post(calls.RegisterFunction(name.encode(), 1))


class Executor:
    """Executes the tasks of one worker."""

    def __init__(self, process, functions, cancels, reported, has_more, keeps_up):
        """`cancels` are orders to end tasks; `reported(run)` is called when a task's report is in the queue of
        calls; `has_more()` tells whether the next task is at hand; `keeps_up()` is called before the report of a
        task after which variables are made anew."""
        self._process = process
        self._functions = functions
        self._cancels = cancels
        self._reported = reported
        self._has_more = has_more
        self._keeps_up = keeps_up
        # How often tasks were given back.
        self._returned = {}

    def execute(self, request):
        """Executes a task and reports it. Answers with the reusable variables that it used, and that are to be
        made anew from what it left; a task that was cancelled may have been in the middle of anything. Raises
        nothing but what ends the process."""
        task = request.task
        run = (request.operationid, request.attempt or 1)
        key, name = task.name.decode("utf-8", "replace"), _name(task)
        with TaskContext(run, name) as context:
            self._cancels.begin(context.cancellation)
            call = _Call(self._process, context, request, request.elsewhere and self._may_return(run))
            outputs, described, failed = (), (), None
            try:
                function, is_raw = self._function(key, name)
                if is_raw:
                    outputs, described = self._written(request, run, call.run_raw(function))
                else:
                    outputs = self._outputs(request, call.run(function, len(task.result)))
            except (_GoesBack, TaskError) as error:
                # Its frames would keep arguments alive.
                failed = error.with_traceback(None)
            if self._cancels.end(context.cancellation):
                self._abandon(outputs)
                self._report(request, run).end(_cancelled(name))
                return {}
            if isinstance(failed, _GoesBack):
                call.surrender()
                self._return(run, isinstance(failed, _Elsewhere))
            elif failed is not None:
                self._over(context)
                self._fail(request, run, failed, call.retries)
            else:
                self._over(context)
                self._report(request, run).succeed(outputs, self._has_more(), described)
            return context.variables

    def drop(self, request):
        """Reports a task that was cancelled, and does not begin it."""
        task, run = request.task, (request.operationid, request.attempt or 1)
        self._report(request, run).end(_cancelled(_name(task)))
        for value in task.arg:
            for objectid in values.ids(value.obj) if value.HasField("obj") else (value.id,):
                self._process.outbox.drop(objectid)

    def _over(self, context):
        if context.variables:
            self._keeps_up()

    def _may_return(self, run):
        return self._returned.get(run[0], 0) < _RETURNS_MOST

    def _return(self, run, is_for_others):
        """Gives a task back that has not begun, and asks for another one."""
        if is_for_others:
            if len(self._returned) >= _RETURNED_MOST:
                self._returned.clear()
            self._returned[run[0]] = self._returned.get(run[0], 0) + 1
        self._process.outbox.post(calls.GiveBack([run]))
        self._reported(run)
        self._process.outbox.post(calls.Idle())

    def _function(self, key, name):
        try:
            return self._functions.find(key)
        except KeyError:
            raise TaskError(name, None, f"function {name} is not known to this worker") from None
        except BaseException as error:  # The modules it needs may raise anything.
            raise _raised(name, error, f"function {name} cannot be imported\n") from None

    def _outputs(self, request, results):
        """What is to be stored or aliased: pairs of an id and a handle or a packed value."""
        task, wanted = request.task, request.store_output
        outputs = []
        for place, (objectid, result) in enumerate(zip(task.result, results)):
            if place < len(wanted) and not wanted[place]:
                continue
            try:
                if isinstance(result, ObjectRef):
                    self._process.outbox.await_ids((result,))
                else:
                    result = layout.pack(result)
            except Exception as error:  # What pickling raises is up to the value.
                name = _name(task)
                raise _raised(name, error, f"result {place} of function {name} cannot be stored\n") from None
            outputs.append((objectid, result))
        return outputs

    def _written(self, request, run, made):
        """What a raw function has made: the same as `_outputs`, and what is to be told of it."""
        task, name = request.task, _name(request.task)
        if not isinstance(made, raw.RawResult) or len(task.result) != 1:
            what = f"made {type(made).__name__} for {len(task.result)} results"
            raise TaskError(name, None, f"raw function {name} {what}, and makes a RawResult for one")
        (objectid,) = task.result
        try:
            made = made.checked()
            described = (calls.Describe(objectid, made, run),) if self._process.takes_descriptions() else ()
            if request.store_output and not request.store_output[0]:
                return (), described
            filled = layout.Filled(made.size, made.metadata_offset, made.write)
            return ((objectid, self._process.store.prepare(objectid, filled, run, True)),), described
        except StoreError as error:
            if error.code == wire.ALREADY_EXISTS:
                # An earlier attempt has written it.
                return ((objectid, None),), described
            self._process.note(error)
            raise TaskError(name, None, f"a result cannot be stored: {error}") from None
        except Exception as error:  # What writing raises is up to the function.
            raise _raised(name, error, f"the result of function {name} cannot be written\n") from None

    def _abandon(self, outputs):
        """What is ready to be stored is not stored."""
        for _, output in outputs:
            if isinstance(output, wire.LocalRequest):
                self._process.store.abandon(output)

    def _fail(self, request, run, error, retries):
        report = self._report(request, run)
        if retries is not None and (retries < 0 or run[1] <= retries):
            # It will be tried again: what is stored now would be its result for ever.
            report.end(error)
        else:
            report.fail(error)

    def _report(self, request, run):
        return _Report(self._process, self._reported, run, request.task)


class _Call:
    """The arguments of a task. The references that the task holds are the worker's from the start; handles
    take them over, and give them up when nobody uses the arguments any more."""

    def __init__(self, process, context, request, may_return):
        """`may_return`: if an argument cannot come to this machine, `run` raises `_Elsewhere`."""
        task = request.task
        self._process = process
        self._name = context.name
        self._cancellation = context.cancellation
        self._may_return = may_return
        # A scheduler that names no attempts takes none back.
        self._can_go_back = request.HasField("operationid")
        self._arguments = task.arg
        self._refs = {
            place: process.adopt(value.id)
            for place, value in enumerate(task.arg)
            if not value.HasField("obj")
        }
        # How often an exception is tried again; None: not at all.
        self.retries = None
        self._names = ()
        last = task.arg[-1].obj if task.arg else None
        if last is not None and last.HasField("dict_data"):
            self._read_mark(last)

    def run(self, function, results):
        """Calls the function, and answers with as many results. Raises `TaskError`."""
        arguments = self._values()
        positional = arguments[: len(arguments) - len(self._names)]
        named = dict(zip(self._names, arguments[len(positional) :]))
        del arguments
        return self._split(self._execute(function, positional, named), results)

    def run_raw(self, function):
        """Calls a raw function, and answers with what it has made. Raises `TaskError`."""
        first = self._arguments[0] if self._arguments else None
        if first is None or not first.obj.HasField("pyobj_data") or len(self._refs) != len(self._arguments) - 1:
            text = f"raw function {self._name} takes bytes, and then objects"
            raise TaskError(self._name, None, text)
        return self._execute(function, (first.obj.pyobj_data.data, self._inputs()), {})

    def _execute(self, function, positional, named):
        try:
            return self._cancellation.execute(function, positional, named)
        except BaseException as error:  # A task's own exit ends the task and not the worker.
            raise _raised(self._name, error, "", skip=2) from None

    def surrender(self):
        """The references go back with the task, so the handles end without giving any up."""
        for ref in self._refs.values():
            ref._id = None

    def _read_mark(self, obj):
        entries = obj.dict_data.elem
        if not entries or entries[0].key.string_data.data != values.CALL_MARK.encode():
            return
        mark = values.read(obj, self._process.adopt)
        self._names = mark[values.CALL_MARK]
        self.retries = mark.get("retries")
        self._arguments = self._arguments[:-1]

    def _values(self):
        gets = Gets(self._process.store, [ref.id for ref in self._refs.values()]) if self._refs else None
        place = 0
        try:
            if gets is not None:
                # Before any value is made: nothing refers to the handles yet.
                self._await(gets)
            got, arguments = iter(range(len(self._refs))), []
            for place, value in enumerate(self._arguments):
                if place in self._refs:
                    arguments.append(self._process.value(gets, next(got), self._refs[place]))
                else:
                    arguments.append(values.read(value.obj, self._process.adopt))
            return arguments
        except _GoesBack:
            raise
        except (TaskError, ObjectLostError) as error:
            raise self._produced_by_failed(place, error) from None
        except BaseException as error:  # The classes of arguments may raise anything when they are made.
            if isinstance(error, StoreError):
                self._process.note(error)
            raise _raised(
                self._name, error, f"argument {place} of function {self._name} cannot be read\n"
            ) from None
        finally:
            if gets is not None:
                gets.close()

    def _inputs(self):
        """The objects of a raw function, as they are."""
        gets = Gets(self._process.store, [ref.id for ref in self._refs.values()])
        place, inputs = 0, []
        try:
            self._await(gets)
            for got, (place, ref) in enumerate(self._refs.items()):
                memory, metadata_offset = gets.take(got, ref)
                failure = values.failure(memory) if metadata_offset == 0 else None
                if failure is not None:
                    raise failure
                inputs.append(raw.RawInput(memoryview(memory).toreadonly(), metadata_offset))
            return inputs
        except _GoesBack:
            raise
        except (TaskError, ObjectLostError) as error:
            raise self._produced_by_failed(place, error) from None
        except StoreError as error:
            self._process.note(error)
            before = f"argument {place} of function {self._name} cannot be read\n"
            raise _raised(self._name, error, before) from None
        finally:
            gets.close()

    def _await(self, gets):
        """Waits for the arguments. Raises `_GoesBack` if that takes too long, or is in vain."""
        if not gets.wait(_ARGUMENT_WAIT_S if self._can_go_back else None):
            gets.cancel()
            raise _GoesBack
        if self._may_return and not _ELSEWHERE.isdisjoint(gets.codes()):
            raise _Elsewhere

    def _produced_by_failed(self, place, error):
        if isinstance(error, TaskError):
            maker, text = error.function_name, error.traceback_text
        else:
            maker, text = error.function.rpartition(":")[0] or error.function or "put", str(error)
        told = f"argument {place} of function {self._name} was produced by failed {maker}:\n{text}"
        if isinstance(error, ObjectLostError) and place in self._refs:
            return DependencyFailedError(self._refs[place].id, self._name, error, told)
        return TaskError(self._name, error, told)

    def _split(self, returned, results):
        if results == 1:
            return (returned,)
        if results == 0:
            if returned is not None:
                raise TaskError(
                    self._name, None, f"function {self._name} has 0 return values, and returned one"
                )
            return ()
        if not isinstance(returned, (tuple, list)) or len(returned) != results:
            what = len(returned) if isinstance(returned, (tuple, list)) else type(returned).__name__
            text = f"function {self._name} has {results} return values, and returned {what}"
            raise TaskError(self._name, None, text)
        return returned


class _Report:
    """Stores what a task made, and reports the task when all of it can be read here. Stores answer in a
    thread of their own, so the worker goes on meanwhile."""

    def __init__(self, process, reported, run, task):
        self._process = process
        self._reported = reported
        self._run = run
        self._name = _name(task)
        self._results = list(task.result)
        # Those that are stored when all outputs are, of which the report tells the scheduler.
        self._made = []
        self._described = ()
        self._lock = threading.Lock()
        self._left = 1
        self._error = None

    def succeed(self, outputs, soon, described=()):
        """`outputs` are pairs of an id and a handle, a packed value, what `StoreConnection.prepare` answered, or
        None for what is there already. With `soon` they may be stored together with those of the next task.
        `described` are calls that belong before the report."""
        self._described = described
        self._left += len(outputs)
        for objectid, output in outputs:
            if isinstance(output, ObjectRef):
                self._process.outbox.post(calls.Alias(objectid, output, self._run))
                self._stored(None)
            elif output is None:
                self._made.append(objectid)
                self._stored(None)
            elif isinstance(output, wire.LocalRequest):
                self._made.append(objectid)
                self._process.store.finish(output, self._stored, soon)
            else:
                self._process.contain(objectid, output)
                self._made.append(objectid)
                self._process.store.put(
                    objectid, output, self._run, self._stored, soon=soon, told_by_maker=True
                )
        self._stored(None)

    def fail(self, error):
        """Every result becomes an error object."""
        packed = layout.pack_error(error)
        for objectid in self._results:
            # Whether it is stored is of no matter to the report, which says that the task failed. This may be
            # the thread that reads the store's answers, which must not write.
            self._process.store.put(objectid, packed, self._run, lambda _: None, soon=True)
        self.end(error)

    def end(self, error=None):
        """The report itself. The references to results that the task held are given up."""
        outbox = self._process.outbox
        text = (
            error.traceback_text.encode("utf-8", "replace")[:_ERROR_BYTES_MOST] if error is not None else b""
        )
        outbox.post(calls.Idle(self._run, (error is None, text)))
        self._reported(self._run)
        for objectid in self._results:
            outbox.drop(objectid)

    def _stored(self, error):
        with self._lock:
            if error is not None and error.code != wire.ALREADY_EXISTS:
                self._error = error
            self._left -= 1
            if self._left:
                return
        if self._error is None:
            for objectid in self._made:
                self._process.outbox.post(calls.Ready(objectid, self._process.objstoreid, self._run))
            for call in self._described:
                self._process.outbox.post(call)
            self.end()
        else:
            self._process.note(self._error)
            self.fail(TaskError(self._name, None, f"a result cannot be stored: {self._error}"))


def _name(task):
    """A function's name for people: its key without the digest."""
    key = task.name.decode("utf-8", "replace")
    return key.rpartition(":")[0] or key


def _cancelled(name):
    """What is reported of a task that was cancelled. Nothing is stored: the scheduler knows what its results are."""
    return TaskError(name, None, f"task {name} was cancelled")


def _raised(name, error, before, skip=0):
    """What a task raised, as it is stored and reported."""
    trace = error.__traceback__
    for _ in range(skip):
        trace = trace.tb_next if trace is not None else None
    text = before + "".join(traceback.format_exception(type(error), error, trace))
    # Its frames would keep arguments alive.
    error.__traceback__ = None
    return TaskError(name, error, text)
