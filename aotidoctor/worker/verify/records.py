"""Violations by live nodes, each with the user's line that the node's stack trace names."""

from __future__ import annotations

from typing import Any

from aotidoctor.program.document import where
from aotidoctor.program.found import Found, Place


class Records(Found):
    """What was found so far, told by nodes and targets of the graph itself."""

    def add(self, code: str, kind: str, *, node: Any = None, target: Any = None, **rest: Any) -> None:
        """Keep one violation. ``node`` is a node of the graph or a name, ``target`` what it calls or refers to."""
        super().add(code, kind, node=_place(node), target=None if target is None else name_of(target), **rest)


def _place(node: Any) -> Place | str | None:
    return node if node is None or isinstance(node, Place | str) else as_place(node)


def as_place(node: Any) -> Place:
    """A node as the rules take it."""
    trace = getattr(node, "meta", {}).get("stack_trace")
    line = where(trace.splitlines()) if isinstance(trace, str) else None
    return Place(name=getattr(node, "name", str(node)), where=line)


def name_of(target: Any) -> str:
    """An operator as it is written in Python (``aten.add.Tensor``, ``operator.add``), any other thing by its name."""
    import torch

    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator | torch._ops.OpOverloadPacket):
        return str(target)
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    return f"{module.removeprefix('_')}.{name}" if module and name else type(target).__name__


def first_line(error: BaseException | str) -> str:
    """The first line of a message that says something."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:500]
