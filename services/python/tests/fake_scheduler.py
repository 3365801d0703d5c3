"""A scheduler for tests: one process, no replication, the rules for objects, references and tasks, directly.

Every reference has an owner: a process, a task, a container, or the object's own creation. Whoever gives away
or drops one that it does not own is refused, and noted in `violations`, which tests expect to be empty.
"""

import threading
from collections import Counter, deque

import grpc

from tripod_ray import layout, wire
from tripod_ray.errors import TaskCancelledError

CREATION = "creation"
NOBODY = 2**64 - 1


class Refused(Exception):
    def __init__(self, code, text, reason=""):
        super().__init__(text)
        self.code, self.text, self.reason = code, text, reason


class Object:
    def __init__(self):
        self.owners = Counter({CREATION: 1})
        self.target = None
        self.locations = set()
        self.contained = None
        self.gone = False

    def count(self):
        return -1 if self.gone else sum(self.owners.values())


class Task:
    def __init__(self, op, submit, options):
        self.op, self.name, self.args = op, submit.task.name, list(submit.task.arg)
        self.options, self.attempt, self.results, self.worker = options, 1, [], None
        # What its calls put, kept between two attempts.
        self.kept = []
        self.cancelled = self.over = False

    def held(self):
        ids = []
        for value in self.args:
            ids.extend(nested_ids(value.obj) if value.HasField("obj") else [value.id])
        return ids + self.results


class Worker:
    def __init__(self, workerid, address, store, driver, metadata):
        self.id, self.address, self.store, self.driver = workerid, address, store, driver
        self.slots = int(metadata.get(wire.SLOTS, 1))
        self.cpus_milli = int(metadata.get(wire.CPUS_MILLI, 1000))
        self.memory_bytes = int(metadata.get(wire.MEMORY_BYTES, 0))
        named = filter(None, metadata.get(wire.RESOURCES_MILLI, "").split(","))
        self.resources_milli = {name: int(milli) for name, milli in (piece.split("=") for piece in named)}
        self.alive, self.ready, self.tasks = True, False, []
        self.accepting, self.window = True, 2
        self.orders = deque()

    def has(self, options):
        return (
            options.cpus_milli <= self.cpus_milli
            and options.memory_bytes <= self.memory_bytes
            and all(self.resources_milli.get(name, 0) >= milli for name, milli in options.resources_milli.items())
        )

    def is_free(self):
        return self.accepting and len(self.tasks) < min(self.slots, self.window)


def nested_ids(obj):
    """All ids in a value, once per occurrence."""
    ids, left = [], [obj]
    while left:
        at = left.pop()
        if at.HasField("objectid_data"):
            ids.append(at.objectid_data.data)
        ids.extend(at.array_data.objectid_data)
        left.extend(at.list_data.elem)
        left.extend(at.tuple_data.elem)
        for entry in at.dict_data.elem:
            left.extend((entry.key, entry.value))
    return ids


