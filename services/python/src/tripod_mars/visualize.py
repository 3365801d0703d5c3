"""Graphs as pictures."""

import pathlib
import shutil
import subprocess

from .graph import FrameContent

# Graphviz is slow with large graphs.
_DRAW_S = 60.0


class Picture:
    """A graph as a text of Graphviz, `dot`; an SVG where Graphviz is installed."""

    def __init__(self, dot):
        self.dot = dot

    def __str__(self):
        return self.dot

    @property
    def svg(self):
        """The picture as a text, or None: Graphviz's `dot` is not in PATH."""
        drawn = self._draw("svg")
        return None if drawn is None else drawn.decode()

    def save(self, path):
        """Writes a file of the kind that its name says: `.dot`, or whatever Graphviz makes (`.svg`, `.png`, `.pdf`). Raises
        `ValueError` if Graphviz is needed and not there."""
        path = pathlib.Path(path)
        kind = path.suffix.lstrip(".")
        if kind in ("dot", "gv"):
            path.write_text(self.dot)
            return
        drawn = self._draw(kind)
        if drawn is None:
            raise ValueError(f"{path} needs Graphviz's `dot`, which is not in PATH; next: save a `.dot` file")
        path.write_bytes(drawn)

    def _draw(self, kind):
        program = shutil.which("dot")
        if program is None:
            return None
        done = subprocess.run(
            [program, f"-T{kind}"], input=self.dot.encode(), capture_output=True, check=True, timeout=_DRAW_S
        )
        return done.stdout

    def _repr_svg_(self):
        """For notebooks."""
        return self.svg


def draw(targets):
    """What some nodes are made of, inputs above."""
    lines = ["digraph tileables {", "  rankdir = TB;", '  node [fontname = "sans-serif", fontsize = 10];']
    numbers, stack = {}, list(targets)
    order = []
    while stack:
        node = stack.pop()
        if node.key not in numbers:
            numbers[node.key] = len(numbers)
            order.append(node)
            stack.extend(node.inputs)
    wanted = {node.key for node in targets}
    for node in order:
        shape = "folder" if isinstance(node.content, FrameContent) else "box"
        style = ', style = "filled", fillcolor = "lightgrey"' if node.placed is not None else ""
        style += ", penwidth = 2" if node.key in wanted else ""
        label = _quoted("\n".join(filter(None, (_operator(node), str(node.content), node.name))))
        lines.append(f"  n{numbers[node.key]} [label = {label}, shape = {shape}{style}];")
    for node in order:
        lines.extend(f"  n{numbers[one.key]} -> n{numbers[node.key]};" for one in node.inputs)
    return Picture("\n".join([*lines, "}", ""]))


def _operator(node):
    function = node.attributes.get("function")
    return f"{node.op} {function}" if function else node.op


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
