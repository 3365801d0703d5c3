"""The comparison itself: a golden equals itself, races are forgiven, planted differences are found."""

import copy
import json
import pathlib
import unittest

import compare

GOLDENS = [pathlib.Path(__file__).parent / f"golden/{release}.json" for release in ("2.12.0", "2.21.0")]


def _places(golden, ours):
    return [place for place, *_ in compare.compare(golden, ours).wrong]


class Compare(unittest.TestCase):
    def setUp(self):
        self.golden = json.loads(GOLDENS[1].read_text())
        self.ours = copy.deepcopy(self.golden)

    def _step(self, scenario, task, name):
        steps = self.ours["results"][scenario][task]["steps"]
        return next(step for step in steps if step["step"] == name)

    def test_a_golden_equals_itself(self):
        for path in GOLDENS:
            golden = json.loads(path.read_text())
            self.assertEqual(_places(golden, golden), [], path.name)

    def test_a_value_an_error_class_and_a_payload_are_compared(self):
        self._step("kv", "0", "get other")["value"] = "v9"
        self._step("barrier", "0", "barrier alone, 1500 ms")["exc"] = "InternalError"
        self._step("barrier", "1", "barrier late to failed")["payloads"] = []
        wrong = ["kv/0/get other", "barrier/0/barrier alone, 1500 ms", "barrier/1/barrier late to failed"]
        self.assertEqual(sorted(_places(self.golden, self.ours)), sorted(wrong))

    def test_a_text_an_exit_and_a_missing_step_are_compared(self):
        self._step("kv", "0", "set again")["text"] += "!"
        self.ours["results"]["killed"]["1"]["exit"] = 0
        self.ours["results"]["idle"]["0"]["steps"].pop(0)
        wrong = ["kv/0/set again", "killed/1/exit", "idle/0/connect", "idle/0/order"]
        self.assertEqual(sorted(_places(self.golden, self.ours)), sorted(wrong))

    def test_the_first_of_several_at_a_barrier_is_a_race(self):
        step = self._step("barrier", "0", "barrier alone, 1500 ms")
        step["text"] = step["text"].replace("first task at the barrier: /job", "first task at the barrier: x")
        self.assertEqual(_places(self.golden, self.ours), [])

    def test_an_accepted_difference_must_be_the_meant_one(self):
        self.golden = json.loads(GOLDENS[0].read_text())
        self.ours = copy.deepcopy(self.golden)
        step = self._step("kv", "0", "set again")
        step.update(compare.ACCEPTED["2.12.0"]["kv/0/set again"])
        self.assertEqual(compare.compare(self.golden, self.ours).accepted, ["kv/0/set again"])
        self.assertEqual(_places(self.golden, self.ours), [])
        step["text"] += "!"
        self.assertEqual(_places(self.golden, self.ours), ["kv/0/set again"])


if __name__ == "__main__":
    unittest.main()
