"""The parts with pymars 0.10.0: a supervisor and two workers with one slot each, as processes of this machine."""

import mars
import mars.tensor as mt
import mars_parts

WORKERS = 2


class Pymars:
    """Tensors of `mars.tensor`."""

    def product(self, rows, chunk_rows):
        a = mt.random.rand(rows, rows, chunk_size=chunk_rows).execute(show_progress=False)
        took, result = mars_parts.seconds(
            lambda: ((a + 1) @ a.T).sum(axis=0).execute(show_progress=False).fetch()
        )
        return took, result, a.fetch()

    def moments(self, numbers, chunk_numbers):
        def work():
            x = mt.random.rand(numbers, chunk_size=chunk_numbers)
            return [float(one) for one in mars.fetch(*mars.execute(x.mean(), x.var(), show_progress=False))]

        return mars_parts.seconds(work)

    def graphs(self, arrays):
        def one(array):
            return float((mt.tensor(array) + 1).sum().execute(show_progress=False).fetch())

        return mars_parts.seconds(lambda: [one(array) for array in arrays])

    def subtasks(self, count):
        took, zeros = mars_parts.seconds(
            lambda: mt.zeros((count,), chunk_size=1).execute(show_progress=False)
        )
        return took, zeros[:10].fetch()


def main():
    # Of both workers together.
    session = mars.new_session(n_worker=WORKERS, n_cpu=WORKERS, web=False)
    try:
        mars_parts.run(f"pymars {mars.__version__}", Pymars())
    finally:
        session.stop_server()


if __name__ == "__main__":
    main()
