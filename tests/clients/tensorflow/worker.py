"""One worker of a TensorFlow job of two, which plays one scenario.

    python worker.py SCENARIO --task 0 --ports 12001,12002 [--coordinator HOST:PORT]

Without a coordinator worker 0 hosts TensorFlow's own service, as it does by itself. With one, the
coordinator is a job of the cluster that no TensorFlow process belongs to.
"""

import argparse
import inspect
import os
import sys

from outcomes import attempt, emit

# What TensorFlow would choose, said aloud, because the cluster's job must agree with it. In seconds.
HEARTBEAT_TIMEOUT = 4
REGISTER_TIMEOUT = 120
SHUTDOWN_TIMEOUT = 0

_CONFIGS = (
    "tensorflow.compiler.xla.tsl.protobuf",  # 2.21
    "tensorflow.tsl.protobuf",  # 2.12
)


class Worker:
    """What scenarios use: the calls of one process, and who it is."""

    def __init__(self, tensorflow, context, task):
        self.tensorflow = tensorflow
        self.calls = context
        self.me = task
        self.other = 1 - task
        # Releases before 2.15 or so wait for keys without limit.
        self.get_has_limit = "timeout_in_ms" in inspect.signature(context.get_config_key_value).parameters

    def get(self, key, limit_ms):
        """The value of a key, as soon as it has one."""
        if self.get_has_limit:
            return self.calls.get_config_key_value(key, limit_ms)
        return self.calls.get_config_key_value(key)

    def states(self):
        """What the service says of both workers: None, or an error's text."""
        states = self.calls.get_task_states([("worker", 2)])
        return [None if state is None else state.message for state in states]

    def devices(self):
        """Every device of the cluster."""
        return sorted(device.name for device in self.tensorflow.config.list_logical_devices())


def config_module():
    """The module that the release keeps the configuration's messages in."""
    for package in _CONFIGS:
        try:
            return __import__(f"{package}.coordination_config_pb2", fromlist=["CoordinatedJob"])
        except ImportError:
            continue
    raise ImportError(f"this release keeps its coordination config in none of {_CONFIGS}")


def _server(context, task, ports, coordinator):
    """The definition of this process's server."""
    from tensorflow.core.protobuf import cluster_pb2, tensorflow_server_pb2

    cluster = cluster_pb2.ClusterDef()
    worker = cluster.job.add(name="worker")
    for number, port in enumerate(ports):
        worker.tasks[number] = f"127.0.0.1:{port}"
    if coordinator:
        cluster.job.add(name="coordinator").tasks[0] = coordinator
    return tensorflow_server_pb2.ServerDef(
        cluster=cluster,
        job_name="worker",
        task_index=task,
        protocol="grpc",
        default_session_config=context.config,
    )


def connect(task, ports, coordinator):
    """This process as a connected worker; ends the process if it cannot be one."""
    import tensorflow
    from tensorflow.python.eager import context as module

    context = module.context()
    context.configure_coordination_service(
        service_type="standalone",
        service_leader=f"/job:{'coordinator' if coordinator else 'worker'}/replica:0/task:0",
        heartbeat_timeout_in_ms=HEARTBEAT_TIMEOUT * 1000,
        cluster_register_timeout_in_ms=REGISTER_TIMEOUT * 1000,
        shutdown_barrier_timeout_in_ms=SHUTDOWN_TIMEOUT * 1000,
        coordinated_jobs=[config_module().CoordinatedJob(name="worker", num_tasks=2)],
    )
    context.configure_collective_ops(collective_leader="/job:worker/replica:0/task:0")
    context.enable_collective_ops(_server(context, task, ports, coordinator))
    if isinstance(attempt("connect", context.ensure_initialized), Exception):
        # The context's own end would wait for what never began.
        sys.stdout.flush()
        os._exit(3)
    return Worker(tensorflow, context, task)


def main():
    """Connect, play, leave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--task", type=int, required=True)
    parser.add_argument("--ports", required=True, help="where the workers listen, separated by a comma")
    parser.add_argument("--coordinator", help="HOST:PORT of the job at a node")
    options = parser.parse_args()
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="0")
    import scenarios

    worker = connect(options.task, options.ports.split(","), options.coordinator)
    scenarios.ALL[options.scenario](worker)
    emit(step="end")


if __name__ == "__main__":
    main()
