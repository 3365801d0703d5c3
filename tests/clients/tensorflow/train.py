"""A training with MultiWorkerMirroredStrategy: nothing in it knows of the coordinator but TF_CONFIG, which
names it as job `ps`. Releases that do not look there are told by one call.

The model has one weight; every worker sees other numbers, so the weight is right only if all workers'
changes were averaged in every step. The program goes on until the file --until exists; the first worker
decides and tells the others, as a training that looks at its own metrics would.
"""

import argparse
import os
import pathlib
import time

from outcomes import emit
from steps import end_with_parent
from worker import config_module

COORDINATOR = "/job:ps/replica:0/task:0"
LEARNING_RATE = 0.125


def _name_the_coordinator(tf):
    """What older releases do not do by themselves."""
    from tensorflow.python.distribute import multi_worker_util
    from tensorflow.python.eager import context

    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()
    if multi_worker_util.coordination_leader(cluster) == COORDINATOR:
        return
    jobs = [job for job in cluster.jobs if job in ("chief", "worker")]
    coordinated = config_module().CoordinatedJob
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader=COORDINATOR,
        coordinated_jobs=[coordinated(name=job, num_tasks=cluster.num_tasks(job)) for job in jobs],
    )


def _rank(resolver):
    """The number of this process among all that train: the chief is the first one, if there is one."""
    chiefs = resolver.cluster_spec().as_dict().get("chief", [])
    return resolver.task_id + (0 if resolver.task_type == "chief" else len(chiefs))


def main():
    """Train, and check every step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=20, help="steps at least")
    parser.add_argument("--pace", type=float, default=0.25, help="seconds between steps")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    if options.exit_with_parent:
        end_with_parent()
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="0")
    import tensorflow as tf

    _name_the_coordinator(tf)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers = strategy.num_replicas_in_sync
    me = _rank(strategy.cluster_resolver)
    emit(step="initialized", workers=workers, rank=me)
    with strategy.scope():
        weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)

    def step(goes_on):
        # Of all workers together the mean of (weight - worker)^2 is minimised.
        weight.assign_sub(LEARNING_RATE * 2.0 * (weight - float(me)))
        return goes_on

    @tf.function
    def run(goes_on):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(goes_on,)), axis=None)

    mean = sum(range(workers)) / workers
    expected, number, goes_on = 0.0, 0, 1.0
    while goes_on:
        mine = 1.0 if me == 0 and (number < options.steps or not options.until.exists()) else 0.0
        goes_on = float(run(tf.constant(mine)))
        expected -= LEARNING_RATE * 2.0 * (expected - mean)
        found = float(weight.numpy())
        if abs(found - expected) > 1e-4:
            raise AssertionError(f"the weight is {found} after step {number}, not {expected}")
        emit(step="trained", number=number)
        number += 1
        time.sleep(options.pace)
    emit(step="end", steps=number)


if __name__ == "__main__":
    main()