class FakeScheduler:
    """The state, and the rules. `send(worker, path, request)` passes an order on."""

    def __init__(self, stores, send):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.stores = stores
        self.send = send
        self.objects, self.workers, self.operations = [], [], []
        self.functions, self.exports, self.queue, self.gets = {}, [], [], []
        self.failed, self.succeeded, self.requests, self.given_back = [], 0, 0, 0
        self.children, self.violations, self.sessions = {}, [], {}
        self.scheduling = False
        # What objects are, by their ids.
        self.described = {}
        self.aliases = set()
        # False: stores have not told yet what they hold, as far as those who put are concerned.
        self.hears_stores = True
        # Whether workers are told that others may be able to execute what they cannot.
        self.elsewhere = False

    # Processes

    def register(self, request, metadata):
        stores = list(self.stores)
        store = next((s for s in stores if request.objstore_address == self.stores[s].address), stores[0])
        if not request.objstore_address:
            used = Counter(worker.store for worker in self.workers if worker.alive)
            store = min(stores, key=lambda s: (used[s], s))
        workerid = len(self.workers)
        self.workers.append(Worker(workerid, self.port(), store, request.is_driver, metadata))
        return wire.RegisterWorkerReply(
            workerid=workerid,
            objstoreid=store,
            worker_address=self.workers[workerid].address,
            objstore_address=self.stores[store].address,
        )

    def expire(self, workerid):
        """The process was silent for too long."""
        with self.lock:
            worker = self.workers[workerid]
            worker.alive = False
            for task in worker.tasks:
                self.keep_puts(task)
            for entry in self.functions.values():
                entry[1].discard(workerid)
            for objectid, found in enumerate(self.objects):
                if found.owners.pop(("process", workerid), 0):
                    self.collect(objectid)
            for task in worker.tasks:
                if task.cancelled:
                    self.end_cancelled(task)
                else:
                    self.retry(task, "its worker died")
            worker.tasks = []
            self.schedule()

    def living(self, workerid):
        if workerid >= len(self.workers):
            raise Refused(wire.NOT_FOUND, f"there is no worker {workerid}")
        if not self.workers[workerid].alive:
            raise Refused(wire.FAILED_PRECONDITION, f"worker {workerid} was given up", "expired")
        return self.workers[workerid]

    # Calls

    def batch(self, request):
        response = wire.RayBatchResponse()
        for call in request.calls:
            result = response.results.add()
            try:
                self.requests += 1
                getattr(self, "_" + call.WhichOneof("call"))(call, request.workerid, result)
            except Refused as refused:
                result.code, result.text, result.reason = refused.code, refused.text, refused.reason
                if refused.reason != "expected":
                    self.violations.append(f"{call.WhichOneof('call')}: {refused.text}")
        self.schedule()
        self.changed.notify_all()
        return response

    def _submit(self, call, by, result):
        submit = call.submit
        worker = self.living(submit.workerid)
        if submit.task.name not in self.functions or not self.functions[submit.task.name][1]:
            result.submit.SetInParent()
            return
        key = self.child_of(worker, call)
        if key in self.children:
            task = self.children[key]
        else:
            task = Task(len(self.operations), submit, call.options)
            held = task.held()
            for objectid in held:
                self.live(objectid)
            for objectid in held:
                self.move(objectid, ("process", by), ("task", task.op))
            self.operations.append(task)
            for _ in range(self.functions[task.name][0]):
                task.results.append(self.create())
                self.objects[-1].owners[("task", task.op)] += 1
            self.queue.append(task)
        for objectid in task.results:
            self.objects[objectid].owners[("process", by)] += 1
        if key is not None:
            self.children[key] = task
        result.submit.result.extend(task.results)
        result.submit.function_registered = True

    def child_of(self, worker, call):
        """Which call of which task it is, by which it is known when the task runs again."""
        if not call.HasField("child"):
            return None
        run = (call.run.operationid, call.run.attempt)
        if run not in [(task.op, task.attempt) for task in worker.tasks]:
            raise Refused(
                wire.FAILED_PRECONDITION, f"worker {worker.id} makes a call of {run}, which it has not"
            )
        return call.run.operationid, call.child

    def _put(self, call, by, result):
        key = self.child_of(self.living(call.put.workerid), call)
        self.operations.append(None)
        before = self.children.get(key) if key is not None else None
        if before is not None:
            if self.objects[before].gone:
                # One again, to be written anew.
                self.objects[before] = Object()
            result.put.objectid = before
            result.put.already_present = self.hears_stores and bool(self.objects[before].locations)
        else:
            result.put.objectid = self.create()
            if key is not None:
                self.children[key] = result.put.objectid
        if call.put.hold:
            self.objects[result.put.objectid].owners[("process", by)] += 1

    def _request(self, call, by, result):
        worker = self.living(call.request.workerid)
        self.operations.append(None)
        self.live(call.request.objectid)
        self.gets.append((worker.store, call.request.objectid))

    def _alias(self, call, by, result):
        alias, target = self.live(call.alias.alias_objectid), call.alias.target_objectid
        self.live(target)
        alias.target = target
        self.aliases.add(call.alias.alias_objectid)
        self.take(call.alias.alias_objectid, CREATION)

    def _increment(self, call, by, result):
        ids = call.increment.objectid
        for objectid in ids:
            self.live(objectid)
        for objectid in ids:
            self.objects[objectid].owners[("process", by)] += 1

    def _decrement(self, call, by, result):
        for objectid, count in Counter(call.decrement.objectid).items():
            if self.live(objectid).owners[("process", by)] < count:
                raise Refused(wire.FAILED_PRECONDITION, f"process {by} drops more of {objectid} than it has")
        for objectid in call.decrement.objectid:
            self.take(objectid, ("process", by))

    def _contained(self, call, by, result):
        ids, container = call.contained.contained_objectid, self.objects[call.contained.objectid]
        if container.contained is not None:
            raise Refused(wire.FAILED_PRECONDITION, "contained already", "expected")
        if container.gone:
            for objectid in ids:
                self.take(objectid, ("process", by))
            return
        container.contained = list(ids)
        for objectid in ids:
            self.move(objectid, ("process", by), ("object", call.contained.objectid))

    def _ready(self, call, by, result):
        self.ready(call.ready.objectid, call.ready.objstoreid)

    def _function(self, call, by, result):
        entry = self.functions.setdefault(call.function.fnname, [0, set()])
        entry[0] = call.function.num_return_vals
        entry[1].add(self.living(call.function.workerid).id)

    def _idle(self, call, by, result):
        worker = self.living(call.idle.workerid)
        if not worker.ready:
            worker.ready = True
            for path, request in self.exports:
                self.send(worker, path, request)
        if not call.idle.HasField("previous_task_info"):
            # All that it has waits: it can run one more.
            worker.accepting = True
            worker.window = max(worker.window, len(worker.tasks) + 1)
            return
        worker.window += 1
        run = (call.run.operationid, call.run.attempt)
        task = next((task for task in worker.tasks if (task.op, task.attempt) == run), None)
        if task is None:
            raise Refused(wire.FAILED_PRECONDITION, f"worker {worker.id} does not have {run}")
        worker.tasks.remove(task)
        worker.accepting = True
        info = call.idle.previous_task_info
        for objectid in task.kept:
            self.take(objectid, ("calls", task.op))
        task.kept = []
        if task.cancelled:
            if info.task_succeeded:
                self.violations.append(f"a success is reported of task {task.op}, which was cancelled")
            self.failed.append((task, worker.address, info.error_message))
            self.end_cancelled(task)
            return
        task.over = True
        if info.task_succeeded:
            self.succeeded += 1
        elif task.options.retry_exceptions and task.attempt <= self.retries(task):
            self.retry(task, info.error_message)
        else:
            self.failed.append((task, worker.address, info.error_message))

    def _give_back(self, call, by, result):
        worker = self.living(call.give_back.workerid)
        worker.accepting, worker.window = False, 1
        for run in call.give_back.runs:
            task = next(
                (t for t in worker.tasks if (t.op, t.attempt) == (run.operationid, run.attempt)), None
            )
            if task is None:
                self.violations.append(f"worker {worker.id} gives back {run}, which it has not")
                continue
            worker.tasks.remove(task)
            self.given_back += 1
            for objectid in task.held():
                self.move(objectid, ("process", worker.id), ("task", task.op))
            task.attempt += 1
            self.queue.append(task)

    def _cancel(self, call, by, result):
        if call.cancel.workerid == NOBODY:
            raise Refused(wire.NOT_FOUND, "a question about the level", "expected")
        self.living(call.cancel.workerid)
        tasks = [task for task in self.operations if task is not None]
        task = next((task for task in tasks if call.cancel.objectid in task.results), None)
        if task is None:
            raise Refused(wire.INVALID_ARGUMENT, f"no task makes object {call.cancel.objectid}", "expected")
        result.cancel.over = task.over
        if task.over:
            return
        task.cancelled = True
        if task in self.queue:
            self.queue.remove(task)
            for objectid in task.held():
                self.take(objectid, ("task", task.op))
            self.end_cancelled(task)
            return
        order = wire.RayTellRequest()
        cancel = order.orders.add().cancel
        cancel.run.operationid, cancel.run.attempt = task.op, task.attempt
        cancel.grace_ms = call.cancel.grace_ms
        worker = next(worker for worker in self.workers if task in worker.tasks)
        self.send(worker, "/tripod.v1.RayPeer/Tell", order)

    def end_cancelled(self, task):
        task.over = True
        packed = layout.pack_error(_Cancelled(task.name.decode().rpartition(":")[0]))
        for objectid in task.results:
            if not self.objects[objectid].gone:
                self.stores[0].insert(objectid, packed.metadata_offset, packed.whole())

    def _describe(self, call, by, result):
        worker, run = self.living(by), (call.run.operationid, call.run.attempt)
        task = next((task for task in worker.tasks if (task.op, task.attempt) == run), None)
        if task is None or call.describe.objectid not in task.results:
            raise Refused(wire.FAILED_PRECONDITION, f"{call.describe.objectid} is described by {run}")
        about = call.describe
        self.described[about.objectid] = (tuple(about.shape), about.element_type, about.bytes)

    def _leave(self, call, by, result):
        self.expire(call.leave.workerid)

    # Objects

    def create(self):
        self.objects.append(Object())
        return len(self.objects) - 1

    def live(self, objectid):
        if objectid >= len(self.objects):
            raise Refused(wire.INVALID_ARGUMENT, f"there is no object {objectid}")
        if self.objects[objectid].gone:
            raise Refused(wire.FAILED_PRECONDITION, f"object {objectid} is deallocated")
        return self.objects[objectid]

    def ready(self, objectid, store):
        with self.lock:
            found = self.objects[objectid]
            if found.gone:
                return
            found.locations.add(store)
            found.target = objectid
            if found.owners[CREATION]:
                self.take(objectid, CREATION)
            self.schedule()
            self.changed.notify_all()

    def take(self, objectid, owner):
        owners = self.objects[objectid].owners
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
        self.collect(objectid)

    def move(self, objectid, before, after):
        owners = self.objects[objectid].owners
        if owners[before] < 1:
            raise Refused(
                wire.FAILED_PRECONDITION, f"{before} gives a reference to {objectid} that it has not"
            )
        owners[after] += 1
        owners[before] -= 1
        if not owners[before]:
            del owners[before]

    def collect(self, objectid):
        """The deallocation test, over the whole tree of aliases."""
        left = [objectid]
        while left:
            canonical = self.canonical(left.pop())
            if canonical is None:
                continue
            tree = [canonical, *(o for o in self.aliases if self.canonical(o) == canonical)]
            if any(self.objects[o].owners or self.objects[o].gone for o in tree):
                continue
            for store in self.objects[canonical].locations:
                self.stores[store].deallocate(canonical)
            # Who asked for it before may still be in line.
            self.objects[canonical].locations.clear()
            for o in tree:
                self.objects[o].gone = True
            for inside in self.objects[canonical].contained or ():
                owners = self.objects[inside].owners
                owners[("object", canonical)] -= 1
                owners += Counter()
                self.objects[inside].owners = +owners
                left.append(inside)

    def canonical(self, objectid):
        while (target := self.objects[objectid].target) != objectid:
            if target is None:
                return None
            objectid = target
        return objectid

    def located(self, objectid):
        canonical = self.canonical(objectid)
        return canonical is not None and bool(self.objects[canonical].locations)

    def bring(self, store, objectid):
        canonical = self.canonical(objectid)
        found = self.objects[canonical]
        if store not in found.locations:
            found.locations.add(store)
            self.stores[store].insert(
                canonical, *self.stores[min(found.locations - {store})].bytes_of(canonical)
            )
        if objectid != canonical:
            self.stores[store].notify_alias(objectid, canonical)

    # Tasks

    def retries(self, task):
        return task.options.max_retries if task.options.HasField("max_retries") else 3

    def retry(self, task, why):
        for objectid in task.held():
            if not self.objects[objectid].gone:
                self.objects[objectid].owners[("task", task.op)] += 1
        task.attempt += 1
        self.queue.insert(0, task)

    def keep_puts(self, task):
        for (op, _), made in self.children.items():
            if op == task.op and isinstance(made, int) and not self.objects[made].gone:
                self.objects[made].owners[("calls", op)] += 1
                task.kept.append(made)

    def schedule(self):
        # Bringing an object makes it ready, which schedules.
        if self.scheduling:
            return
        self.scheduling = True
        try:
            self.serve_gets()
            self.serve_tasks()
        finally:
            self.scheduling = False

    def serve_gets(self):
        waiting, self.gets = self.gets, []
        for store, objectid in waiting:
            if self.located(objectid):
                self.bring(store, objectid)
            else:
                self.gets.append((store, objectid))

    def serve_tasks(self):
        for task in sorted(self.queue, key=lambda task: -task.options.priority):
            able = self.functions.get(task.name, (0, ()))[1]
            free = [w for w in self.workers if w.alive and w.ready and w.id in able and w.is_free()]
            free = [worker for worker in free if worker.has(task.options)]
            needs = [value.id for value in task.args if not value.HasField("obj")]
            if task.attempt > 1 and self.elsewhere:
                free = [w for w in free if self.stores[w.store].refused.keys().isdisjoint(needs)]
            if free and all(map(self.located, needs)):
                self.queue.remove(task)
                self.assign(task, min(free, key=lambda worker: len(worker.tasks)), needs)

    def assign(self, task, worker, needs):
        for objectid in needs:
            self.bring(worker.store, objectid)
        for objectid in task.held():
            if self.objects[objectid].owners[("task", task.op)]:
                self.move(objectid, ("task", task.op), ("process", worker.id))
        worker.tasks.append(task)
        request = wire.ExecuteTaskRequest(operationid=task.op, attempt=task.attempt, workerid=worker.id)
        request.elsewhere = self.elsewhere
        request.task.name = task.name
        request.task.arg.extend(task.args)
        request.task.result.extend(task.results)
        self.send(worker, "/WorkerService/ExecuteTask", request)

    def export(self, path, request):
        request.exportid = len(self.exports)
        self.exports.append((path, request))
        for worker in self.workers:
            if worker.alive and worker.ready:
                self.send(worker, path, request)

    def kill_workers(self):
        if self.queue or any(worker.tasks for worker in self.workers if worker.alive):
            return False
        for worker in self.workers:
            if worker.alive and not worker.driver:
                worker.alive = False
                self.send(worker, "/WorkerService/Die", wire.DieRequest())
        self.functions.clear()
        return True


class _Cancelled:
    """What is stored in place of results of a task that was cancelled."""

    reason, traceback_text, cause = TaskCancelledError.REASON, "", None

    def __init__(self, function_name):
        self.function_name = function_name


def abort(context, refused):
    context.set_trailing_metadata(((wire.REASON, refused.reason),))
    codes = {code.value[0]: code for code in grpc.StatusCode}
    context.abort(codes[refused.code], refused.text)
