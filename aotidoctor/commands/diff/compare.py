"""Two sources into one comparison: part by part, then ranked by what the playbooks say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.commands.diff.fit import compare_fit
from aotidoctor.commands.diff.hosts import compare_hosts
from aotidoctor.commands.diff.leaves import compare_calls
from aotidoctor.commands.diff.node import Node
from aotidoctor.commands.diff.outcomes import compare_outcomes
from aotidoctor.commands.diff.packages import compare_artifacts, compare_contracts
from aotidoctor.commands.diff.sources import Source, open_source
from aotidoctor.commands.diff.tally import Tally
from aotidoctor.diagnosis.head import PlaybookError
from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.model.diagnosis import Playbook
from aotidoctor.model.difference import LEVELS, Comparison, Difference, Side
from aotidoctor.model.errors import CannotExamineError

# After all causes: what no playbook speaks of.
_LAST = 10_000


def compare_files(a: str, b: str, environ: Mapping[str, str]) -> Comparison:
    """What differs between two reports, bundles, packages or hosts, in any mix that has something in common.

    Raises:
        CannotExamineError: one cannot be read, or they tell of nothing that could be compared.
    """
    return compare_sources(open_source(a, environ), open_source(b, environ))


def compare_sources(a: Source, b: Source) -> Comparison:
    """The comparison of what was read."""
    tally = Tally()
    common = [part for part in a.parts if part in b.parts]
    fits = _compare_fit(tally, a, b)
    if not common and not fits:
        told = " and ".join(f"{side.name} describes {', '.join(side.parts) or 'nothing'}" for side in (a, b))
        raise CannotExamineError(f"observed that {told}, expected a part that both describe")
    if "package" in common:
        _packages(tally, a, b)
    if "host" in common:
        compare_hosts(tally, a.node.at("host"), b.node.at("host"), _needed(a.node) | _needed(b.node))
    if "inputs" in common:
        compare_calls(tally, a.node.at("inputs"), b.node.at("inputs"))
    if "outcome" in common:
        compare_outcomes(tally, a.node, b.node)
    sides = (_side("A", a), _side("B", b))
    return Comparison(
        a=sides[0],
        b=sides[1],
        differences=_ranked(tally.differences, sides, (a.node, b.node)),
        equal={area: count for area, count in tally.equal.items() if count},
        left_out={what: count for what, count in tally.left_out.items() if count},
        unknown=tuple(tally.unknown),
    )


def _compare_fit(tally: Tally, a: Source, b: Source) -> bool:
    """Whether one is a package and the other a host: does it fit there?"""
    for package, host, first in ((a, b, True), (b, a, False)):
        if package.case is not None and host.kind == "host":
            compare_fit(tally, package.case, host.node, package_is_a=first)
            return True
    return False


def _packages(tally: Tally, a: Source, b: Source) -> None:
    same = compare_artifacts(tally, a.node.at("artifact"), b.node.at("artifact"), (a.weights, b.weights))
    contracts = (a.node.at("contract"), b.node.at("contract"))
    if same:
        return
    if contracts[0].missing or contracts[1].missing:
        tally.compare("kind", "contract", *("there" if not one.missing else "none" for one in contracts))
    else:
        compare_contracts(tally, *contracts)


def _needed(node: Node) -> frozenset[str]:
    return frozenset(node.at("contract").at("needs").texts("isa"))


def _side(label: str, source: Source) -> Side:
    node = source.node
    told = "outcome" in source.parts
    return Side(
        label=label,
        name=source.name,
        kind=source.kind,
        parts=source.parts,
        verdict=node.text("verdict") if told else None,
        causes=tuple(item.text("cause") or "?" for item in node.nodes("diagnoses")) if told else (),
        version=node.at("tool").text("version") or "",
        made=node.text("started") or "",
    )


def _ranked(
    differences: list[Difference], sides: tuple[Side, Side], nodes: tuple[Node, Node]
) -> tuple[Difference, ...]:
    """What was diagnosed on one side only first, then by level, then in the order of the playbooks."""
    books = {slug: _playbook(slug) for slug in {item.playbook for item in differences if item.playbook}}
    told = [_told(item, books.get(item.playbook or ""), sides, nodes) for item in differences]

    def place(item: Difference) -> tuple[int, int, int]:
        book = books.get(item.playbook or "")
        causes = next((side.causes for side in sides if side.label == item.diagnosed), ())
        order = causes.index(item.playbook) if item.playbook in causes else len(causes)
        return (
            order if item.diagnosed else _LAST,
            LEVELS.index(item.level),
            book.weight if book is not None else _LAST,
        )

    return tuple(replace(item, rank=number) for number, item in enumerate(sorted(told, key=place), 1))


def _playbook(slug: str) -> Playbook | None:
    try:
        return find_playbook(slug)
    except PlaybookError:
        return None


def _told(item: Difference, book: Playbook | None, sides: tuple[Side, Side], nodes: tuple[Node, Node]) -> Difference:
    """With the codes of the playbook's evidence, and where its cause was diagnosed on one side only."""
    if book is None:
        return item
    codes = item.codes or tuple(
        dict.fromkeys(one.code for one in (*book.any_of, *book.all_of) if not one.code.endswith("*"))
    )
    sick = [side for side in sides if book.cause in side.causes]
    if len(sick) != 1:
        return replace(item, codes=codes)
    node = nodes[sides.index(sick[0])]
    evidence = next((one.texts("evidence") for one in node.nodes("diagnoses") if one.text("cause") == book.cause), ())
    return replace(item, codes=codes, diagnosed=sick[0].label, evidence=evidence)
