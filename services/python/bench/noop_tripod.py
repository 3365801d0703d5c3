"""No-op tasks with this package. The cluster runs, with its object store: `--address` or TRIPOD_ENDPOINTS
names its nodes; this program starts the workers."""

import subprocess
import sys
import time

import measure

import tripod_ray


@tripod_ray.remote
def no_op(_):
    return None


def main():
    options = measure.arguments()
    tripod_ray.init(options.address)
    address = ",".join(tripod_ray.runtime.process().link.endpoints)
    command = [sys.executable, "-m", "tripod_ray.worker", "--until-eof", "--address", address]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(options.workers)]
    try:
        end = time.monotonic() + 60
        while len(tripod_ray.scheduler_info()["available_workers"]) < options.workers:
            if time.monotonic() > end:
                raise TimeoutError("the workers did not come")
            time.sleep(0.05)
        measure.run("tripod", no_op.remote, tripod_ray.get, options.workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        tripod_ray.shutdown()


if __name__ == "__main__":
    main()
