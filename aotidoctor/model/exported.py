"""What is wrong with an exported program, before it is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.evidence import FactValue, Severity
from aotidoctor.model.record import record


@record
class Where:
    """A line of the user's source, as the node's stack trace names it."""

    file: str
    line: int
    text: str = ""


@record
class Violation:
    """One rule that the program breaks, or a remark on what AOTInductor will make of it.

    ``code`` is the rule (``VERIFY-G03``), ``kind`` its variant. ``node`` is the name of the graph's node, ``target``
    what it calls or refers to (an operator, a parameter's name); either may be missing. ``graph`` is the path of the
    submodule whose graph holds the node, empty for the top. ``where`` is the innermost line of the user's source.
    """

    code: str
    kind: str
    observed: str
    expected: str
    node: str | None = None
    target: str | None = None
    graph: str = ""
    where: Where | None = None
    facts: Mapping[str, FactValue] = field(default_factory=dict)


@record
class ExportRule:
    """One rule of ``aotidoctor.program.rules``; ``page`` is its manual page.

    ``severities`` maps each kind that the rule can report to how bad it is. ``names_target`` says that a finding is
    about the target (an operator, an input) and not the node. ``title`` is the head of the page, as a part of a
    sentence, where it is not given.
    """

    code: str
    name: str
    severities: Mapping[str, Severity]
    page: str
    title: str = ""
    names_target: bool = False

    @property
    def of_torch(self) -> bool:
        """A rule of PyTorch's own verifier, about the graph or the signature."""
        return self.code.startswith(("VERIFY-G", "VERIFY-S"))

    def __post_init__(self) -> None:
        """Take the title from the page."""
        head = self.page.partition("\n")[0].rstrip(".")
        object.__setattr__(self, "title", self.title or head[:1].lower() + head[1:])


def errors(*kinds: str) -> dict[str, Severity]:
    """The severities of a rule all of whose kinds are errors."""
    return dict.fromkeys(kinds, Severity.ERROR)
