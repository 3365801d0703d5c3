"""One client of one job: sends raw calls and writes down exactly what came back."""
import time

import grpc

import wire

ANSWER_SECONDS = 15


class Probe:
    def __init__(self, address, dialect):
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.dialect = dialect
        self.service = None
        self.task_version = 0
        self.steps = []

    def close(self):
        self.channel.close()

    def has(self, rpc):
        """Whether upstream serves a call in this dialect."""
        return rpc in wire.REQUESTS[self.dialect]

    def _start(self, rpc, fields, seconds=ANSWER_SECONDS):
        if not self.has(rpc):
            return None
        fields = dict(fields)
        if "service" not in fields:
            fields["service"] = self.service
        path = wire.PATHS.get(self.dialect, {}).get(rpc, rpc)
        call = self.channel.unary_unary(f"/{wire.SERVICES[self.dialect]}/{path}")
        call = call.future(wire.encode(self.dialect, rpc, fields), timeout=seconds)
        call.rpc = rpc
        return call

    def ask(self, step, rpc, **fields):
        """Sends a call and records its outcome."""
        self.end(step, self._start(rpc, fields))

    def hold(self, rpc, **fields):
        """Sends a call that will be held. Calls of one connection are served in the order in which they
        arrive, but by several threads: a round trip of another call and a moment make sure."""
        call = self._start(rpc, fields)
        other = "TryGetKeyValue" if self.has("TryGetKeyValue") else "KeyValueGet"
        self._start(other, {"key": "none"}).exception()
        time.sleep(0.1)
        return call

    def end(self, step, call):
        """Waits for a call and records its outcome."""
        if call is None:
            return
        error = call.exception()
        record = {"step": step, "rpc": call.rpc}
        if error is None:
            record |= {"code": "OK", "reply": self._reply(call.rpc, call.result())}
        else:
            record |= {"code": error.code().name, "text": error.details(), "payloads": self._payloads(error)}
        self.steps.append(record)

    def _payloads(self, error):
        for key, value in error.trailing_metadata():
            if key == "grpc-status-details-bin":
                return {key: value.hex() for key, value in sorted(wire.payloads(value).items())}
        return {}

    def _reply(self, rpc, data):
        if rpc in ("RegisterTask", "Connect") or rpc == "Heartbeat" and data:
            self.service = self.service or wire.first(data, 1)
        if rpc == "WatchTasks":
            self.task_version = wire.first(data, 2)
            infos = [value for number, value in wire.decode(data) if number == 1]
            return sorted([self._info(info) for info in infos], key=lambda info: info["1"] or 0)
        if rpc == "GetAliveTasks":
            return self._alive(data)
        return data.hex()

    def _info(self, data):
        """A task's fields by number; its error text (4) as text, so that it can be compared like others."""
        fields = dict(wire.decode(data))
        info = {str(number): value.hex() if isinstance(value, bytes) else value for number, value in fields.items()}
        info["4"] = fields.get(4, b"").decode()
        task = fields.get(1, 0)
        info["1"] = wire.first(task, 2) if isinstance(task, bytes) else task
        return info

    def _alive(self, data):
        """Pairs of a task's hex and its incarnation: upstream gives them in any order."""
        fields = wire.decode(data)
        incarnations = [value for number, value in fields if number == 2]
        packed = b"".join(value for value in incarnations if isinstance(value, bytes))
        tasks = [value for number, value in fields if number == 1]
        tasks = list(tasks[0]) if self.dialect == "n" and tasks else [task.hex() for task in tasks]
        lives = [int.from_bytes(packed[at:at + 8], "little") for at in range(0, len(packed), 8)]
        return sorted([str(task), life] for task, life in zip(tasks, lives, strict=True))

    def version(self):
        """The newest version of the task states."""
        now = self._start("WatchTasks", {"version": -1})
        return wire.first(now.result(), 2)

    def learn_service(self):
        """Takes the service incarnation from a refusal, as no reply tells it before registration."""
        if self.dialect == "n":
            error = self._start("TryGetKeyValue", {"key": "k", "service": None}).exception()
            payload = wire.payloads(dict(error.trailing_metadata())["grpc-status-details-bin"])
            self.service = wire.first(payload[wire.MISMATCH_KEY], 1)
        if self.dialect == "l":
            error = self._start("Heartbeat", {"service": 1}).exception()
            self.service = int(error.details().rsplit(" ", 1)[1])

    def beat(self, seconds, **beat):
        """A heartbeat of which no outcome is recorded. A client waits for the answer until it sends the next one."""
        self._start("Heartbeat", beat, seconds).exception()

    def beat_until_done(self, held, **beat):
        """Keeps one task alive until a held call ends."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while not held.done() and time.monotonic() < deadline:
            self.beat(ANSWER_SECONDS, **beat)
            time.sleep(0.2)

    def masked(self):
        """The records with the service incarnation, which is random, replaced."""
        if not self.service:
            return self.steps
        number = str(self.service)
        replacements = [
            (number, "<service>"),
            (number.encode().hex(), "<service>"),
            (self.service.to_bytes(8, "little").hex(), "<service>"),
            (wire.varint(self.service).hex(), "<service>"),
        ]
        return [_replaced(step, replacements) for step in self.steps]


def _replaced(value, replacements):
    if isinstance(value, dict):
        return {key: _replaced(inner, replacements) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, replacements) for inner in value]
    if isinstance(value, str):
        for old, new in replacements:
            value = value.replace(old, new)
    return value
