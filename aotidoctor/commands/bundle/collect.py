"""Collect the pieces of a bundle: report, case, sources, host, inputs, outputs of child runs, logs.

Each collector is guarded: its failure is an entry of the manifest, and the others go on. Weights and values of tensors
are left out unless ``--include`` asks for them; such files cannot be redacted. Bounds of a tensor that amount to its
values are removed from the report that is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands.bundle.bundle_members import (
    CASE_MEMBER,
    CASE_SCHEMA,
    GIVEN_LOGS,
    Absent,
    BundleContents,
    BundleJob,
    Material,
    Piece,
    safe_name,
)
from aotidoctor.files import open_regular
from aotidoctor.model.artifact import RUNNABLE_KINDS
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import JsonObject, JsonValue, as_object, to_json
from aotidoctor.model.report import Report
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_archive import read_zip_directory
from aotidoctor.reports.json.json_report import host_json as host_facts
from aotidoctor.reports.json.json_report import inputs_json as inputs_facts

# Full outputs of child runs, up to a limit in bytes: the report has the last 16 KiB only.
HEAD, TAIL = 256 << 10, 768 << 10
# All runs together: many runs that print without end must not fill the memory.
TOTAL = 32 << 20
_STREAMS = ("stdout", "stderr", "tool.log")
_HOLE = re.compile(rb"\0{64,}")


class ChildOutputs:
    """Copies of the streams of runs, made before their directories are removed."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._left = TOTAL

    def keep(self, run: str, directory: Path) -> None:
        """Copy the streams of one run; one that cannot be read is left out, as the report has its tail."""
        for stream in _STREAMS:
            try:
                written, _ = _ends(directory / stream, HEAD, TAIL)
            except OSError:
                continue
            # The beginning of a very long output is given back to the file system and reads as zeros.
            data = _HOLE.sub(b"\n[... given back to the file system ...]\n", written)
            if data and len(data) <= self._left:
                self._left -= len(data)
                self.texts[f"{run}.{stream}"] = decode_text(data)


