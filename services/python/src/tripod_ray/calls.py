"""What waits to be sent to the scheduler: each kind of call knows how it is written and what its answer
means."""

import time

from .errors import FunctionNotRegisteredError, RefusedError
from .needs import NONE
from .wire import OK

# How long a submission waits for a worker that knows its function, and how often it asks.
REGISTRATION_S = 60.0
_AGAIN_FIRST_S = 0.01
_AGAIN_MOST_S = 0.5


class Call:
    """A call that is answered with nothing, and the base of the others.

    `done` and `error` change under the outbox's lock. `needs` are handles whose ids must be known before it
    is written.
    """

    __slots__ = ("done", "error", "result")
    needs = ()
    # Whether a cluster below the level of `level.TASKS` refuses it.
    is_newer = False

    def __init__(self):
        self.done = False
        self.error = None
        self.result = None

    def write(self, call, workerid):
        """Writes itself into an empty `RayCall`."""
        raise NotImplementedError

    def answer(self, result, outbox):
        """Takes the answer. Returns the time (monotonic, seconds) when it is to be sent again, or None."""
        if result.code != OK:
            self.fail(RefusedError(result.code, result.text, result.reason))
        else:
            self.take(result, outbox)
        self.done = True
        return None

    def take(self, result, outbox):
        """The call was carried out."""

    def fail(self, error):
        """The call was refused, or will never be sent."""
        self.error = error
        self.done = True


class Submit(Call):
    """A task. Its handles get their ids with the answer; the references that the scheduler counts for the
    reply are theirs from then on."""

    __slots__ = (
        "function",
        "arguments",
        "needs",
        "refs",
        "child",
        "options",
        "worker_needs",
        "_held",
        "_until",
        "_pause",
    )

    def __init__(self, function, arguments, refs, child=None, options=(None, False), worker_needs=NONE):
        """`arguments` are handles, or pairs of an `Obj` and the handles inside it; `function` is a name,
        encoded; `child` is the attempt that calls and the place among its calls, or None;
        `options` are the retries after the first attempt, or None, and whether exceptions are tried again;
        `worker_needs` are the task's `Needs`."""
        super().__init__()
        self.worker_needs = worker_needs
        self.function = function
        self.arguments = arguments
        self.needs = [argument for argument in arguments if type(argument) is not tuple]
        self.refs = refs
        self.child = child
        self.options = options
        # The references that were asked for, to go to the task. Not asked for again when it is sent again.
        self._held = None
        self._until = 0.0
        self._pause = _AGAIN_FIRST_S

    @property
    def is_newer(self):
        return self.worker_needs != NONE

    def holds(self):
        """The references that this process needs, once per occurrence of an id, before it can give them to
        the task; None if there are none or it has them."""
        if self._held is not None:
            return None
        self._held = []
        for argument in self.arguments:
            if type(argument) is tuple:
                self._held.extend(ref.id for ref in argument[1])
            else:
                self._held.append(argument._id)
        return Holds(self, self._held) if self._held else None

    def write(self, call, workerid):
        submit = call.submit
        submit.workerid = workerid
        task = submit.task
        task.name = self.function
        add = task.arg.add
        for argument in self.arguments:
            if type(argument) is tuple:
                add().obj.CopyFrom(argument[0])
            else:
                add().id = argument._id
        _write_child(call, self.child)
        retries, exceptions = self.options
        if retries is not None:
            call.options.max_retries = retries
        if exceptions:
            call.options.retry_exceptions = True
        if self.is_newer:
            self.worker_needs.write(call.options)

    def answer(self, result, outbox):
        if result.code == OK and not result.submit.function_registered:
            return self._again(outbox)
        super().answer(result, outbox)
        if self.error is not None:
            self._give_up(outbox)
        return None

    def take(self, result, outbox):
        ids = result.submit.result
        for ref, objectid in zip(self.refs, ids):
            ref._id = objectid
        if len(ids) != len(self.refs):
            for objectid in ids[len(self.refs) :]:
                outbox.drop(objectid)
            self._fail_refs(
                RefusedError(3, f"{self.function.decode()} has {len(ids)} results, not {len(self.refs)}")
            )

    def fail(self, error):
        super().fail(error)
        self._fail_refs(error)

    def _fail_refs(self, error):
        for ref in self.refs:
            if ref._id is None:
                ref._error = error

    def _give_up(self, outbox):
        """The references that were to go to the task stay with this process, which does not need them."""
        for objectid in self._held or ():
            outbox.drop(objectid)
        self._held = []

    def _again(self, outbox):
        now = time.monotonic()
        self._until = self._until or now + REGISTRATION_S
        if now < self._until:
            pause, self._pause = self._pause, min(_AGAIN_MOST_S, self._pause * 2)
            return now + pause
        name = self.function.decode()
        self.fail(FunctionNotRegisteredError(f"no worker registered {name} within {REGISTRATION_S:.0f} s"))
        self._give_up(outbox)
        return None


class Put(Call):
    """An id for a value of the caller, with a reference to it."""

    __slots__ = ("child", "objectid", "present")

    def __init__(self, child):
        super().__init__()
        self.child = child

    def write(self, call, workerid):
        call.put.workerid = workerid
        call.put.hold = True
        _write_child(call, self.child)

    def take(self, result, outbox):
        self.result = (result.put.objectid, result.put.already_present)


class Request(Call):
    """An object is to come to this machine's store."""

    __slots__ = ("objectid",)

    def __init__(self, objectid):
        super().__init__()
        self.objectid = objectid

    def write(self, call, workerid):
        call.request.workerid = workerid
        call.request.objectid = self.objectid


