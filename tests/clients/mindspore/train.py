"""A program of MindSpore's dynamic cluster: AllReduce again and again, every result checked. Nothing in it knows of the
scheduler but the variables that MindSpore itself reads: MS_ROLE, MS_SCHED_HOST, MS_SCHED_PORT, MS_WORKER_NUM, MS_NODE_ID.

The program goes on until the file --until exists. Worker 0 looks for it and tells the others in the same AllReduce, so
that all of them do the same number of steps.
"""

import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from steps import emit, end_with_parent  # noqa: E402


def _use_processor():
    """Must come before init, and the network after it."""
    import mindspore

    # Releases before 2.5 do not know set_device.
    if hasattr(mindspore, "set_device"):
        mindspore.set_device("CPU")
    else:
        mindspore.set_context(device_target="CPU")
    mindspore.set_context(mode=mindspore.GRAPH_MODE)


def _network():
    """One AllReduce, compiled once."""
    from mindspore import nn, ops

    class Sum(nn.Cell):
        def __init__(self):
            super().__init__()
            self.all_reduce = ops.AllReduce()

        def construct(self, values):
            return self.all_reduce(values)

    return Sum()


def main():
    """Reduce, and check every step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=20, help="steps at least")
    parser.add_argument("--pace", type=float, default=0.25, help="seconds between steps")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    if options.exit_with_parent:
        end_with_parent()
    emit(step="begin", node=os.environ.get("MS_NODE_ID"))

    import numpy
    from mindspore import Tensor
    from mindspore.communication import get_group_size, get_rank, init

    begin = time.monotonic()
    _use_processor()
    init()
    me, workers = get_rank(), get_group_size()
    emit(step="initialized", rank=me, workers=workers, secs=round(time.monotonic() - begin, 1))
    network = _network()
    everybody = workers * (workers + 1) / 2
    number, goes_on = 0, True
    while goes_on:
        mine = me == 0 and (number < options.steps or not options.until.exists())
        # The first element is what is checked, the second one whether to go on.
        values = numpy.array([me + 1 + number, 1.0 if mine else 0.0], numpy.float32)
        found = network(Tensor(values)).asnumpy()
        expected = everybody + workers * number
        if found[0] != expected:
            raise AssertionError(f"step {number} gave {found[0]}, not {expected}")
        goes_on = bool(found[1])
        emit(step="reduced", number=number)
        number += 1
        time.sleep(options.pace)
    emit(step="end", steps=number)


if __name__ == "__main__":
    main()
