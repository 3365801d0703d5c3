"""Handles of objects."""

import threading
from types import GenericAlias

_packing = threading.local()


class ObjectRef:
    """A handle of an object that exists, or will. Each handle owns one reference at the scheduler, and gives
    it up when it is collected.

    `f.remote()` returns before the scheduler has told the object's id; `id` waits for it. A handle can be
    inside arguments, results and values of `put`: whoever gets the value gets a handle of its own.
    """

    # `_id` is None until it is known; `_error` says why it never will be; `_parked` are calls that wait for
    # it.
    __slots__ = ("_id", "_error", "_owner", "_parked", "__weakref__")

    # `ObjectRef[int]`, of a handle of an int, can be written where types are.
    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, owner, objectid=None):
        """`owner` is the outbox of the process, which is told when the handle ends; a handle of an id that is
        given takes over a reference that the process already owns."""
        self._id = objectid
        self._error = None
        self._owner = owner
        self._parked = None

    @property
    def id(self):
        """The object's id. Raises what kept the submission from being accepted."""
        if self._id is None:
            self._owner.await_ids((self,))
        return self._id

    def __eq__(self, other):
        return self is other or (isinstance(other, ObjectRef) and self.id == other.id)

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"ObjectRef({'not known yet' if self._id is None else self._id})"

    def __reduce__(self):
        refs = getattr(_packing, "refs", None)
        if refs is None:
            raise TypeError("an ObjectRef is serialised only inside arguments, results and values of put")
        refs.append(self)
        return _restored, (len(refs) - 1,)

    def __del__(self):
        # May run in any thread and inside any other line of code: dropping only appends to a reentrant queue.
        try:
            if self._id is not None:
                self._owner.drop(self._id)
        except (AttributeError, TypeError):
            pass  # The interpreter is going away, and the cluster gives the references up with the process.


def _restored(place):
    return _packing.refs[place]


class collecting:
    """While it is entered, handles that are pickled by this thread are appended to `refs`, and handles that
    are unpickled are taken from it by their place."""

    def __init__(self, refs):
        self._refs = refs

    def __enter__(self):
        self._outer = getattr(_packing, "refs", None)
        _packing.refs = self._refs

    def __exit__(self, *_):
        _packing.refs = self._outer
