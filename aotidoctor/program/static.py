"""What the JSON of an exported program tells of its faults, without torch: the same codes as the child gives.

It sees names where the child sees operators: whether one changes its arguments is known of PyTorch's own alone, whether
one is registered, has a fake kernel or a C shim is not known at all. ``StaticReading`` names the rules that it cannot
answer.
"""

from __future__ import annotations

import re

from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.exported import Violation
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.model.record import record
from aotidoctor.program.document import Graph, graphs
from aotidoctor.program.found import Found
from aotidoctor.program.signature import check_signature
from aotidoctor.program.static_operators import check_graph, check_operators
from aotidoctor.program.static_signature import signature
from aotidoctor.program.static_state import check_state
from aotidoctor.program.static_values import NAMELESS, places, ranges, values
from aotidoctor.program.symbols import check_symbols
from aotidoctor.program.values import check_devices, check_dtypes

NAME = "verify_static"
NEWEST_SCHEMA = (8, 20)
"""The newest format that was looked at: torch 2.13."""

_PARTLY = {
    "G04": "for operators other than PyTorch's own, the name does not show whether they change their arguments",
    "A08": "for operators other than PyTorch's own, the name does not show whether they change their arguments",
    "A03": "custom operators are listed; whether they are registered and have fake kernels takes torch",
}
_NEVER = {
    "G02": "the archive does not contain the vals themselves",
    "G05": "an archive cannot contain such nodes",
    "G06": "an archive cannot contain such nodes",
    "G07": "an archive cannot contain such nodes",
    "G08": "an archive cannot contain such nodes",
    "G09": "the order of nodes is checked by torch as it rebuilds the graph",
    "G10": "dialects are registered with the installed torch",
    "G11": "dialects are registered with the installed torch",
    "G12": "only the installed verifier can show what else it refuses",
    "S13": "an archive cannot contain such a graph",
    "A02": "the list of C shims is the installed torch's",
    "A05": "the sample inputs are a pickle",
    "L01": "only torch can show whether it would rebuild the program",
    "L02": "operators are registered with the installed torch",
    "L04": "no torch to compare with",
}


@record
class StaticReading:
    """``not_checked`` names the rules that it answers in part or not at all; others it answers as the child does."""

    violations: tuple[Violation, ...]
    not_checked: tuple[NotChecked, ...]


def judge_static(archive: ProgramArchive) -> StaticReading:
    """Everything that the archive tells of one program."""
    found = Found()
    everything = graphs(archive.document)
    top: Graph = everything[0]
    for graph in everything:
        check_graph(graph, archive.facts.dialects, found)
    said = signature(archive, top)
    check_signature(said, found)
    given = [value for graph in everything for value in values(graph)]
    check_devices(given, found)
    check_dtypes(given, {leaf.name for leaf in archive.facts.leaves}, NAMELESS, found)
    check_symbols(ranges(archive, everything), places(archive, top), given, found)
    check_operators(everything, found)
    check_state(archive, said, top, found)
    notes = {**_NEVER, **_PARTLY, **_unlisted(archive)}
    return StaticReading(
        violations=tuple(found.items),
        not_checked=(*(_note(code, why) for code, why in notes.items()), *_schema(archive)),
    )


def _note(code: str, why: str) -> NotChecked:
    return NotChecked(code=f"VERIFY-{code}", name=NAME, reason=why)


def _unlisted(archive: ProgramArchive) -> dict[str, str]:
    """Rules that take a list of weights or constants, where there is one that cannot be read."""
    found = {}
    for codes, listed, pickle, what in (
        (("S03", "S04"), archive.weights, archive.weights_pickle, "weights"),
        (("S05", "S06"), archive.constants, archive.constants_pickle, "constants"),
    ):
        if listed is None and pickle is not None:
            found.update(dict.fromkeys(codes, f"the {what} of the archive cannot be read"))
    if found:
        found["A09"] = "the sizes of weights and constants are unknown"
    return found


def _schema(archive: ProgramArchive) -> list[NotChecked]:
    text = archive.facts.schema
    numbers = tuple(int(part) for part in re.findall(r"\d{1,6}", text or ""))[:2]
    if len(numbers) < 2:
        return [_note("L04", "the archive does not record the version of its format")]
    if numbers > NEWEST_SCHEMA:
        newest = ".".join(map(str, NEWEST_SCHEMA))
        reason = f"format {text} is newer than {newest}, the newest known format: new fields were not read"
        return [_note("L04", reason)]
    return []
