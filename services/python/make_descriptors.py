"""Writes descriptors.bin of both packages: the messages of proto/ as they load them.

The packages ship compiled descriptors, so neither a compiler nor grpcio-tools is needed where they are
installed. Run this after a change of the .proto files, in an environment with grpcio-tools:

    python services/python/make_descriptors.py

tests/test_descriptors.py and tests/mars/test_messages.py compare the results with the .proto files, so a forgotten run
is noticed.
"""

import pathlib
import sys

FILES = {
    "tripod_ray": [
        "ray/types.proto",
        "ray/graph.proto",
        "ray/ray.proto",
        "tripod/v1/ray.proto",
        "tripod/v1/local_store.proto",
    ],
    "tripod_mars": ["mars/v1/mars.proto"],
}


def main() -> int:
    import grpc_tools
    from grpc_tools import protoc

    here = pathlib.Path(__file__).resolve().parent
    protos = here.parent.parent / "proto"
    # The messages of Google that others use.
    common = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    for package, files in FILES.items():
        target = here / "src" / package / "descriptors.bin"
        paths = [f"--proto_path={protos}", f"--proto_path={common}"]
        failed = protoc.main(["protoc", *paths, "--include_imports", f"--descriptor_set_out={target}", *files])
        if failed:
            return failed
    return 0


if __name__ == "__main__":
    sys.exit(main())
