"""One process of a training with ParameterServerStrategy: the chief, a worker, or a parameter server.

    python parameter_server.py chief --coordinator HOST:PORT --ports WORKER,PS,CHIEF

The strategy's cluster has names for four jobs only, so the coordinator is the one that is left:
`evaluator`. The chief takes it for a worker like all others, and tells the others where it is.
"""

import argparse
import os

from outcomes import emit
from worker import HEARTBEAT_TIMEOUT, REGISTER_TIMEOUT, config_module

STEPS = 10


def _cluster(options):
    tasks = zip(("worker", "ps", "chief"), options.ports.split(","))
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in tasks}
    return {**cluster, "evaluator": [options.coordinator]}


def _serve(tf, options):
    """A worker or a parameter server: does what the chief tells it, until it is killed."""
    spec = tf.train.ClusterSpec(_cluster(options))
    server = tf.distribute.Server(spec, job_name=options.role, task_index=0, protocol="grpc", start=True)
    emit(step="serves")
    server.join()


def _train(tf, options):
    from tensorflow.python.eager import context as module

    context = module.context()
    job = config_module().CoordinatedJob
    context.configure_coordination_service(
        service_type="standalone",
        service_leader="/job:evaluator/replica:0/task:0",
        heartbeat_timeout_in_ms=HEARTBEAT_TIMEOUT * 1000,
        cluster_register_timeout_in_ms=REGISTER_TIMEOUT * 1000,
        coordinated_jobs=[job(name="worker", num_tasks=1), job(name="ps", num_tasks=1)],
    )
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(_cluster(options)), rpc_layer="grpc", task_type="chief", task_id=0
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        total = tf.Variable(0.0)

    @tf.function
    def add():
        total.assign_add(1.0)
        return total.device

    for _ in range(STEPS):
        coordinator.schedule(add)
    coordinator.join()
    states = context.get_task_states([("worker", 1), ("ps", 1)])
    states = [None if state is None else state.message for state in states]
    emit(step="trained", total=float(total.numpy()), device=total.device, states=states)
    # Threads of the strategy wait for more work for ever, and Python for them.
    os._exit(0)


def main():
    """Play the role."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("role", choices=["chief", "worker", "ps"])
    parser.add_argument("--coordinator", required=True, help="HOST:PORT of the job at a node")
    parser.add_argument("--ports", required=True, help="of worker, parameter server and chief")
    options = parser.parse_args()
    os.environ.update(
        CUDA_VISIBLE_DEVICES="-1",
        TF_ENABLE_ONEDNN_OPTS="0",
        # The strategy uses the service only if it is asked to.
        TF_PSS_ENABLE_COORDINATION_SERVICE="1",
    )
    import tensorflow as tf

    (_train if options.role == "chief" else _serve)(tf, options)


if __name__ == "__main__":
    main()
