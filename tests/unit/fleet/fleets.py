"""Results folders for tests, through the writer that ``aotidoctor batch`` uses."""

from __future__ import annotations

import hashlib

from aotidoctor.fleet.results import ResultsFolder
from aotidoctor.model.fleet import REPORTS_FOLDER, FleetResult, FleetRun

CAUSES = ("input-stride", "weights-not-loaded", "isa-mismatch", "input-dtype")


def item_of(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def signed(cause: str, subject: str = "") -> dict[str, str]:
    return {"signature": "aotidoctor2:" + item_of(cause, subject), "family": "aotidoctor2f:" + item_of(cause)}


def healthy(name, **more):
    given = {"command": "check", "verdict": "healthy", "started": "2026-09-03T10:00:00Z", "seconds": 0.1, **more}
    return FleetResult(item=item_of(name, given.get("host")), name=name, **given)


def failing(name, cause, subject="args[0]", **more):
    item = item_of(name, more.get("host"))
    given = {
        "command": "check", "verdict": "problem", "status": 1, "stage": "inputs", "cause": cause,
        "cause_status": "suspected", "confidence": 0.9, "title": f"{cause} of {subject}", "subject": subject,
        "causes": (cause,), "started": "2026-09-03T10:00:00Z", "seconds": 0.2,
        "report": f"{REPORTS_FOLDER}/{item}.json", **signed(cause, subject), **more,
    }  # fmt: skip
    return FleetResult(item=item, name=name, **given)


def unexamined(name, ending="timed-out", **more):
    return FleetResult(
        item=item_of(name, more.get("host")), name=name, command="check", ending=ending, status=4,
        problem="no answer in 60 s", started="2026-09-03T10:00:00Z", **more,
    )  # fmt: skip


def write(folder, results, *, started="2026-09-03T09:00:00Z", finished="2026-09-03T11:00:00Z"):
    with ResultsFolder(str(folder)) as opened:
        opened.write_run(FleetRun(command="check", items=len(results), started=started, finished=finished, tool="1"))
        for result in results:
            opened.add(result, b"{}" if result.report else None)
    return str(folder)


def mixed():
    """40 healthy, 8 with strides (all on avx2 hosts), 5 without weights (exported since June), 2 not examined."""
    results = []
    for number in range(40):
        facts = {"host_isa": "avx512" if number % 4 else "avx2", "modified": f"2026-0{1 + number % 5}-10", "n": number}
        results.append(healthy(f"good/{number:02}.pt2", facts=facts, labels={"team": "ab"[number % 2]}))
    for number in range(8):
        facts = {"host_isa": "avx2", "modified": f"2026-0{1 + number % 5}-11", "n": number}
        subject = f"args[{number // 6}]"
        results.append(
            failing(f"slow/{number}.pt2", "input-stride", subject, facts=facts, labels={"team": "ab"[number % 2]})
        )
    for number in range(5):
        facts = {"host_isa": "avx512", "modified": f"2026-0{6 + number % 3}-12", "n": 7 * number}
        results.append(
            failing(
                f"new/{number}.pt2",
                "weights-not-loaded",
                "weights",
                facts=facts,
                labels={"team": "a"},
                cause_status="confirmed",
            )
        )
    return [*results, unexamined("bad/0.pt2"), unexamined("bad/1.pt2")]
