"""The C++ binding inside jaxlib: clients and services of the distributed runtime.

The names and options of the binding changed between releases; this module hides that, and nothing
else in this directory asks which release it runs on.
"""

import importlib


def _module():
    """The extension module that holds the distributed runtime."""
    try:
        return importlib.import_module("jaxlib._jax")
    except ImportError:  # releases before 0.6.1
        return importlib.import_module("jaxlib.xla_extension")


def _given(options):
    return {name: value for name, value in options.items() if value is not None}


def make_client(address, task, **options):
    """A real client that is not connected yet.

    Options, in seconds: init_timeout, shutdown_timeout, heartbeat_timeout; and use_compression,
    missed_heartbeat_callback.
    """
    return _module().get_distributed_runtime_client(address, task, **_given(options))


def make_service(bind, tasks, **options):
    """jaxlib's own service for `tasks` tasks, serving on `bind` until it is shut down.

    Options, in seconds: heartbeat_timeout, shutdown_timeout, cluster_register_timeout; and
    recoverable.
    """
    return _module().get_distributed_runtime_service(bind, tasks, **_given(options))
