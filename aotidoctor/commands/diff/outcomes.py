"""What came of two examinations: verdict, causes, findings, ends of runs, signature."""

from __future__ import annotations

import re

from aotidoctor.commands.diff.node import Node
from aotidoctor.commands.diff.tally import NONE, Tally

# What one compilation or run gives to a text: addresses, hashes in names of files.
_PASSING = re.compile(r"0x[0-9a-f]+|\b[a-z0-9]{40,}\b")


def compare_outcomes(tally: Tally, a: Node, b: Node) -> None:
    """The results; only what was found loudly is compared."""
    tally.compare("verdict", "verdict", a.text("verdict"), b.text("verdict"))
    tally.compare("verdict", "fails in", a.text("stage") or NONE, b.text("stage") or NONE)
    causes = [tuple(item.text("cause") or "?" for item in side.nodes("diagnoses")) for side in (a, b)]
    tally.members("cause", "causes", *causes)
    _findings(tally, a, b)
    _runs(tally, a, b)
    _signatures(tally, a, b)
    tally.compare("tool-version", "aotidoctor", a.at("tool").text("version"), b.at("tool").text("version"))
    tally.skip("times", a.text("started"), b.text("started"))
    tally.skip("times", a.number("duration_s"), b.number("duration_s"))


def _findings(tally: Tally, a: Node, b: Node) -> None:
    one, two = _loud(a), _loud(b)
    tally.equal["outcome"] += len(set(one) & set(two))
    for key in dict.fromkeys((*one, *two)):
        if (key in one) != (key in two):
            code, kind, subject = key
            name = f"{code} {kind}" + (f" {subject}" if subject else "")
            tally.differ("finding", name, one.get(key, "not found"), two.get(key, "not found"))


def _loud(report: Node) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for item in report.nodes("findings"):
        if item.text("severity") != "info":
            subject = item.text("subject") or ""
            # Of a path the name: another folder is no other finding.
            named = _PASSING.sub("#", subject.rpartition("/")[2] if subject.startswith("/") else subject)
            key = (item.text("code") or "?", item.text("kind") or "", named)
            found.setdefault(key, (item.text("observed") or "found")[:200])
    return found


def _runs(tally: Tally, a: Node, b: Node) -> None:
    """How the first run of each probe ended; a probe that only one side ran tells nothing."""
    one, two = _endings(a), _endings(b)
    for probe in one:
        if probe in two:
            tally.compare("run", f"run {probe}", one[probe], two[probe])


def _endings(report: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in report.nodes("runs"):
        error = run.at("error")
        ended = run.text("ending") or "?"
        if not error.missing:
            ended = f"raised {error.text('type')}"
        elif ended == "signalled":
            ended = run.text("signal") or ended
        elif ended == "exited":
            ended = f"exit {run.number('exit_code')}"
        found.setdefault(run.text("probe") or "?", f"{ended} in {run.text('stage') or '?'}")
    return found


def _signatures(tally: Tally, a: Node, b: Node) -> None:
    marks = [side.at("fingerprint") for side in (a, b)]
    if not marks[0].missing and not marks[1].missing:
        tally.compare("signature", "family of the failure", *(mark.text("family") for mark in marks))
        tally.compare("signature", "signature", *(mark.text("exact") for mark in marks))
    else:
        tally.compare("signature", "signature", *(side.text("signature") or NONE for side in (a, b)))
