"""What tensors and frames have in common: they are executed, and then fetched."""

from .graph import session_of
from .session import get_default_session
from .visualize import draw


class Tileable:
    """Something that is computed when `execute` is called."""

    def __init__(self, node):
        self.node = node

    @property
    def name(self):
        """What messages call it."""
        return self.node.name

    @property
    def is_executed(self):
        """Whether its chunks are in a session."""
        return self.node.placed is not None

    def execute(self, session=None, **options):
        """Computes it and answers with itself; the options are those of `Session.execute`. Without a session it is the one in
        which some of it was executed already, or the default one."""
        execute(self, session=session, **options)
        return self

    def visualize(self):
        """How it is made of others, as a picture: see `visualize.Picture`."""
        return draw([self.node])

    def _session(self, session):
        """Where to read it from."""
        return session or session_of([self.node]) or get_default_session()


def execute(*tileables, session=None, **options):
    """Computes several tensors and frames as one graph, and answers with them: with one, that."""
    session = session or session_of([one.node for one in tileables]) or get_default_session()
    session.execute(*tileables, **options)
    return tileables[0] if len(tileables) == 1 else tileables


def fetch(*tileables, session=None):
    """The data of several: with one, that."""
    found = [one.fetch(session=session) for one in tileables]
    return found[0] if len(found) == 1 else tuple(found)
