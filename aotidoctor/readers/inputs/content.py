"""What every format reader returns."""

from __future__ import annotations

from aotidoctor.model.inputs import LeafValue
from aotidoctor.model.record import record
from aotidoctor.model.tree import Tree


@record
class Content:
    """The saved object as it is in the file, before it is read as a call.

    ``format`` as in ``InputSet``; ``flat`` says that the format has names and no nesting. ``foreign`` are globals that
    were described by name only, which happens under ``--trust-pickle``.
    """

    tree: Tree[LeafValue]
    format: str
    flat: bool = False
    foreign: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
