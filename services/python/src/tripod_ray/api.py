"""What programs call."""

import atexit
import math
import os
from collections.abc import Iterable
from numbers import Real

from . import credentials, needs, runtime, wire
from .calls import Alone
from .edge import interface
from .local import STORE_MIB, LocalCluster
from .process import Process
from .reference import ObjectRef
from .reusable import reusables

ENDPOINTS = "TRIPOD_ENDPOINTS"
# The longest that the scheduler gives a task to end.
GRACE_S_MAX = 600


# The cluster that `init` started, which ends with the connection.
_local = None
# The connection of the process that forked this one.
_of_parent = None


@interface
def init(
    address=None,
    *,
    node_ip=None,
    objstore_address="",
    job=None,
    num_workers=None,
    store_mib=STORE_MIB,
    num_cpus=None,
    memory=None,
    resources=None,
    tls_dir=None,
    token_file=None,
):
    """Connects this program to a cluster, as a driver.

    `address` are the client addresses of its nodes, `host:port` with commas between; without it the
    environment's TRIPOD_ENDPOINTS. With neither, a cluster is started on this machine, for this program
    alone: three nodes, an object store of `store_mib` MiB and `num_workers` workers, by default one for each
    processor. `num_cpus`, `memory` and `resources` are what each of these has, for tasks that need it, as
    `python -m tripod_ray.worker` is told. It needs the program `tripod`, from the environment's TRIPOD_BIN or
    from PATH, and ends with `shutdown` or with this program.

    `node_ip` is this machine's address, as its object store is registered; without it the environment's
    TRIPOD_NODE_IP, else the address by which it reaches the first node. `objstore_address` chooses among
    several stores of this machine. `job` names the job whose scheduler is used; without it the port's own.

    `tls_dir` is a directory of certificates for nodes that use TLS, as `tripod --tls-dir` has it, and `token_file` a file of
    a token that is shown to them; without them the environment's TRIPOD_TLS_DIR and TRIPOD_TOKEN_FILE. With a token the
    directory needs only `ca.crt`. Raises `ValueError` if a file cannot be used.
    """
    if runtime.connected() is not None:
        raise RuntimeError("connected already: call shutdown() first")
    global _local
    address = address or os.environ.get(ENDPOINTS)
    if address and num_workers is not None:
        raise ValueError("num_workers is for a cluster that init starts; this one has its own")
    of_worker = {"num_cpus": num_cpus, "memory": memory, "resources": resources}
    if address and any(value is not None for value in of_worker.values()):
        text = "num_cpus, memory and resources are for a cluster that init starts; workers say them themselves"
        raise ValueError(text)
    needs.offers(**of_worker)
    # A cluster of this program alone is in plain text, on loopback.
    proofs = credentials.given(tls_dir, token_file) if address else credentials.Credentials()
    try:
        if not address:
            workers = num_workers if num_workers is not None else os.cpu_count() or 1
            _local = LocalCluster(workers, store_mib, of_worker=of_worker)
            address, node_ip = _local.endpoints, _local.node_ip
        process = Process(
            address,
            driver=True,
            node_ip=node_ip,
            store_address=objstore_address,
            job=job,
            credentials=proofs,
        )
        runtime.connect(process)
        reusables.export_all(process)
    except BaseException:
        shutdown()
        raise


def shutdown():
    """Ends the connection, and the cluster if `init` started it. Handles that still exist are of no use
    afterwards."""
    global _local
    process, local, _local = runtime.connected(), _local, None
    runtime.connect(None)
    try:
        if process is not None:
            process.close()
    finally:
        if local is not None:
            local.close()


atexit.register(shutdown)


def _leave_to_parent():
    """In a process that was forked: none of the threads of the connection are here, so whoever used it would wait for
    ever, and whoever ended it would end it for the parent."""
    global _local, _of_parent
    # Kept: to take it apart would need those threads too.
    _of_parent = runtime.connected() or _of_parent
    runtime.connect(None)
    local, _local = _local, None
    if local is not None:
        local.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


def is_initialized():
    """Whether `init` was called, or this is a worker."""
    return runtime.connected() is not None


@interface
def put(value):
    """Stores a value in this machine's object store, and answers with its handle."""
    if isinstance(value, ObjectRef):
        raise TypeError("a handle is stored inside a value, such as [ref], and not by itself")
    return runtime.process().put(value)


@interface
def get(refs, timeout=None):
    """The value of a handle, or a list of those of a list of handles. `timeout` is in seconds.

    Raises `TaskError` if a task failed, `TaskCancelledError` if it was cancelled, `ObjectLostError` if the object
    cannot be had, `GetTimeoutError`.
    """
    if isinstance(refs, ObjectRef):
        return runtime.process().get((refs,), timeout)[0]
    refs = _checked("get", refs)
    return runtime.process().get(refs, timeout)


