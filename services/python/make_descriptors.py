"""Writes src/tripod_ray/descriptors.bin: the messages of proto/ as the package loads them.

The package ships compiled descriptors, so neither a compiler nor grpcio-tools is needed where it is
installed. Run this after a change of the .proto files, in an environment with grpcio-tools:

    python services/python/make_descriptors.py

tests/test_descriptors.py compares the result with the .proto files, so a forgotten run is noticed.
"""

import pathlib
import sys

FILES = [
    "ray/types.proto",
    "ray/graph.proto",
    "ray/ray.proto",
    "tripod/v1/ray.proto",
    "tripod/v1/local_store.proto",
]


def main() -> int:
    from grpc_tools import protoc

    here = pathlib.Path(__file__).resolve().parent
    protos = here.parent.parent / "proto"
    target = here / "src" / "tripod_ray" / "descriptors.bin"
    return protoc.main(
        ["protoc", f"--proto_path={protos}", "--include_imports", f"--descriptor_set_out={target}", *FILES]
    )


if __name__ == "__main__":
    sys.exit(main())
