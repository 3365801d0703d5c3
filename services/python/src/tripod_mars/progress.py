"""How far a graph is, on a terminal: by tqdm if that is installed."""

import sys


def bar(wanted, name):
    """Something to tell progress to, or None. `wanted` None: where there is a terminal."""
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    if not wanted:
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    shown = "{l_bar}{bar}| {n:.0f}/{total:.0f} [{elapsed}<{remaining}]"
    return tqdm(total=100, desc=name, unit="%", bar_format=shown, leave=False)


def update(shown, info):
    """Shows a `GraphInfo`."""
    if shown is not None:
        shown.n = round(100 * info.progress, 1)
        shown.refresh()