def read_log(path: Path, limit: int = HEAD + TAIL) -> tuple[str, int]:
    """The text of a log, without its middle if it is longer than ``limit`` bytes; and its size. Raises OSError."""
    data, size = _ends(path, limit // 4, limit - limit // 4)
    return decode_text(data), size


def decode_text(data: bytes) -> str:
    """Decode UTF-16 where the bytes look like it, else UTF-8. A word in UTF-16 would hide from redaction."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    sample = data[:4096]
    if len(sample) > 8 and sample.count(0) * 5 > len(sample) * 2:
        even = sample[::2].count(0) > sample[1::2].count(0)
        return data.decode("utf-16-be" if even else "utf-16-le", "replace")
    return data.decode("utf-8", "replace")


def _ends(path: Path, head: int, tail: int) -> tuple[bytes, int]:
    """The bytes of a file, without its middle if it is longer than ``head + tail``; and its size."""
    with open_regular(path) as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if size <= head + tail:
            return stream.read(head + tail), size
        data = stream.read(head) + f"\n[... {size - head - tail} bytes left out ...]\n".encode()
        stream.seek(size - tail)
        return data + stream.read(tail), size


# `--include`: the package, its weights, the inputs file.

_WEIGHTS = (".bin", ".blob", ".pt", ".safetensors")


def included_files(job: BundleJob) -> Iterator[Piece | Absent]:
    """The files that ``--include`` names."""
    case, wanted = job.material.report.case, job.wanted
    if "package" in wanted.include:
        yield _file("included/package/", Path(case.artifact.path), "the package itself", wanted.largest)
    if "inputs" in wanted.include and case.inputs_path is not None:
        yield _file("included/inputs/", Path(case.inputs_path), "the inputs file with its values", wanted.largest)
    if "weights" not in wanted.include:
        return
    found = [
        member
        for model in case.artifact.models
        for member in model.members
        if (member.name.endswith(_WEIGHTS) or "/constants/" in member.name or "/weights/" in member.name)
    ]
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


# Values of tensors that do not leave the machine. The bounds of fewer elements give the elements away.
_FEW = 64
# Properties, checksums included, from which the values of so small a tensor can be computed.
_TELLING = frozenset({"min", "max", "mean", "low", "high", "digest", "sha256"})


def report_without_values(report: Report) -> Report:
    """``report`` without bounds of floating-point inputs and of small tensors. Bounds of integers decide diagnoses."""
    case, place = report.case, report.localization

    def without_bounds(value: TensorDesc) -> TensorDesc:
        stats = value.stats
        if stats is not None and not _is_integer(value.dtype):
            stats = replace(stats, low=None, high=None)
        return replace(value, stats=stats, elements=None)

    if case.inputs is not None:
        case = replace(case, inputs=case.inputs.with_tensors(without_bounds))
    if place is not None:
        values = tuple(
            replace(
                kernel,
                buffers=tuple(
                    replace(buffer, low=None, high=None, mean=None) if _count(buffer.shape) < _FEW else buffer
                    for buffer in kernel.buffers
                ),
            )
            for kernel in place.values
        )
        place = replace(place, values=values)
    runs = tuple(replace(run, result=_object(run.result)) for run in report.runs)
    # The history of earlier cases is not part of this one.
    return replace(report, history=None, case=case, runs=runs, localization=place)


def document_without_values(value: JsonObject) -> JsonObject:
    """Remove the same from a report that was saved as JSON."""
    return _object({name: item for name, item in value.items() if name != "history"})


def _object(value: JsonObject) -> JsonObject:
    shape, stats = value.get("shape"), value.get("stats")
    few = isinstance(shape, list) and _count(shape) < _FEW
    found = {name: None if few and name in _TELLING else _json(item) for name, item in value.items()}
    if isinstance(stats, dict) and isinstance(shape, list) and not _is_integer(str(value.get("dtype"))):
        found["stats"] = {**stats, "low": None, "high": None}
    return found


def _json(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _object(value)
    return [_json(item) for item in value] if isinstance(value, list) else value


def _count(shape: Sequence[object]) -> int:
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) else _FEW
    return count


def _is_integer(dtype: str) -> bool:
    return dtype in ITEMSIZE and dtype.startswith(("int", "uint", "bool"))


# The collectors.
NO_RUN = "a run of the package"
Collected = Piece | Absent
Collector = Callable[[BundleJob], Iterator[Collected]]

_BINARY = {
    ".so": "a shared object: it cannot be redacted and may hold weights; --include package sends it",
    ".o": "an object file: it cannot be redacted; --include package sends it",
    ".bin": "it may hold weights; --include weights sends those",
    ".blob": "it may hold weights; --include weights sends those",
}
# Members with a place of their own in the bundle, and those that every archive has.
_IN_OTHER_MEMBERS = (
    ".cpp", "_metadata.json", "/", "/archive_format", "/archive_version", "/byteorder", "/.data/version",
    "/.data/serialization_id",
)  # fmt: skip
_OTHER = "not used by aotidoctor; --include package sends it"
_LISTED, _ENTRIES = 200, 5000
# A larger package is not read in full.
_MOST_HASHED = 1 << 30


def collect(material: Material, wanted: BundleContents) -> tuple[list[Piece], list[Absent]]:
    """All pieces but the report itself, and what is absent."""
    job = BundleJob(material=material, wanted=wanted)
    pieces: list[Piece] = []
    absent: list[Absent] = []
    for name, collector in _COLLECTORS.items():
        for found in _collect_guarded(name, collector, job):
            if isinstance(found, Piece):
                pieces.append(found)
            else:
                absent.append(found)
    return pieces, absent


def _collect_guarded(name: str, collector: Collector, job: BundleJob) -> Iterator[Collected]:
    try:
        yield from collector(job)
    except Exception as error:  # noqa: BLE001 - the guard around collectors: the rest is still worth sending
        yield Absent(name=name, reason=f"{type(error).__name__}: {error}")


def as_document(facts: Mapping[str, object]) -> JsonObject:
    """Convert plain values to strict JSON."""
    return as_object(to_json(facts))


def source_name(member: str) -> str:
    """The name of a package's source in the bundle."""
    return safe_name(f"package/{member}")


def _case(job: BundleJob) -> Iterator[Collected]:
    case = job.material.report.case
    models = tuple(replace(model, wrapper_cpp=None, kernel_sources={}) for model in case.artifact.models)
    bare = replace(case, artifact=replace(case.artifact, models=models), model=None, inputs_error=None)
    # By model: member of the package to member of the bundle.
    sources: dict[str, JsonValue] = {}
    for model in case.artifact.models:
        wrapper = [] if model.wrapper_cpp is None or model.wrapper_member is None else [model.wrapper_member]
        sources[model.name] = {member: source_name(member) for member in (*model.kernel_sources, *wrapper)}
    document: JsonObject = {
        "schema": CASE_SCHEMA,
        "case": to_json(bare),
        "model": case.model.name if case.model is not None else None,
        "inputs_error": (
            None
            if case.inputs_error is None
            else {
                "message": str(case.inputs_error),
                **{name: str(one) for name, one in vars(case.inputs_error).items()},
            }
        ),
        "sources": sources,
    }
    yield Piece(name=CASE_MEMBER, what="everything that the checks examine, for aotidoctor analyze", document=document)


def _package_sources(job: BundleJob) -> Iterator[Collected]:
    for model in job.material.report.case.artifact.models:
        if model.wrapper_cpp is not None and model.wrapper_member is not None:
            yield Piece(name=source_name(model.wrapper_member), what="the wrapper", text=model.wrapper_cpp)
        for member, text in model.kernel_sources.items():
            yield Piece(name=source_name(member), what="a kernel's source", text=text)


def _package_metadata(job: BundleJob) -> Iterator[Collected]:
    for model in job.material.report.case.artifact.models:
        for found in model.metadata:
            values: JsonObject = {"member": found.member, "values": dict(found.values), "problem": found.problem}
            yield Piece(name=source_name(found.member), what="metadata of the package", document=values)


def _package_facts(job: BundleJob) -> Iterator[Collected]:
    artifact = job.material.report.case.artifact
    path = Path(artifact.path)
    members: list[JsonValue] = [{"name": member.name, "size": member.size} for member in artifact.members]
    facts: JsonObject = {"name": path.name, "size": artifact.size, "sha256": artifact.sha256, "members": members}
    if path.is_file():
        with opened_blob(path) as (blob, _):
            directory = read_zip_directory(blob)
            entries = directory.entries if directory is not None else ()
            members = [
                {"name": entry.name, "size": entry.size, "compressed": entry.compressed, "crc32": f"{entry.crc:08x}"}
                for entry in entries[:_ENTRIES]
            ]
            sha256 = artifact.sha256 or (blob.sha256() if blob.size <= _MOST_HASHED else None)
            facts |= {"sha256": sha256, "members": members}
    yield Piece(name="package/members.json", what="members of the package with sizes and CRCs", document=facts)
    if artifact.size > _MOST_HASHED:
        yield Absent(name="sha256 of the package", reason="it has more than 1 GiB and was not read in full")
    if "package" not in job.wanted.include:
        names = [member.name for member in artifact.members if not member.name.endswith(_IN_OTHER_MEMBERS)]
        for name in names[:_LISTED]:
            reason = next((why for end, why in _BINARY.items() if name.endswith(end)), _OTHER)
            yield Absent(name=name, reason=reason)
        if len(names) > _LISTED:
            yield Absent(name=f"{len(names) - _LISTED} more members", reason="--include package sends them")


def _package_objects(job: BundleJob) -> Iterator[Collected]:
    objects = [item for model in job.material.report.case.artifact.models for item in model.shared_objects]
    if objects:
        facts: JsonObject = {"shared_objects": [to_json(item) for item in objects]}
        yield Piece(name="package/elf.json", what="facts of the shared objects", document=facts)


def _call_spec(job: BundleJob) -> Iterator[Collected]:
    contract = job.material.report.case.contract
    if contract is not None and (contract.in_spec or contract.out_spec):
        facts: JsonObject = {"in_spec": contract.in_spec, "out_spec": contract.out_spec}
        yield Piece(name="package/call_spec.json", what="the call specification", document=facts)


def _host(job: BundleJob) -> Iterator[Collected]:
    facts = as_document(host_facts(job.material.report.case.host))
    yield Piece(name="host.json", what="the properties of this host", document=facts)


def _inputs(job: BundleJob) -> Iterator[Collected]:
    facts = inputs_facts(job.material.report.case)
    if facts is None:
        yield Absent(name="inputs.json", reason="no inputs were given")
        return
    what = "metadata of the inputs, without tensor values"
    yield Piece(name="inputs.json", what=what, document=as_document(facts))
    if "inputs" not in job.wanted.include:
        yield Absent(name="inputs' values", reason="left out by default; --include inputs sends the file")


def _outputs(job: BundleJob) -> Iterator[Collected]:
    report = job.material.report
    if not report.runs and report.case.artifact.kind in RUNNABLE_KINDS:
        yield Absent(name=NO_RUN, reason="a crash, a hang or wrong numbers in one cannot be judged; --run makes one")
    probes = {run.id: run.request.probe for run in report.runs}
    for name, text in (job.material.outputs or {}).items():
        run, _, stream = name.partition(".")
        place = f"logs/runs/{run}.{probes.get(run, 'treatment')}.{stream}"
        yield Piece(name=f"{place}.txt", what="output of a child run", printed=text)
    for run_ in job.material.report.runs:
        if run_.debugger_output:
            place = f"logs/runs/{run_.id}.{run_.request.probe}.debugger.txt"
            yield Piece(name=place, what="output of the debugger", printed=run_.debugger_output)


def _journal(job: BundleJob) -> Iterator[Collected]:
    if job.material.journal:
        text = "\n".join(job.material.journal) + "\n"
        yield Piece(name="logs/aotidoctor.log", what="the journal of aotidoctor", text=text)


def _logs(job: BundleJob) -> Iterator[Collected]:
    for at, given in enumerate(job.wanted.logs, start=1):
        path = Path(given)
        name = f"{GIVEN_LOGS}{at}-{path.name}"
        try:
            text, size = read_log(path, job.wanted.largest // 8)
        except OSError as error:
            yield Absent(name=name, reason=f"{path}: {error.strerror or error}")
            continue
        yield Piece(name=name, what=f"a log that was passed, {size} bytes", printed=text)


_COLLECTORS: dict[str, Collector] = {
    "case": _case,
    "sources": _package_sources,
    "metadata": _package_metadata,
    "package": _package_facts,
    "shared objects": _package_objects,
    "call specification": _call_spec,
    "host": _host,
    "inputs": _inputs,
    "child outputs": _outputs,
    "journal": _journal,
    "logs": _logs,
    "included files": included_files,
}
