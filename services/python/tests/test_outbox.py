"""The queue of calls: order, batches, and what waits for what."""

import threading
import unittest

from cluster import eventually

from tripod_ray import calls, outbox, wire
from tripod_ray.errors import ExpiredError, FunctionNotRegisteredError, RefusedError, TripodError
from tripod_ray.reference import ObjectRef


class Scripted:
    """In place of a link: hands each batch to the test, which answers."""

    def __init__(self):
        self.batches, self.sequences = [], []
        self.answer = self.accept
        self.gate = threading.Event()
        self.gate.set()
        self.next_id = 0

    def call(self, path, data, metadata):
        metadata = dict(metadata)
        self.sequences.append((int(metadata[wire.SEQ]), int(metadata[wire.ACKED])))
        if path == wire.REGISTER_WORKER:
            return wire.RegisterWorkerReply(workerid=4).SerializeToString()
        self.gate.wait(60)
        self.batches.append([path])
        return b""

    def batch(self, message, session):
        self.sequences.append((message.seq, message.acked))
        self.gate.wait(60)
        self.batches.append([describe(call) for call in message.batch.calls])
        response = wire.RayBatchResponse()
        for call in message.batch.calls:
            self.answer(call, response.results.add())
        return response

    def accept(self, call, result):
        if call.HasField("submit"):
            result.submit.function_registered = True
            result.submit.result.append(self.new_id())
        elif call.HasField("put"):
            result.put.objectid = self.new_id()

    def new_id(self):
        self.next_id += 1
        return self.next_id - 1

    def flat(self):
        return [call for batch in self.batches for call in batch]


def describe(call):
    kind = call.WhichOneof("call")
    message = getattr(call, kind)
    if kind in ("increment", "decrement"):
        return (kind, *message.objectid)
    if kind == "submit":
        return (kind, message.task.name.decode(), *(value.id for value in message.task.arg))
    return (kind,)


