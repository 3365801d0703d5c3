"""The same with Ray 2.x (`pip install ray`): as many processors as workers, and none of the parts that a
program on one machine does not need."""

import os

# A cluster on this machine that nobody else reaches needs no tokens, and nobody is told that it was there.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import measure
import ray


@ray.remote
def no_op(_):
    return None


def main():
    options = measure.arguments()
    own = {} if options.address else {"num_cpus": options.workers, "include_dashboard": False}
    ray.init(address=options.address, log_to_driver=False, logging_level="ERROR", **own)
    try:
        measure.run(f"ray {ray.__version__}", no_op.remote, ray.get, options.workers)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
