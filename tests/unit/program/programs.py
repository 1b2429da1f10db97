"""Recorded programs as archives, with one edit each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aotidoctor.model.artifact import ProgramArchive
from aotidoctor.program.static_verify import judge_static
from aotidoctor.program.verify_stages import open_program
from tests.artifacts.packages import archive_parts, write_zip
from tests.artifacts.zips import Part

DATA = Path(__file__).parents[2] / "data" / "programs"
ITEMSIZE = {5: 8, 7: 4}


def recorded(name: str) -> Any:
    """``program``, ``weights`` and ``constants`` of a program that torch 2.13 saved."""
    return json.loads((DATA / f"{name}.json").read_text())


def write(path: Path, name: str, change: Callable[[Any], object] = lambda _: None) -> str:
    """The archive of a recorded program after ``change``; the bytes of its weights are zeros."""
    record = recorded(name)
    change(record)
    parts = [Part("e/models/model.json", json.dumps(record["program"]).encode()), *archive_parts("e")]
    parts.append(Part("e/data/sample_inputs/model.pt", b"-"))
    for which in ("weights", "constants"):
        if which not in record:
            continue
        parts.append(Part(f"e/data/{which}/model_{which}_config.json", json.dumps(record[which]).encode()))
        entries = record[which]["config"].values()
        parts += [
            Part(f"e/data/{which}/{entry['path_name']}", bytes(nbytes(entry["tensor_meta"]))) for entry in entries
        ]
    return write_zip(path, parts)


def nbytes(meta: Any) -> int:
    """Bytes of a tensor; at most a few, whatever the archive says of its size."""
    count = ITEMSIZE[meta["dtype"]]
    for size in meta["sizes"]:
        count *= size["as_int"]
    return min(count, 1 << 16)


def opened(path: str) -> ProgramArchive:
    """The archive, which must be readable."""
    archive = open_program(path)
    assert not isinstance(archive, str), archive
    return archive


def judged(path: str) -> list[tuple[str, str, str | None, str | None]]:
    """Code, kind, node and target of every violation."""
    found = judge_static(opened(path)).violations
    return [(item.code.removeprefix("VERIFY-"), item.kind, item.node, item.target) for item in found]
