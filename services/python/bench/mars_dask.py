"""The parts with Dask's arrays on its distributed scheduler (`pip install dask[array] distributed`): worker processes of
one thread each."""

import dask
import dask.array as da
import distributed
import mars_parts

WORKERS = 2


class Dask:
    """Tensors of `dask.array`."""

    def product(self, rows, chunk_rows):
        a = da.random.random((rows, rows), chunks=chunk_rows).persist()
        distributed.wait(a)
        took, result = mars_parts.seconds(lambda: ((a + 1) @ a.T).sum(axis=0).compute())
        return took, result, a.compute()

    def moments(self, numbers, chunk_numbers):
        def work():
            x = da.random.random(numbers, chunks=chunk_numbers)
            return dask.compute(x.mean(), x.var())

        return mars_parts.seconds(work)

    def graphs(self, arrays):
        return mars_parts.seconds(lambda: [float((da.from_array(one) + 1).sum().compute()) for one in arrays])

    def subtasks(self, count):
        def work():
            zeros = da.zeros((count,), chunks=1).persist()
            distributed.wait(zeros)
            return zeros

        took, zeros = mars_parts.seconds(work)
        return took, zeros[:10].compute()


def main():
    started = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**started) as cluster, distributed.Client(cluster):
        mars_parts.run(f"Dask {dask.__version__}", Dask())


if __name__ == "__main__":
    main()