class Increment(Call):
    """References of this process, one for each occurrence of an id."""

    __slots__ = ("objectids",)

    def __init__(self, objectids):
        super().__init__()
        self.objectids = objectids

    def write(self, call, workerid):
        call.increment.objectid.extend(self.objectids)


class Holds(Increment):
    """The same, for a task that is submitted next."""

    __slots__ = ("_submit",)

    def __init__(self, submit, objectids):
        super().__init__(list(objectids))
        self._submit = submit

    @property
    def is_newer(self):
        return self._submit.is_newer

    def fail(self, error):
        super().fail(error)
        # All of them or none: the submission will be refused, and there is nothing to give back.
        self._submit._held = []


class Decrement(Increment):
    """The same, given up."""

    __slots__ = ()

    def write(self, call, workerid):
        call.decrement.objectid.extend(self.objectids)

    def answer(self, result, outbox):
        super().answer(result, outbox)
        if self.error is not None and len(self.objectids) > 1:
            # All of them or none: one wrong id must not keep the others alive.
            for objectid in self.objectids:
                outbox.post(Decrement([objectid]))


class Contain(Call):
    """References of this process go to an object that has their ids inside."""

    __slots__ = ("objectid", "contained")

    def __init__(self, objectid, contained):
        super().__init__()
        self.objectid = objectid
        self.contained = contained

    def write(self, call, workerid):
        call.contained.objectid = self.objectid
        call.contained.contained_objectid.extend(self.contained)

    def answer(self, result, outbox):
        super().answer(result, outbox)
        if self.error is not None:
            # An earlier attempt has said it: the references stay with this process.
            for objectid in self.contained:
                outbox.drop(objectid)


class Alias(Call):
    """A result is the object of a handle. The handle is kept until the scheduler knows."""

    __slots__ = ("objectid", "target", "needs", "run")

    def __init__(self, objectid, target, run):
        super().__init__()
        self.objectid = objectid
        self.target = target
        self.needs = (target,)
        self.run = run

    def write(self, call, workerid):
        call.alias.alias_objectid = self.objectid
        call.alias.target_objectid = self.target.id
        call.run.operationid, call.run.attempt = self.run


class Ready(Call):
    """A result of an attempt is in this machine's store."""

    __slots__ = ("objectid", "objstoreid", "run")

    def __init__(self, objectid, objstoreid, run):
        super().__init__()
        self.objectid = objectid
        self.objstoreid = objstoreid
        self.run = run

    def write(self, call, workerid):
        call.ready.objectid = self.objectid
        call.ready.objstoreid = self.objstoreid
        call.run.operationid, call.run.attempt = self.run


class Idle(Call):
    """The worker can take a task; `ended` is how the one before ended: whether it succeeded, and a text."""

    __slots__ = ("run", "ended")

    def __init__(self, run=None, ended=None):
        super().__init__()
        self.run = run
        self.ended = ended

    def write(self, call, workerid):
        call.idle.workerid = workerid
        if self.ended is not None:
            call.idle.previous_task_info.task_succeeded = self.ended[0]
            call.idle.previous_task_info.error_message = self.ended[1]
            call.run.operationid, call.run.attempt = self.run


class RegisterFunction(Call):
    """The worker can execute a function."""

    __slots__ = ("name", "results")

    def __init__(self, name, results):
        super().__init__()
        self.name = name
        self.results = results

    def write(self, call, workerid):
        call.function.workerid = workerid
        call.function.fnname = self.name
        call.function.num_return_vals = self.results


class GiveBack(Call):
    """The worker does not begin these attempts, which it was given."""

    __slots__ = ("runs",)

    def __init__(self, runs):
        super().__init__()
        self.runs = runs

    def write(self, call, workerid):
        call.give_back.workerid = workerid
        for operationid, attempt in self.runs:
            call.give_back.runs.add(operationid=operationid, attempt=attempt)


class Cancel(Call):
    """A task is not to run any more. Its result is whether it was not over before."""

    __slots__ = ("needs", "grace_ms")
    is_newer = True

    def __init__(self, ref, grace_ms):
        """`ref` is the handle of a result of the task."""
        super().__init__()
        self.needs = (ref,)
        self.grace_ms = grace_ms

    def write(self, call, workerid):
        call.cancel.workerid = workerid
        call.cancel.objectid = self.needs[0].id
        call.cancel.grace_ms = self.grace_ms

    def take(self, result, outbox):
        self.result = not result.cancel.over


class Describe(Call):
    """What a result of an attempt is, for who asks without reading it."""

    __slots__ = ("objectid", "made", "run")
    is_newer = True

    def __init__(self, objectid, made, run):
        """`made` is a `RawResult`."""
        super().__init__()
        self.objectid = objectid
        self.made = made
        self.run = run

    def write(self, call, workerid):
        call.describe.objectid = self.objectid
        call.describe.shape.extend(self.made.shape)
        call.describe.element_type = self.made.element_type
        call.describe.bytes = self.made.bytes
        call.run.operationid, call.run.attempt = self.run


class Leave(Call):
    """The process ends, and nobody need wait until it is missed."""

    __slots__ = ()

    def write(self, call, workerid):
        call.leave.workerid = workerid


class Alone(Call):
    """A call that no batch can hold: it is sent by itself, in its place among the others."""

    __slots__ = ("path", "request")

    def __init__(self, path, request):
        super().__init__()
        self.path = path
        self.request = request


def _write_child(call, child):
    if child is not None:
        (call.run.operationid, call.run.attempt), call.child = child