class Line(unittest.TestCase):
    def setUp(self):
        self.link = Scripted()
        self.outbox = outbox.Outbox(self.link)
        self.outbox.register(wire.RegisterWorkerRequest())
        self.addCleanup(self.outbox.close)
        self.addCleanup(self.link.gate.set)

    def submit(self, name, *arguments):
        ref = ObjectRef(self.outbox)
        self.outbox.post(calls.Submit(name.encode(), list(arguments), [ref]))
        return ref

    def test_calls_that_come_while_one_is_on_its_way_are_the_next_batch_in_order(self):
        self.link.gate.clear()
        refs = [self.submit(f"f{number}") for number in range(600)]
        self.link.gate.set()
        self.assertEqual([ref.id for ref in refs], list(range(600)))
        self.assertEqual(self.link.flat(), [("submit", f"f{number}") for number in range(600)])
        self.assertLessEqual(max(map(len, self.link.batches)), outbox.CALLS_MOST)
        self.assertLess(len(self.link.batches), 10)
        self.assertEqual(self.link.sequences, [(n + 1, n) for n in range(len(self.link.sequences))])

    def test_a_submission_waits_for_the_ids_of_its_arguments_and_others_overtake_it(self):
        self.link.gate.clear()
        self.submit("first")
        x = self.submit("x")
        y = self.submit("y", x)
        other = self.submit("other")
        self.link.gate.set()
        self.assertEqual((x.id, other.id, y.id), (1, 2, 3))
        sent = [call for call in self.link.flat() if call[0] != "decrement"]
        self.assertEqual(sent[-3:], [("submit", "other"), ("increment", 1), ("submit", "y", 1)])

    def test_references_are_given_up_after_what_was_posted_before(self):
        x = self.submit("x")
        self.assertEqual(x.id, 0)
        self.link.gate.clear()
        self.submit("blocker")
        y = self.submit("y", x)
        del x
        self.link.gate.set()
        self.assertEqual(y.id, 2)
        flat = self.link.flat()
        self.await_call(("decrement", 0))
        self.assertLess(flat.index(("increment", 0)), flat.index(("submit", "y", 0)))
        self.assertLess(self.link.flat().index(("submit", "y", 0)), self.place_of_drop(0))

    def test_a_call_that_goes_alone_keeps_its_place(self):
        self.link.gate.clear()
        self.submit("blocker")
        self.submit("before")
        alone = calls.Alone("/Scheduler/ExportFunction", wire.ExportFunctionRequest())
        self.outbox.post(alone)
        after = self.submit("after")
        self.link.gate.set()
        self.assertEqual(after.id, 2)
        flat = [call for call in self.link.flat() if call[0] != "decrement"]
        place = flat.index("/Scheduler/ExportFunction")
        self.assertEqual((flat[place - 1], flat[place + 1]), (("submit", "before"), ("submit", "after")))

    def test_references_are_given_up_after_what_follows_a_call_that_goes_alone(self):
        self.link.gate.clear()
        self.submit("blocker")
        self.submit("before")
        self.outbox.post(calls.Alone("/Scheduler/ExportFunction", wire.ExportFunctionRequest()))
        self.outbox.post(calls.Increment([5]))
        self.outbox.drop(9)
        self.link.gate.set()
        self.await_call(("decrement", 9))
        self.assertLess(self.link.flat().index(("increment", 5)), self.place_of_drop(9))

    def test_an_unregistered_function_is_submitted_again_without_new_references(self):
        x = self.submit("x")
        self.assertEqual(x.id, 0)
        left = [3]

        def later(call, result):
            if call.HasField("submit") and left[0]:
                left[0] -= 1
                result.submit.SetInParent()
            else:
                self.link.accept(call, result)

        self.link.answer = later
        y = self.submit("y", x)
        z = self.submit("z", y)
        self.assertEqual((y.id, z.id), (1, 2))
        flat = self.link.flat()
        self.assertEqual(flat.count(("submit", "y", 0)), 4)
        self.assertEqual(flat.count(("increment", 0)), 1)

    def test_a_function_that_is_never_registered_is_an_error_for_all_that_need_it(self):
        before = calls.REGISTRATION_S
        calls.REGISTRATION_S = 0.2
        self.addCleanup(setattr, calls, "REGISTRATION_S", before)
        x = self.submit("x")
        self.assertEqual(x.id, 0)
        self.link.answer = lambda call, result: call.HasField("submit") and result.submit.SetInParent()
        y = self.submit("y", x)
        z = self.submit("z", y)
        for ref in (z, y):
            with self.assertRaises(FunctionNotRegisteredError):
                ref.id
        self.await_call(("decrement", 0))

    def test_a_refused_submission_raises_where_its_id_is_needed(self):
        def refuse(call, result):
            result.code, result.text = 3, "no such thing"

        self.link.answer = refuse
        x = self.submit("x")
        y = self.submit("y", x)
        for ref in (x, y):
            with self.assertRaisesRegex(RefusedError, "no such thing"):
                ref.id

    def test_one_wrong_id_does_not_keep_the_other_references(self):
        def refuse(call, result):
            if call.HasField("decrement") and 7 in call.decrement.objectid:
                result.code, result.text = 9, "not owned"

        self.link.answer = refuse
        self.link.gate.clear()
        self.submit("blocker")
        for objectid in (5, 7, 6):
            self.outbox.drop(objectid)
        with self.assertLogs("tripod_ray", "WARNING"):
            self.link.gate.set()
            eventually(lambda: all(("decrement", i) in self.link.flat() for i in (5, 6, 7)), "one by one")

    def test_a_process_that_was_given_up_tells_everyone_who_waits(self):
        lost = threading.Event()
        self.outbox.on_lost = lost.set

        def expired(call, result):
            result.code, result.text, result.reason = 9, "given up", "expired"

        self.link.answer = expired
        x = self.submit("x")
        with self.assertRaises(ExpiredError):
            x.id
        self.assertTrue(lost.wait(60))
        with self.assertRaises(ExpiredError):
            self.outbox.ask(calls.Put(None))

    def test_a_closed_line_does_not_let_anybody_wait(self):
        self.outbox.close()
        with self.assertRaises(TripodError):
            self.submit("x").id

    def place_of_drop(self, objectid):
        flat = self.link.flat()
        return next(p for p, call in enumerate(flat) if call[0] == "decrement" and objectid in call[1:])

    def await_call(self, wanted):
        """References may be given up together with others."""

        def sent():
            return any(call[0] == wanted[0] and wanted[1] in call[1:] for call in self.link.flat())

        eventually(sent, str(wanted))


if __name__ == "__main__":
    unittest.main()
