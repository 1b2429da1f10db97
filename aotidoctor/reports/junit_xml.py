"""JUnit XML in the form that Jenkins and Surefire agree on: cases, and text of others that XML can hold."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.record import record
from aotidoctor.reports.text import one_line, plain, tail

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ROOM = 16_000


@record
class Case:
    """One testcase. ``outcome`` is ``failure``, ``error``, ``skipped`` or empty for a pass."""

    name: str
    family: str
    outcome: str = ""
    kind: str = ""
    message: str = ""
    text: str = ""
    printed: str = ""
    seconds: float = 0.0


def document(
    name: str, cases: Sequence[Case], *, seconds: float, at: str, properties: Mapping[str, str], printed: str = ""
) -> str:
    """One suite of ``cases``, made ``at`` a time, as a document; ``printed`` is what the suite as a whole says."""
    counts = {kind: sum(1 for case in cases if case.outcome == kind) for kind in ("failure", "error", "skipped")}
    head = f'name={attribute(name)} tests="{len(cases)}" failures="{counts["failure"]}" errors="{counts["error"]}"'
    took = f'time="{seconds:.3f}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {head} {took}>",
        f'  <testsuite {head} skipped="{counts["skipped"]}" {took} timestamp={attribute(at)}>',
        "    <properties>",
        *(f"      <property name={attribute(key)} value={attribute(text)}/>" for key, text in properties.items()),
        "    </properties>",
    ]
    for case in cases:
        lines += _case_lines(case)
    lines += [f"    <system-out>{_body_text(printed)}</system-out>"] if printed else []
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _case_lines(case: Case) -> list[str]:
    """The element of one case."""
    head = f"    <testcase name={attribute(case.name)} classname={attribute(case.family)}"
    head += f' time="{max(case.seconds, 0):.3f}"'
    body = []
    if case.outcome:
        told = f"type={attribute(case.kind)} message={attribute(case.message)}"
        body.append(f"      <{case.outcome} {told}>{_body_text(case.text)}</{case.outcome}>")
    if case.printed:
        body.append(f"      <system-out>{_body_text(case.printed)}</system-out>")
    return [f"{head}>", *body, "    </testcase>"] if body else [f"{head}/>"]


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", plain(text))


def _body_text(text: str) -> str:
    """The end of ``text`` as what stands between two tags."""
    return html.escape(_legal(tail(text, _ROOM)), quote=False)


def attribute(text: str) -> str:
    """``text`` on one line, quoted."""
    # xml.sax has a function for this, and imports a client of HTTP with it.
    return f'"{html.escape(_legal(one_line(text, 4000)))}"'
