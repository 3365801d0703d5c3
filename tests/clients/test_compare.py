"""The comparison itself: a golden equals itself, races are forgiven, planted differences are found."""

import copy
import glob
import json
import pathlib
import unittest

import compare

GOLDENS = sorted(glob.glob(str(pathlib.Path(__file__).parent / "golden" / "api_*.json")))


def _load(path):
    with open(path) as file:
        return json.load(file)


def _places(golden, ours):
    return [place for place, *_ in compare.compare(golden, ours).wrong]


class Compare(unittest.TestCase):
    def setUp(self):
        self.golden = _load(GOLDENS[0])
        self.ours = copy.deepcopy(self.golden)

    def _process(self, scenario, process="0"):
        return self.ours["results"][scenario][process]

    def _step(self, scenario, name, process="0"):
        steps = self._process(scenario, process)["steps"]
        return next(step for step in steps if step["step"] == name)

    def test_every_golden_equals_itself(self):
        self.assertEqual(len(GOLDENS), 3)
        for path in GOLDENS:
            self.assertEqual(_places(_load(path), _load(path)), [], path)

    def test_times_do_not_count(self):
        self._step("kv", "set")["secs"] = 77
        self.assertEqual(_places(self.golden, self.ours), [])

    def test_a_wrong_code_is_found(self):
        step = self._step("kv", "try_get_missing")
        step["text"] = step["text"].replace("NOT_FOUND", "INTERNAL")
        self.assertEqual(_places(self.golden, self.ours), ["kv/0/try_get_missing"])

    def test_a_missing_payload_is_found(self):
        step = self._step("barriers", "unknown_task")
        step["text"] = step["text"].split(" [type")[0] + "x"
        self.assertEqual(_places(self.golden, self.ours), ["barriers/0/unknown_task"])

    def test_a_wrong_value_is_found(self):
        self._step("kv", "inc_max")["value"] -= 1
        self.assertEqual(_places(self.golden, self.ours), ["kv/0/inc_max"])

    def test_a_wrong_exit_status_is_found(self):
        self._process("killed_peer_idle")["exit"] = 0
        self.assertEqual(_places(self.golden, self.ours), ["killed_peer_idle/0/exit"])

    def test_a_wrong_fatal_text_is_found(self):
        process = self._process("killed_peer_idle")
        process["fatal"] = process["fatal"].replace("heartbeats):\n2", "heartbeats):\n1")
        self.assertEqual(_places(self.golden, self.ours), ["killed_peer_idle/0/fatal"])

    def test_a_missing_step_scenario_and_process_are_found(self):
        del self.ours["results"]["kv_blocking"]
        del self.ours["results"]["barriers"]["2"]
        self._process("kv")["steps"].pop()
        found = set(_places(self.golden, self.ours))
        self.assertLessEqual({"kv_blocking", "barriers/2", "kv/0/order"}, found)

    def test_the_meant_increment_is_accepted_and_no_other(self):
        step = self._step("kv", "inc_after_int32")
        step.clear()
        step.update(step="inc_after_int32", ok=True, value=2999999998, secs=0.1)
        report = compare.compare(self.golden, self.ours)
        self.assertEqual((len(report.wrong), len(report.accepted)), (0, 1))
        step["value"] = 2999999999
        self.assertEqual(_places(self.golden, self.ours), ["kv/0/inc_after_int32"])

    def test_an_answer_that_a_dying_process_lost_is_found(self):
        dying = self._process("live_not_recoverable", "1")
        self.assertEqual(dying["steps"].pop()["step"], "live_while_2_is_dead")
        lost = ["live_not_recoverable/1/order", "live_not_recoverable/1/live_while_2_is_dead"]
        self.assertEqual(_places(self.golden, self.ours), lost)

    def test_both_routes_of_a_failed_shutdown_are_equal(self):
        error = "INTERNAL: Shutdown barrier has failed.\nBarrier result: 'x'\n\nRPC: /a.B/"
        key = " [type.googleapis.com/tensorflow.CoordinationServiceError='']"
        polled = f"absl::Status: {error}PollForError{key}"
        called = (
            "absl::Status: INTERNAL: Failed to disconnect from coordination service with status: "
            f"{error}ShutdownTask{key}Proceeding with agent shutdown anyway.{key}"
        )
        self.assertEqual(compare.normalise_fatal(polled), compare.normalise_fatal(called))
        other = polled.replace("'x'", "'y'")
        self.assertNotEqual(compare.normalise_fatal(polled), compare.normalise_fatal(other))

    def test_orders_without_meaning_are_forgiven(self):
        names = "timed out task names:\n{}\n{}\n\n"
        self.assertEqual(
            compare.normalise(names.format(1, 2)), compare.normalise(names.format(2, 1))
        )
        one, two = " [type.googleapis.com/a='']", " [type.googleapis.com/b='']"
        self.assertEqual(compare.normalise(one + two), compare.normalise(two + one))
        self.assertNotEqual(compare.normalise(one), compare.normalise(two))


if __name__ == "__main__":
    unittest.main()
