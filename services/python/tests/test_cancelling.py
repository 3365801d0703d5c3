"""An exception that comes between any two lines of a task, and nowhere else."""

import signal
import sys
import threading
import time
import unittest

from cluster import DEADLINE_S

from tripod_ray import wire
from tripod_ray.cancelling import Cancellation, Cancels, hear
from tripod_ray.errors import TaskCancelledError
from tripod_ray.turn import Turn


def order(operationid, grace_ms=60_000, attempt=1):
    made = wire.RayCancelOrder(grace_ms=grace_ms)
    made.run.operationid, made.run.attempt = operationid, attempt
    return made


class OfOneTask(unittest.TestCase):
    def setUp(self):
        self.cancellation = Cancellation((1, 1), "f")

    def later(self, work):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.addCleanup(thread.join, DEADLINE_S)

    def test_it_comes_in_the_middle_of_the_tasks_lines_and_once(self):
        begun, seen = threading.Event(), []

        def task(word, *, of):
            try:
                begun.set()
                while True:
                    pass
            except TaskCancelledError:
                seen.append(word + of)
                self.cancellation.request()
                with self.cancellation:
                    seen.append("sheltered")
                for _ in range(1000):
                    pass
                raise

        self.later(lambda: (begun.wait(), self.cancellation.request()))
        with self.assertRaises(TaskCancelledError):
            self.cancellation.execute(task, ("a",), {"of": "b"})
        self.assertEqual(seen, ["ab", "sheltered"])
        self.assertTrue(self.cancellation.end())

    def test_it_waits_for_the_end_of_a_shelter(self):
        seen = []

        def task():
            with self.cancellation:
                with self.cancellation:
                    self.cancellation.request()
                    seen.append("inner")
                seen.append("outer")
            seen.append("never")

        with self.assertRaises(TaskCancelledError):
            self.cancellation.execute(task, (), {})
        self.assertEqual(seen, ["inner", "outer"])

    def test_whoever_waits_is_woken(self):
        changed, waits = threading.Condition(), threading.Event()

        def task():
            with self.cancellation, changed:
                self.cancellation.wait_for(changed, waits.set)

        self.later(lambda: (waits.wait(), self.cancellation.request()))
        with self.assertRaises(TaskCancelledError):
            self.cancellation.execute(task, (), {})
        with changed:
            self.assertTrue(self.cancellation.wait_for(changed, lambda: True))
            self.assertFalse(self.cancellation.wait_for(changed, lambda: False, 0.01), "it was told already")

    def test_a_call_that_answers_nothing_is_left_behind(self):
        never, called = threading.Event(), threading.Event()
        self.addCleanup(never.set)

        def task():
            with self.cancellation:
                self.assertEqual(self.cancellation.during(lambda: 5), 5)
                with self.assertRaises(KeyError):
                    self.cancellation.during(lambda: {}[0])
                self.cancellation.during(lambda: (called.set(), never.wait()))

        self.later(lambda: (called.wait(), self.cancellation.request()))
        with self.assertRaises(TaskCancelledError):
            self.cancellation.execute(task, (), {})

    def test_a_sleep_of_the_main_thread_ends(self):
        self.addCleanup(signal.signal, signal.SIGURG, signal.getsignal(signal.SIGURG))
        hear()
        begun = threading.Event()
        # Before the sleep begins nothing has to be woken.
        self.later(lambda: (begun.wait(), time.sleep(0.2), self.cancellation.request()))
        before = time.monotonic()
        with self.assertRaises(TaskCancelledError):
            self.cancellation.execute(lambda: (begun.set(), time.sleep(10 * DEADLINE_S)), (), {})
        self.assertLess(time.monotonic() - before, DEADLINE_S)

    def test_what_was_cancelled_before_it_begins_does_not_begin(self):
        self.cancellation.request()
        with self.assertRaises(TaskCancelledError):
            self.cancellation.execute(self.fail, ("it began",), {})

    def test_nothing_comes_after_the_end(self):
        self.assertEqual(self.cancellation.execute(lambda: 5, (), {}), 5)
        self.assertFalse(self.cancellation.end())
        self.cancellation.request()
        self.assertFalse(self.cancellation.wanted)

    def test_wherever_it_falls_nothing_is_on_its_way_afterwards(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        ended, raised = 0, 0
        for round in range(1500):
            cancellation = Cancellation((round, 1), "f")
            go, changed = threading.Event(), threading.Condition()

            def task():
                go.set()
                for _ in range(round % 40):
                    with cancellation, changed:
                        cancellation.wait_for(changed, lambda: True)
                return 5

            def cancel():
                go.wait()
                for _ in range(round % 23 * 20):
                    pass
                cancellation.request()

            thread = threading.Thread(target=cancel)
            thread.start()
            try:
                self.assertEqual(cancellation.execute(task, (), {}), 5)
                ended += 1
            except TaskCancelledError:
                raised += 1
            # Outside of the task's lines nothing may come any more.
            for _ in range(50):
                cancellation.wanted and None
            thread.join()
            for _ in range(50):
                cancellation.wanted and None
            self.assertEqual((cancellation._depth, cancellation._thread), (1, None))
        self.assertEqual(ended + raised, 1500)
        self.assertGreater(min(ended, raised), 0, "it fell everywhere")


class OfAWorker(unittest.TestCase):
    def setUp(self):
        self.held, self.queue, self.dropped, self.killed = set(), set(), [], threading.Event()
        self.cancels = Cancels(self.held.__contains__, self.drop, self.kill)

    def drop(self, run):
        if run in self.queue:
            self.queue.remove(run)
            self.held.discard(run)
            self.cancels.forget(run)
            self.dropped.append(run)

    def kill(self, cancellation, grace_s):
        self.killed.told = (cancellation.run, grace_s)
        self.killed.set()

    def test_a_run_that_it_does_not_have_is_left_alone(self):
        self.held.add((1, 2))
        self.cancels.take(order(1, attempt=1))
        cancellation = Cancellation((1, 2), "f")
        self.cancels.begin(cancellation)
        self.assertFalse(self.cancels.end(cancellation))

    def test_a_run_in_the_queue_is_dropped(self):
        self.held.add((1, 1))
        self.queue.add((1, 1))
        self.cancels.take(order(1))
        self.assertEqual(self.dropped, [(1, 1)])

    def test_a_run_that_is_about_to_begin_is_told_when_it_does(self):
        self.held.add((1, 1))
        self.cancels.take(order(1))
        cancellation = Cancellation((1, 1), "f")
        self.cancels.begin(cancellation)
        self.assertTrue(self.cancels.end(cancellation))

    def test_the_process_ends_with_the_shortest_grace(self):
        self.held.add((1, 1))
        cancellation = Cancellation((1, 1), "f")
        self.cancels.begin(cancellation)
        self.cancels.take(order(1, 1_000_000))
        self.assertFalse(self.killed.is_set())
        self.cancels.take(order(1, 10))
        self.assertTrue(self.killed.wait(DEADLINE_S))
        self.assertEqual(self.killed.told, ((1, 1), 0.01))
        self.cancels.end(cancellation)

    def test_the_process_stays_when_the_task_has_ended(self):
        self.held.add((1, 1))
        cancellation = Cancellation((1, 1), "f")
        self.cancels.begin(cancellation)
        self.cancels.take(order(1, 50))
        self.assertTrue(self.cancels.end(cancellation))
        self.assertFalse(self.killed.wait(0.2))


class OfATurn(unittest.TestCase):
    def test_a_cancelled_task_goes_on_beside_the_one_that_runs(self):
        cancellation, log = Cancellation((1, 1), "f"), []
        other_runs, waiter_over = threading.Event(), threading.Event()

        def run_items():
            while (item := turn.take()) is not None:
                item()
                turn.done()

        def start():
            thread = threading.Thread(target=run_items, daemon=True)
            thread.start()
            self.addCleanup(thread.join, DEADLINE_S)

        def waits():
            with turn.pausing(cancellation):
                other_runs.wait(DEADLINE_S)
                cancellation.request()
            log.append("waiter ends")
            with turn.pausing(cancellation):
                log.append("and pauses")
            waiter_over.set()

        def other():
            other_runs.set()
            self.assertTrue(waiter_over.wait(DEADLINE_S))
            log.append("other ends")

        turn = Turn(start)
        self.addCleanup(turn.close)
        turn.put([waits, other, lambda: log.append("last"), None])
        run_items()
        self.assertTrue(waiter_over.is_set())
        self.assertEqual(log, ["waiter ends", "and pauses", "other ends", "last"])


if __name__ == "__main__":
    unittest.main()
