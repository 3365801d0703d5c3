"""What programs call."""

import atexit
import os

from . import runtime, wire
from .calls import Alone
from .process import Process
from .reference import ObjectRef
from .reusable import reusables

ENDPOINTS = "TRIPOD_ENDPOINTS"


def init(address=None, *, node_ip=None, objstore_address="", job=None):
    """Connects this program to a cluster, as a driver.

    `address` are the client addresses of its nodes, `host:port` with commas between; without it the
    environment's TRIPOD_ENDPOINTS. `node_ip` is this machine's address, as its object store is registered;
    without it the environment's TRIPOD_NODE_IP, else the address by which it reaches the first node. `objstore_address` chooses among
    several stores of this machine. `job` names the job whose scheduler is used; without it the port's own.
    """
    if runtime.connected() is not None:
        raise RuntimeError("connected already: call shutdown() first")
    address = address or os.environ.get(ENDPOINTS)
    if not address:
        raise ValueError(f"give the cluster's address, or set {ENDPOINTS}=HOST:PORT,HOST:PORT,HOST:PORT")
    process = Process(address, driver=True, node_ip=node_ip, store_address=objstore_address, job=job)
    runtime.connect(process)
    try:
        reusables.export_all(process)
    except BaseException:
        shutdown()
        raise


def shutdown():
    """Ends the connection. Handles that still exist are of no use afterwards."""
    process = runtime.connected()
    runtime.connect(None)
    if process is not None:
        process.close()


atexit.register(shutdown)


def is_initialized():
    """Whether `init` was called, or this is a worker."""
    return runtime.connected() is not None


def put(value):
    """Stores a value in this machine's object store, and answers with its handle."""
    if isinstance(value, ObjectRef):
        raise TypeError("a handle is stored inside a value, such as [ref], and not by itself")
    return runtime.process().put(value)


def get(refs, timeout=None):
    """The value of a handle, or a list of those of a list of handles. `timeout` is in seconds.

    Raises `TaskError` if a task failed, `ObjectLostError` if the object cannot be had, `GetTimeoutError`.
    """
    if isinstance(refs, ObjectRef):
        return runtime.process().get((refs,), timeout)[0]
    refs = list(refs)
    _check(refs)
    return runtime.process().get(refs, timeout)


def wait(refs, num_returns=1, timeout=None):
    """Waits until `num_returns` of the objects are decided: can be had, or never will. Answers with the
    handles that are, at most so many, and with the others, both in their order."""
    refs = list(refs)
    _check(refs)
    if not 0 < num_returns <= len(refs):
        raise ValueError("num_returns is at least 1 and at most the number of handles")
    ready = set(runtime.process().wait(refs, num_returns, timeout))
    return (
        [ref for place, ref in enumerate(refs) if place in ready],
        [ref for place, ref in enumerate(refs) if place not in ready],
    )


def kill_workers():
    """Ends all workers. Answers whether it was done: not while a task is queued or runs."""
    call = Alone(wire.KILL_WORKERS, wire.KillWorkersRequest())
    return wire.KillWorkersReply.FromString(runtime.process().outbox.ask(call)).success


def task_info():
    """Failed and running tasks, and how many succeeded."""
    reply = runtime.process().read(wire.TASK_INFO, wire.TaskInfoRequest(), wire.TaskInfoReply)
    return {
        "failed_tasks": [_status(task) for task in reply.failed_task],
        "running_tasks": [_status(task) for task in reply.running_task],
        "num_succeeded": reply.num_succeeded,
    }


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


def _check(refs):
    if not all(isinstance(ref, ObjectRef) for ref in refs):
        raise TypeError("get and wait take handles")
