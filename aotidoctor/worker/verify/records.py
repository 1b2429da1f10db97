"""Violations as they leave the child, each with the user's line that the node's stack trace names."""

from __future__ import annotations

import re
from typing import Any

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in .*)?$')
# A program with ten thousand bad nodes has one fault; the count says the rest.
MAX_EACH = 50


class Records:
    """What was found so far. ``found`` counts every record by code, also those beyond ``MAX_EACH``."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.found: dict[str, int] = {}

    def add(
        self,
        code: str,
        kind: str,
        *,
        observed: str,
        expected: str,
        node: Any = None,
        target: Any = None,
        graph: str = "",
        **facts: Any,
    ) -> None:
        """Keep one record. ``node`` is a node of the graph or a name, ``target`` what it calls or refers to."""
        self.found[code] = self.found.get(code, 0) + 1
        if self.found[code] > MAX_EACH:
            return
        self.items.append(
            {
                "code": f"VERIFY-{code}",
                "kind": kind,
                "node": None if node is None else getattr(node, "name", str(node)),
                "target": None if target is None else name_of(target),
                "graph": graph,
                "where": where(node),
                "observed": observed[:2000],
                "expected": expected[:2000],
                "facts": facts,
            }
        )

    def cut(self) -> dict[str, int]:
        """Code -> how many records of it were left out."""
        return {code: count - MAX_EACH for code, count in self.found.items() if count > MAX_EACH}

    def broken(self) -> bool:
        """Whether a rule of PyTorch's verifier is broken."""
        return any(code.startswith(("G", "S")) for code in self.found)


def where(node: Any) -> dict[str, Any] | None:
    """The innermost line of the user's source in the node's stack trace."""
    trace = getattr(node, "meta", {}).get("stack_trace")
    if not isinstance(trace, str):
        return None
    lines = trace.splitlines()
    frames = [(at, found) for at, text in enumerate(lines) if (found := _FRAME.match(text)) is not None]
    frames = [(at, found) for at, found in frames if "/site-packages/torch/" not in found["file"]]
    if not frames:
        return None
    at, frame = frames[-1]
    text = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return {"file": frame["file"], "line": int(frame["line"]), "text": text[:200]}


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
