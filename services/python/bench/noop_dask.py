"""The same with Dask's distributed scheduler (`pip install distributed`): worker processes of one thread
each."""

import distributed
import measure


def no_op(_):
    return None


def main():
    options = measure.arguments()
    started = {
        "n_workers": options.workers,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with distributed.Client(options.address) if options.address else distributed.Client(**started) as client:
        # Equal calls would be one task: a no-op is pure to Dask unless it is told otherwise.
        def submit(previous):
            return client.submit(no_op, previous, pure=False)

        measure.run(f"dask {distributed.__version__}", submit, client.gather, options.workers)


if __name__ == "__main__":
    main()
