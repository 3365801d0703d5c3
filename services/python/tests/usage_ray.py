"""What programs write, for a checker of types: it is not run. Lines that are wrong say so, and the checker complains if
they are not."""

import tripod_ray as ray
from tripod_ray import raw
from typing_extensions import assert_type

ray.init("node1:7700,node2:7700", resources={"gpu": 0.5}, memory="4GiB")


@ray.remote
def square(x: int) -> int:
    return x * x


@ray.remote(max_retries=-1, num_cpus=2)
def text(x: int) -> str:
    return str(x)


@ray.remote(num_returns=2)
def two() -> "tuple[int, str]":
    return 1, "2"


@ray.remote(num_returns=0)
def none() -> None:
    pass


@ray.remote([int, str], [float])
def declared(a: int, b: str) -> float:
    return 0.5


ref = square.remote(3)
assert_type(ref, ray.ObjectRef[int])
assert_type(ray.get(ref), int)
assert_type(ray.get([ref, square.remote(ref)], timeout=1.5), "list[int]")
assert_type(text.options(priority=5).remote(1), ray.ObjectRef[str])
assert_type(two.remote()[0].id, int)
assert_type(none.remote(), None)
assert_type(ray.put("value"), ray.ObjectRef[str])
ready, rest = ray.wait([ref], num_returns=1)
assert_type(ready, "list[ray.ObjectRef[int]]")
assert_type(ray.cancel(ref, grace=1), bool)
ray.get(declared.remote(1, "2"))

ray.reusables.table = ray.Reusable(lambda: [1, 2])
print(ray.reusables.table)

try:
    ray.get(ref)
except ray.TaskError as error:
    assert_type(error.traceback_text, str)
except ray.ObjectLostError as error:
    assert_type(error.history, "list[str]")


def function(argument: bytes, inputs: "list[raw.RawInput]") -> raw.RawResult:
    def write(memory: memoryview) -> None:
        memory[:] = bytes(inputs[0].data)

    return raw.RawResult(size=len(argument), write=write, metadata_offset=0, shape=(1,), element_type=0, bytes=1)


raw.register("name", function)

ray.get(123)  # type: ignore[call-overload]
ray.wait(ref)  # type: ignore[arg-type]
ray.cancel("ref")  # type: ignore[arg-type]
square(3)  # type: ignore[operator]
square.options(colour=5)  # type: ignore[call-overload]
ray.outbox  # type: ignore[attr-defined]