@interface
def wait(refs, num_returns=1, timeout=None):
    """Waits until `num_returns` of the objects are decided: can be had, or never will. Answers with the
    handles that are, at most so many, and with the others, both in their order."""
    refs = _checked("wait", refs)
    if not 0 < num_returns <= len(refs):
        raise ValueError("num_returns is at least 1 and at most the number of handles")
    ready = set(runtime.process().wait(refs, num_returns, timeout))
    return (
        [ref for place, ref in enumerate(refs) if place in ready],
        [ref for place, ref in enumerate(refs) if place not in ready],
    )


@interface
def cancel(ref, grace=5.0):
    """A task is not to run any more; `ref` is the handle of one of its results. One that has not begun does not
    begin. In one that runs `TaskCancelledError` is raised where it is, and its worker's process ends if it has
    not ended `grace` seconds later, with 0 at once; another worker takes its place where something begins
    workers again.

    Answers whether the task was not over before: then getting its results raises `TaskCancelledError`. One that
    has reported counts as over. Tasks that it has submitted go on. Needs feature level 10 of the cluster.
    """
    if not isinstance(ref, ObjectRef):
        raise TypeError(f"cancel takes an ObjectRef; a value of type {type(ref).__name__} is none")
    if isinstance(grace, bool) or not isinstance(grace, Real):
        raise TypeError(f"grace is a number of seconds, and not {grace!r}")
    if not 0 <= grace <= GRACE_S_MAX:
        raise ValueError(f"grace is {grace}; it is at least 0 and at most {GRACE_S_MAX} seconds")
    return runtime.process().cancel(ref, math.ceil(grace * 1000))


@interface
def kill_workers():
    """Ends all workers. Answers whether it was done: not while a task is queued or runs."""
    call = Alone(wire.KILL_WORKERS, wire.KillWorkersRequest())
    return wire.KillWorkersReply.FromString(runtime.process().outbox.ask(call)).success


@interface
def task_info():
    """Failed and running tasks, and how many succeeded."""
    reply = runtime.process().read(wire.TASK_INFO, wire.TaskInfoRequest(), wire.TaskInfoReply)
    return {
        "failed_tasks": [_status(task) for task in reply.failed_task],
        "running_tasks": [_status(task) for task in reply.running_task],
        "num_succeeded": reply.num_succeeded,
    }


@interface
def scheduler_info():
    """The scheduler's state. The lists by object id begin with `base_object`, and the graph with
    `base_operation`, which are 0 until the scheduler has forgotten something. A count of references of -1:
    deallocated; a target of -1: the object was not made yet."""
    trailers = {}
    request = wire.SchedulerInfoRequest()
    reply = runtime.process().read(wire.SCHEDULER_INFO, request, wire.SchedulerInfoReply, trailers)
    return {
        "base_object": int(trailers.get(wire.BASE_OBJECT, 0)),
        "base_operation": int(trailers.get(wire.BASE_OPERATION, 0)),
        "task_queue": list(reply.operationid),
        "available_workers": list(reply.avail_worker),
        "function_table": {
            name: {"workers": list(entry.workerid), "num_return_vals": entry.num_return_vals}
            for name, entry in reply.function_table.items()
        },
        "target_objectids": [_shown(number) for number in reply.target_objectid],
        "reference_counts": [_shown(number) for number in reply.reference_count],
        "computation_graph": reply.computation_graph,
    }


def _shown(number):
    return -1 if number == wire.DEALLOCATED else number


def _status(task):
    return {
        "operationid": task.operationid,
        "function_name": task.function_name.decode("utf-8", "replace"),
        "worker_address": task.worker_address,
        "error_message": task.error_message.decode("utf-8", "replace"),
    }


def _checked(call, refs):
    """The handles, as a list. Raises `TypeError` that names what is none of them."""
    if isinstance(refs, ObjectRef):
        raise TypeError(f"{call} takes a list of ObjectRefs; write {call}([ref])")
    if not isinstance(refs, Iterable):
        takes = "an ObjectRef or a list of them" if call == "get" else "a list of ObjectRefs"
        raise TypeError(f"{call} takes {takes}; a value of type {type(refs).__name__} is not an ObjectRef")
    refs = list(refs)
    for place, ref in enumerate(refs):
        if not isinstance(ref, ObjectRef):
            kind = type(ref).__name__
            raise TypeError(f"{call} takes ObjectRefs; element {place}, of type {kind}, is not an ObjectRef")
    return refs
