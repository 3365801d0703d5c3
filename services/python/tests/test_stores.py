"""Objects between stores, as far as drivers and workers see them: U2."""

import os
import select
import signal
import tempfile
import threading
import time
import unittest
from concurrent import futures
from unittest import mock

import numpy as np
from cluster import DEADLINE_S, ClusterTest, await_counts, eventually, only_fake
from fake import FakeCluster
from fake_store import FakeStore

import tripod_ray as ray
from tripod_ray import layout, wire
from tripod_ray.errors import StoreError
from tripod_ray.process import Process
from tripod_ray.store import Gets, StoreConnection


def error_of(ref):
    try:
        ray.get(ref)
        return None
    except ray.TaskError as error:
        return error


def is_writable(connection):
    return bool(select.select([], [connection], [], 0)[1])


class ReadingThreads(unittest.TestCase):
    """In a driver, whoever waits for an object reads by itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fake = FakeStore(folder.name, 0, lambda *_: None)
        self.addCleanup(self.fake.close)
        self.store = StoreConnection(self.fake.path, 1, direct=True)
        self.addCleanup(self.store.close)

    def got(self, gets, *places):
        return [bytes(gets.take(place, None)[0]) for place in places]

    def insert_when_waited_for(self, objectid, data):
        def insert():
            eventually(lambda: self.fake.waits_for(objectid), f"a get of {objectid}")
            self.fake.insert(objectid, 0, data)

        thread = threading.Thread(target=insert)
        thread.start()
        self.addCleanup(thread.join)

    def test_the_waiting_thread_takes_replies_for_all_that_wait(self):
        with futures.ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(self.wait_for, objectid) for objectid in range(8)]
            for objectid in range(8):
                eventually(lambda objectid=objectid: self.fake.waits_for(objectid), "all of them wait")
            for objectid in reversed(range(8)):
                self.fake.insert(objectid, 0, b"%d" % objectid)
                self.assertEqual(waiting[objectid].result(60), b"%d" % objectid)

    def wait_for(self, objectid):
        gets = Gets(self.store, [objectid])
        self.assertTrue(gets.wait(60))
        return self.got(gets, 0)[0]

    def test_a_wait_that_is_broken_off_loses_no_reply(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        for objectid in range(20):
            gets = Gets(self.store, [objectid])
            eventually(lambda objectid=objectid: self.fake.waits_for(objectid), "the get has come")

            def disturb(objectid=objectid):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                self.fake.insert(objectid, 0, b"x" * objectid)

            thread = threading.Thread(target=disturb)
            with self.assertRaises(KeyboardInterrupt):
                thread.start()
                gets.wait(None)
                # The reply may win: then the signal comes here.
                threading.Event().wait(60)
            thread.join()
            self.assertTrue(gets.wait(60))
            self.assertEqual(self.got(gets, 0), [b"x" * objectid])

    def test_the_end_of_the_store_ends_a_wait_and_is_noticed_without_one(self):
        ends = []
        self.store.on_lost = ends.append
        gets = Gets(self.store, [0])
        thread = threading.Thread(target=lambda: eventually(lambda: self.fake.waits_for(0), "it waits"))
        thread.start()
        thread.join()
        self.fake.close()
        with self.assertRaises(StoreError):
            gets.wait(None)
        self.assertEqual(len(ends), 1)

        other = FakeStore(tempfile.mkdtemp(dir=os.path.dirname(self.fake.path)), 1, lambda *_: None)
        idle = StoreConnection(other.path, 1, direct=True)
        self.addCleanup(idle.close)
        idle.on_lost = ends.append
        other.close()
        eventually(lambda: len(ends) == 2, "nobody waits, and it is noticed")

    def test_a_connection_to_a_store_that_reads_nothing_can_be_closed(self):
        """A thread that writes to it waits for room, and has the lock of those who write."""
        frozen = self.fake.freeze()
        self.addCleanup(frozen.set)
        store = StoreConnection(self.fake.path, 1)
        flushes = threading.Thread(target=self.write_until_lost, args=(store,), daemon=True)
        flushes.start()
        eventually(store._writing.locked, "a thread that writes")
        eventually(lambda: not is_writable(store._socket), "no room")
        closes = threading.Thread(target=store.close, daemon=True)
        closes.start()
        for thread in (closes, flushes):
            thread.join(DEADLINE_S)
            self.assertFalse(thread.is_alive())

    def write_until_lost(self, store):
        request = wire.LocalRequest()
        request.put.data = bytes(64 * 1024)
        while store.lost is None:
            store.send([request], lambda *_: None)

    def test_who_has_limited_time_gets_no_more(self):
        gets = Gets(self.store, [0])
        self.assertFalse(gets.wait(0.01))
        self.insert_when_waited_for(0, b"late")
        self.assertTrue(gets.wait(60))
        self.assertEqual(self.got(gets, 0), [b"late"])

    def test_replies_that_nobody_waits_for_are_taken_too(self):
        """Also after a thread has read by itself."""
        for objectid in range(3):
            self.fake.insert(objectid, 0, b"x")
            self.assertEqual(self.wait_for(objectid), b"x")
            arrived = threading.Event()
            request = wire.LocalRequest()
            request.get.objectid = objectid
            self.store.send([request], lambda *_, arrived=arrived: arrived.set())
            self.assertTrue(arrived.wait(60))


class Processes(unittest.TestCase):
    def test_a_process_is_told_of_a_store_that_went_while_it_began(self):
        fake = FakeCluster()
        self.addCleanup(fake.close)

        def connect(process, connect=Process._connect_store):
            store = connect(process)
            fake.stores[0].close()
            eventually(lambda: store.lost is not None, "the end of the store")
            return store

        with mock.patch.object(Process, "_connect_store", connect):
            process = Process(fake.address, driver=True)
        self.addCleanup(process.close)
        self.assertIsInstance(process.lost, StoreError)


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

    def test_a_task_whose_argument_does_not_come_goes_back_and_keeps_no_worker(self):
        """The argument may have to be made again, by a task for which all workers are needed that wait for it."""
        ref, scheduler = ray.put("late"), self.fake.scheduler
        for store in self.fake.stores.values():
            store.withheld.add(ref.id)
        same = ray.remote(lambda x, y: (x, y))
        waiting = [same.remote(ref, n) for n in range(4)]
        before = scheduler.given_back
        self.assertEqual(ray.get([same.remote("other", n) for n in range(4)]), [("other", n) for n in range(4)])
        eventually(lambda: scheduler.given_back > before, "a task that is given back")
        for store in self.fake.stores.values():
            store.withheld.clear()
        self.assertEqual(ray.get(waiting), [("late", n) for n in range(4)])
        self.assertEqual(scheduler.failed, [])

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
