"""What programs write, for a checker of types: it is not run. Lines that are wrong say so, and the checker complains if
they are not."""

import tripod
from typing_extensions import assert_type

assert_type(tripod.binary(), str)

with tripod.Cluster(nodes=3, flags=["--restart"]) as cluster:
    assert_type(cluster, tripod.Cluster)
    assert_type(cluster.endpoints, str)
    assert_type(cluster.kill_leader(), int)
    assert_type(cluster.pids, "dict[int, int]")
    job = tripod.create_job("train", tasks=3, endpoints=cluster.endpoints)
    assert_type(job, tripod.Job)
    assert_type(tripod.put("key", b"value", job=job), int)
    assert_type(tripod.put("key", "value", expected_version=1), int)
    assert_type(tripod.get("key", job="train", endpoints=["127.0.0.1:7700"]), bytes)
    for entry in tripod.list("prefix/", job=job):
        assert_type(entry.key, str)
        assert_type(entry.version, int)
    ended = tripod.run(["python", "train.py"], tasks=3, job=job)
    assert_type(ended[0].status, int)
    tripod.delete_job(job)

try:
    tripod.get("key")
except tripod.UnknownError as error:
    assert_type(error.code, "str | None")

tripod.put("key", 5)  # type: ignore[arg-type]
tripod.run("python train.py", tasks="3")  # type: ignore[arg-type]
tripod.Cluster().no_such  # type: ignore[attr-defined]
tripod.nothing  # type: ignore[attr-defined]
