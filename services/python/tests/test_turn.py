"""One task at a time, in order, and others while one waits."""

import threading
import unittest

from cluster import DEADLINE_S

from tripod_ray.turn import Turn


class Turns(unittest.TestCase):
    def setUp(self):
        self.threads = []
        self.turn = Turn(self.start)
        self.addCleanup(self.turn.close)
        self.log = []

    def start(self):
        thread = threading.Thread(target=self.run_items, daemon=True)
        self.threads.append(thread)
        thread.start()

    def run_items(self):
        while (item := self.turn.take()) is not None:
            item()
            self.turn.done()

    def test_items_run_in_order_and_none_ends(self):
        self.turn.put([lambda place=place: self.log.append(place) for place in range(100)])
        self.turn.put([None])
        self.run_items()
        self.assertEqual(self.log, list(range(100)))

    def test_others_run_while_one_waits_and_it_goes_on_alone(self):
        over, inside = threading.Event(), []

        def waits():
            self.log.append("begin")
            with self.turn.pausing():
                over.wait(60)
            inside.append(1)
            self.log.append("end")
            inside.pop()

        def other():
            self.log.append("other")
            over.set()
            for _ in range(1000):
                self.assertEqual(inside, [], "two tasks run at once")

        self.turn.put([waits, other, None])
        self.run_items()
        for thread in self.threads:
            thread.join(60)
        self.assertEqual(self.log, ["begin", "other", "end"])

    def test_waiting_can_nest_as_deep_as_there_are_items(self):
        done = [threading.Event() for _ in range(21)]

        def waits_for_next(place):
            with self.turn.pausing():
                done[place + 1].wait(60)
            self.log.append(place)
            done[place].set()

        for place in range(20):
            self.turn.put([lambda place=place: waits_for_next(place)])
        self.turn.put([done[20].set])
        self.start()
        self.assertTrue(done[0].wait(60))
        self.assertEqual(self.log, list(range(19, -1, -1)))

    def test_a_task_that_would_wait_fails_when_there_is_no_thread_for_others(self):
        def no_thread():
            raise RuntimeError("can't start new thread")

        turn, log = Turn(no_thread), []

        def waits():
            try:
                with turn.pausing():
                    log.append("waits")
            except RuntimeError as error:
                log.append(str(error))

        turn.put([waits, lambda: log.append("next"), None])
        while (item := turn.take()) is not None:
            self.assertTrue(turn._busy, "it has the turn")
            item()
            self.assertTrue(turn._busy, "it has the turn still")
            turn.done()
        self.assertEqual(log, ["can't start new thread", "next"])

    def test_nothing_begins_while_it_is_not_allowed(self):
        allowed = threading.Event()
        self.turn.set_allowed(allowed.is_set)
        ran = threading.Event()
        self.turn.put([ran.set])
        self.start()
        self.assertFalse(ran.wait(0.3))
        allowed.set()
        self.assertTrue(ran.wait(60))

    def test_the_end_comes_when_what_is_before_it_may_not_begin(self):
        self.turn.set_allowed(lambda: False)
        self.turn.put([None])
        self.start()
        self.threads[0].join(DEADLINE_S)
        self.assertFalse(self.threads[0].is_alive())
        turn = Turn(lambda: None)
        turn.set_allowed(lambda: False)
        turn.put(["never", None])
        self.assertIsNone(turn.take())

    def test_the_end_waits_for_tasks_that_wait_and_for_what_they_wait_for(self):
        over = threading.Event()

        def waits():
            with self.turn.pausing():
                # After the end: it was submitted by this one.
                self.turn.put([over.set])
                self.log.append(over.wait(DEADLINE_S))

        self.turn.put([waits, None])
        self.run_items()
        for thread in self.threads:
            thread.join(DEADLINE_S)
        self.assertEqual(self.log, [True])
        self.assertIsNone(self.turn.take(), "and then it comes")

    def test_what_comes_after_the_end_is_withdrawn_and_not_begun(self):
        turn = Turn(lambda: None)
        turn.put(["runs", None])
        turn.take()
        turn.put(["late", "later"])
        self.assertEqual(turn.withdraw(lambda item: item == "late", running_s=1e-9), ["late"])
        turn.done()
        self.assertIsNone(turn.take())

    def test_nothing_is_withdrawn_while_variables_are_made(self):
        turn = Turn(lambda: None)
        turn.put(["variable", "task", "behind"])
        turn.take()
        turn.keeps_up()
        self.assertEqual(turn.withdraw(lambda _: True, running_s=1e-9), [])
        turn.done()
        self.assertEqual(turn.take(), "task")
        self.assertEqual(turn.withdraw(lambda _: True, running_s=1e-9), ["behind"], "it runs")
        turn.put(["variable", "behind"])
        with turn.pausing():
            turn.take()
            turn.keeps_up()
            self.assertEqual(turn.withdraw(lambda _: True, running_s=1e-9), [])
            turn.done()
        self.assertEqual(turn.withdraw(lambda _: True, running_s=1e-9), ["behind"], "it goes on")

    def test_what_is_behind_a_task_that_takes_long_can_be_withdrawn(self):
        self.turn.put(["first", "second", 3, "fourth", None])
        self.assertEqual(self.turn.withdraw(lambda _: True, running_s=0.01), [], "nothing runs")
        self.assertEqual(self.turn.take(), "first")
        self.assertEqual(self.turn.withdraw(lambda _: True, running_s=60), [], "it has just begun")
        self.assertEqual(self.turn.withdraw(lambda item: item != 3), ["second", "fourth"])
        self.turn.done()
        self.assertEqual([self.turn.take(), self.turn.done(), self.turn.take()], [3, None, None])


if __name__ == "__main__":
    unittest.main()
