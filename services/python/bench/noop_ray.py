"""The same with Ray 2.x (`pip install ray`): as many processors as workers."""

import measure
import ray


@ray.remote
def no_op(_):
    return None


def main():
    options = measure.arguments()
    ray.init(address=options.address, **({} if options.address else {"num_cpus": options.workers}))
    try:
        measure.run(f"ray {ray.__version__}", no_op.remote, ray.get, options.workers)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
