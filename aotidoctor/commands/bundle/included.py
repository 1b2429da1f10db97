"""What is sent only when it is asked for: the package, its weights, the inputs file. None of it can be redacted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aotidoctor.commands.bundle.pieces import Absent, Job, Piece, Wanted
from aotidoctor.model.artifact import Member
from aotidoctor.model.case import Case

_WEIGHTS = (".bin", ".blob", ".pt", ".safetensors")


def included(job: Job) -> Iterator[Piece | Absent]:
    """The files that ``--include`` names."""
    case, wanted = job.material.report.case, job.wanted
    if "package" in wanted.include:
        yield _file("included/package/", Path(case.artifact.path), "the package itself", wanted.largest)
    if "inputs" in wanted.include and case.inputs_path is not None:
        yield _file("included/inputs/", Path(case.inputs_path), "the inputs file with its values", wanted.largest)
    if "weights" in wanted.include:
        yield from _weights(case, wanted)


def _file(folder: str, path: Path, what: str, largest: int) -> Piece | Absent:
    name = folder + path.name
    try:
        if not path.is_file():
            return Absent(name=name, reason="not a file")
        if path.stat().st_size > largest:
            return Absent(name=name, reason=f"{path.stat().st_size} bytes, more than --max-size")
        return Piece(name=name, what=what, data=path.read_bytes())
    except OSError as error:
        return Absent(name=name, reason=error.strerror or str(error))


def _weights(case: Case, wanted: Wanted) -> Iterator[Piece | Absent]:
    found = [member for model in case.artifact.models for member in model.members if _is_weight(member)]
    if not found:
        location = case.contract.weights if case.contract is not None else "unknown"
        yield Absent(name="weights", reason=f"not in a separate member (they are: {location}); --include package")
    for member in found:
        name = f"included/weights/{member.name.rpartition('/')[2]}"
        if member.data_offset is None or member.size > wanted.largest:
            yield Absent(name=name, reason="compressed, or more than --max-size")
            continue
        with Path(member.path).open("rb") as stream:
            stream.seek(member.data_offset)
            yield Piece(name=name, what="weights", data=stream.read(member.size))


def _is_weight(member: Member) -> bool:
    return member.name.endswith(_WEIGHTS) or "/constants/" in member.name or "/weights/" in member.name
