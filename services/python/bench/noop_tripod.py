"""No-op tasks with this package. Without `--address` it starts a cluster of three nodes on this machine, with
the program `tripod` from TRIPOD_BIN or PATH; a cluster that is named has an object store here and no workers
yet, which this program starts."""

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
    if options.address:
        tripod_ray.init(options.address)
        workers = start_workers(options)
    else:
        tripod_ray.init(num_workers=options.workers)
        workers = []
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


def start_workers(options):
    command = [sys.executable, "-m", "tripod_ray.worker", "--until-eof", "--address", options.address]
    return [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(options.workers)]


if __name__ == "__main__":
    main()
