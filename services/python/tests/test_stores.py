"""Objects between stores, as far as drivers and workers see them: U2."""

import tempfile
import threading
import time
import unittest

import numpy as np
from cluster import DEADLINE_S, ClusterTest, await_counts, eventually, only_fake
from fake_store import FakeStore

import tripod_ray as ray
from tripod_ray import layout, wire
from tripod_ray.store import StoreConnection


def error_of(ref):
    try:
        ray.get(ref)
        return None
    except ray.TaskError as error:
        return error


@only_fake("needs two stores on one machine")
class TwoStores(ClusterTest):
    stores = 2
    workers = 2

    def test_results_of_a_worker_of_another_store_come(self):
        """The driver shares a store with one worker at most."""
        for value in [1, "x" * 10_000, [1, [2]], np.arange(20_000), {"a": np.ones((3, 3))}]:
            refs = [ray.remote(lambda x: x).remote(value) for _ in range(4)]
            for got in ray.get(refs):
                np.testing.assert_equal(got, value)
        self.assertGreater(len(self.fake.stores[0].objects) * 1 + len(self.fake.stores[1].objects), 0)

    def test_what_is_put_on_one_store_is_an_argument_on_the_other(self):
        array = np.arange(100_000)
        ref = ray.put(array)
        total = ray.remote(lambda x: int(x.sum()))
        self.assertEqual(ray.get([total.remote(ref) for _ in range(10)]), [int(array.sum())] * 10)

    def test_tasks_of_which_an_argument_cannot_come_to_a_store_run_at_the_other_one(self):
        ref, scheduler = ray.put("near"), self.fake.scheduler
        far = self.fake.stores[1 - ray.runtime.process().store.objstoreid]
        self.addCleanup(far.refused.clear)

        @ray.remote
        def same(x, y):
            time.sleep(0.01)  # One after the other would all run at the store that has it.
            return x, y

        def run_at_the_other_one():
            got = ray.get([same.remote(ref, n) for n in range(6)])
            self.assertEqual(got, [("near", n) for n in range(6)])
            return scheduler.given_back > before

        def fail_where_there_is_no_other_one():
            errors = map(error_of, [same.remote(ref, n) for n in range(6)])
            texts.extend(str(error) for error in errors if error is not None)
            return texts

        for code in (wire.RESOURCE_EXHAUSTED, wire.ABORTED):
            far.refused[ref.id] = code
            failed, before, texts = len(scheduler.failed), scheduler.given_back, []
            scheduler.elsewhere = True
            eventually(run_at_the_other_one, "a task that is begun in vain")
            self.assertEqual(len(scheduler.failed), failed)
            scheduler.elsewhere = False
            eventually(fail_where_there_is_no_other_one, "a task that fails")
            for text in texts:
                self.assertIn(f"object {ref.id} cannot come", text)
            eventually(lambda: len(scheduler.failed) == failed + len(texts), "the reports")
        objectid = ref.id
        far.refused.clear()
        del ref
        await_counts(self, [objectid], [-1])

    def test_an_alias_of_an_object_of_the_other_store_comes(self):
        ref = ray.put("far")
        back = ray.remote(lambda refs: refs[0])
        self.assertEqual(ray.get([back.remote([ref]) for _ in range(6)]), ["far"] * 6)


class WrittenTogether(unittest.TestCase):
    """What may be written a little later, with others."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.made = []
        self.fake = FakeStore(folder.name, 0, lambda objectid, _: self.made.append(objectid))
        self.addCleanup(self.fake.close)
        self.store = StoreConnection(self.fake.path, 1)
        self.addCleanup(self.store.close)
        self.answers, self.all_answered = [], threading.Event()

    def put(self, objectid, last, soon=True):
        def answered(error):
            self.answers.append(error)
            if last:
                self.all_answered.set()

        self.store.put(objectid, layout.pack(objectid), None, answered, soon=soon)

    def test_nobody_else_need_write_for_it_to_be_written(self):
        self.put(1, last=True)
        self.assertTrue(self.all_answered.wait(DEADLINE_S))
        self.assertEqual(self.answers, [None])

    def test_a_thread_that_is_busy_does_not_keep_it_back(self):
        self.put(1, last=True)
        end = time.monotonic() + DEADLINE_S
        while not self.all_answered.is_set():
            self.assertLess(time.monotonic(), end, "a task that computes keeps results of others back")

    def test_all_of_them_are_written_in_their_order(self):
        for objectid in range(500):
            self.put(objectid, last=objectid == 499, soon=objectid % 7 > 0)
        self.assertTrue(self.all_answered.wait(DEADLINE_S))
        self.assertEqual(self.answers, [None] * 500)
        # The stand-in answers first.
        eventually(lambda: self.made == list(range(500)), "the order in which they were put")

    def test_the_process_hears_of_a_store_that_is_gone_before_those_who_wait(self):
        heard, all_heard = [], threading.Event()
        self.store.on_lost = lambda _: heard.append("the process")

        def answered(_, reply, __):
            heard.append(reply)
            all_heard.set()

        get = wire.LocalRequest()
        get.get.objectid = 1
        self.store.send([get], answered)
        eventually(lambda: self.fake.waits_for(1), "the store to be asked")
        self.fake.close()
        self.assertTrue(all_heard.wait(DEADLINE_S))
        self.assertEqual(heard, ["the process", None])

    def test_a_connection_that_breaks_tells_those_that_wait_to_be_written(self):
        self.fake.close()
        self.put(1, last=True)
        self.assertTrue(self.all_answered.wait(DEADLINE_S))
        self.assertIsInstance(self.answers[0], ray.StoreError)


if __name__ == "__main__":
    unittest.main()
