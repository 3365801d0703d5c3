"""jaxlib's own coordination service, alone in a process, until standard input ends.

Arguments: the address to bind, the number of tasks.
"""

import sys

import jaxlib.version

try:
    from jaxlib import _jax as binding
except ImportError:  # Before jaxlib 0.6.1.
    from jaxlib import xla_extension as binding

service = binding.get_distributed_runtime_service(sys.argv[1], int(sys.argv[2]))
print("serving", jaxlib.version.__version__, flush=True)
sys.stdin.read()
service.shutdown()
