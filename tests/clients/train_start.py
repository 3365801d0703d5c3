"""How a program of any release of jax is pointed at a coordination service that is not its own.

Releases from 0.4.21 on are told by an environment variable where process 0 shall put its own service.
Before, process 0 binds the very address that all processes connect to. From 0.7 on the heartbeat timeout
is an argument of `jax.distributed.initialize`. Before, only jaxlib's function that makes the client has
it. Where jax offers no way, this module changes what jax passes to jaxlib, and neither of the two.
"""

import functools
import inspect
import os

# Where process 0's own service idles, out of everybody's way.
_ELSEWHERE = "127.0.0.1:0"
# Heartbeats that a client of an old release may miss; the timeout is so many times their interval.
_MISSED_MAX = 10
# The first release that sums over processes without an accelerator.
_FIRST_WITH_SUMS = (0, 4, 30)
# The first release that calls a barrier a second time by the same name.
_FIRST_WITH_REPEATED_BARRIERS = (0, 4, 36)


def start(address, tasks, task, heartbeat_timeout, legacy):
    """Initialise jax; the module, and its client of the coordination service.

    `heartbeat_timeout` is in seconds. `legacy` chooses the protocol that releases up to 0.4.13 speak
    when their coordination service is switched off.
    """
    os.environ["JAX_COORDINATOR_BIND_ADDRESS"] = _ELSEWHERE
    os.environ["JAX_PLATFORMS"] = "cpu"
    if legacy:
        os.environ["JAX_COORDINATION_SERVICE"] = "false"
    import jax
    from jax._src import distributed

    if has_sums(jax):
        # Not by the environment, which 0.4.30 does not ask for this.
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    understood = inspect.signature(jax.distributed.initialize).parameters
    options = {}
    if "heartbeat_timeout_seconds" in understood:
        options["heartbeat_timeout_seconds"] = heartbeat_timeout
    else:
        _set_heartbeats(distributed.xla_extension, heartbeat_timeout)
    if "coordinator_bind_address" not in understood:
        _move_own_service(distributed.xla_extension)
    jax.distributed.initialize(address, tasks, task, **options)
    return jax, distributed.global_state.client


def has_sums(jax):
    """Whether this release can sum over processes here."""
    return jax.__version_info__ >= _FIRST_WITH_SUMS


def repeats_barriers(jax):
    """Whether this release lets a program repeat its call of a barrier."""
    return jax.__version_info__ >= _FIRST_WITH_REPEATED_BARRIERS


def _set_heartbeats(binding, timeout):
    interval, rest = divmod(timeout, _MISSED_MAX)
    if rest:
        raise ValueError(f"a heartbeat timeout of {timeout} s is no multiple of {_MISSED_MAX} s")
    binding.get_distributed_runtime_client = functools.partial(
        binding.get_distributed_runtime_client,
        heartbeat_interval=interval,
        max_missing_heartbeats=_MISSED_MAX,
    )


def _move_own_service(binding):
    make = binding.get_distributed_runtime_service
    binding.get_distributed_runtime_service = lambda address, *options: make(_ELSEWHERE, *options)
