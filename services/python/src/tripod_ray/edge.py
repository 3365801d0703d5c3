"""Where programs meet this package: what goes wrong is one line of theirs, one of ours, and the text."""

import functools
import logging
import os

from .errors import TripodError

# Set to anything: errors have every line of this package, and what they came from.
VARIABLE = "TRIPOD_TRACEBACK"

_log = logging.getLogger("tripod_ray")


def interface(call):
    """The same call, whose errors of this package do not show where in it they were noticed, and after what: their texts say
    what to do. All of it is logged at debug, and shown where the environment's TRIPOD_TRACEBACK is set."""

    @functools.wraps(call)
    def shown(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except TripodError as error:
            if os.environ.get(VARIABLE):
                raise
            _log.debug("%s raises", call.__qualname__, exc_info=True)
            raise error.with_traceback(None) from None

    # The one line of ours is named after the call.
    shown.__code__ = shown.__code__.replace(co_name=call.__name__)
    return shown
