"""Gathers the pieces. Each collector is guarded: its failure is an entry of the manifest, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands.bundle import CASE, CASE_SCHEMA, GIVEN_LOGS
from aotidoctor.commands.bundle.child_outputs import read_log
from aotidoctor.commands.bundle.included import included
from aotidoctor.commands.bundle.member_names import safe_name
from aotidoctor.commands.bundle.pieces import Absent, Job, Material, Piece, Wanted
from aotidoctor.model import records
from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.errors import InputsError
from aotidoctor.model.json_types import JsonObject, JsonValue, as_object
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.zip_directory import read_directory
from aotidoctor.reports.json.case import host as host_facts
from aotidoctor.reports.json.case import inputs as inputs_facts
from aotidoctor.reports.json.render import clean

Found = Piece | Absent
Collector = Callable[[Job], Iterator[Found]]

_BINARY = {
    ".so": "a shared object: it cannot be redacted and may hold weights; --include package sends it",
    ".o": "an object file: it cannot be redacted; --include package sends it",
    ".bin": "it may hold weights; --include weights sends those",
    ".blob": "it may hold weights; --include weights sends those",
}
# What is in other members of the bundle, and what every archive has.
_SENT = (
    ".cpp", "_metadata.json", "/", "/archive_format", "/archive_version", "/byteorder", "/.data/version",
    "/.data/serialization_id",
)  # fmt: skip
_OTHER = "not used by aotidoctor; --include package sends it"
_LISTED, _ENTRIES = 200, 5000


def collect(material: Material, wanted: Wanted) -> tuple[list[Piece], list[Absent]]:
    """All pieces but the report itself, and what is not there."""
    job = Job(material=material, wanted=wanted)
    pieces: list[Piece] = []
    absent: list[Absent] = []
    for name, collector in _COLLECTORS.items():
        for found in _guarded(name, collector, job):
            if isinstance(found, Piece):
                pieces.append(found)
            else:
                absent.append(found)
    return pieces, absent


def _guarded(name: str, collector: Collector, job: Job) -> Iterator[Found]:
    try:
        yield from collector(job)
    except Exception as error:  # noqa: BLE001 - the guard around collectors: the rest is still worth sending
        yield Absent(name=name, reason=f"{type(error).__name__}: {error}")


def as_document(facts: Mapping[str, object]) -> JsonObject:
    """Plain values as strict JSON."""
    return as_object(clean(facts))


def source_name(member: str) -> str:
    """Where a source of the package stands in the bundle."""
    return safe_name(f"package/{member}")


def _case(job: Job) -> Iterator[Found]:
    case = job.material.report.case
    models = tuple(replace(model, wrapper_cpp=None, kernel_sources={}) for model in case.artifact.models)
    bare = replace(
        case,
        artifact=replace(case.artifact, models=models),
        model=None,
        inputs_error=None,
    )
    document: JsonObject = {
        "schema": CASE_SCHEMA,
        "case": records.to_json(bare),
        "model": case.model.name if case.model is not None else None,
        "inputs_error": _error(case.inputs_error),
        "sources": {model.name: records.to_json(_sources(model)) for model in case.artifact.models},
    }
    yield Piece(name=CASE, what="everything that the checks examine, for aotidoctor analyze", document=document)


def _error(error: InputsError | None) -> JsonObject | None:
    return None if error is None else {"message": str(error), **{name: str(one) for name, one in vars(error).items()}}


def _sources(model: ModelEntry) -> dict[str, str]:
    """Member of the package to member of the bundle."""
    members = list(model.kernel_sources)
    if model.wrapper_cpp is not None and model.wrapper_member is not None:
        members.append(model.wrapper_member)
    return {member: source_name(member) for member in members}


def _package_sources(job: Job) -> Iterator[Found]:
    for model in job.material.report.case.artifact.models:
        if model.wrapper_cpp is not None and model.wrapper_member is not None:
            yield Piece(name=source_name(model.wrapper_member), what="the wrapper", text=model.wrapper_cpp)
        for member, text in model.kernel_sources.items():
            yield Piece(name=source_name(member), what="a kernel's source", text=text)


def _package_metadata(job: Job) -> Iterator[Found]:
    for model in job.material.report.case.artifact.models:
        for found in model.metadata:
            values: JsonObject = {"member": found.member, "values": dict(found.values), "problem": found.problem}
            yield Piece(name=source_name(found.member), what="metadata of the package", document=values)


def _package_facts(job: Job) -> Iterator[Found]:
    artifact = job.material.report.case.artifact
    path = Path(artifact.path)
    members: list[JsonValue] = [{"name": member.name, "size": member.size} for member in artifact.members]
    facts: JsonObject = {"name": path.name, "size": artifact.size, "sha256": artifact.sha256, "members": members}
    if path.is_file():
        with opened_blob(path) as (blob, _):
            facts |= {"sha256": artifact.sha256 or blob.sha256(), "members": _entries(blob)}
    yield Piece(name="package/members.json", what="members of the package with sizes and CRCs", document=facts)
    if "package" not in job.wanted.include:
        yield from _not_sent(artifact)


def _entries(blob: Blob) -> list[JsonValue]:
    """Name, size, compressed size and CRC-32 of the members; none for a file that is no archive."""
    directory = read_directory(blob)
    entries = directory.entries if directory is not None else ()
    return [
        {"name": entry.name, "size": entry.size, "compressed": entry.compressed, "crc32": f"{entry.crc:08x}"}
        for entry in entries[:_ENTRIES]
    ]


def _not_sent(artifact: Artifact) -> Iterator[Absent]:
    names = [member.name for member in artifact.members if not member.name.endswith(_SENT)]
    for name in names[:_LISTED]:
        reason = next((why for end, why in _BINARY.items() if name.endswith(end)), _OTHER)
        yield Absent(name=name, reason=reason)
    if len(names) > _LISTED:
        yield Absent(name=f"{len(names) - _LISTED} more members", reason="--include package sends them")


def _package_objects(job: Job) -> Iterator[Found]:
    objects = [item for model in job.material.report.case.artifact.models for item in model.shared_objects]
    if objects:
        facts: JsonObject = {"shared_objects": [records.to_json(item) for item in objects]}
        yield Piece(name="package/elf.json", what="facts of the shared objects", document=facts)


def _call_spec(job: Job) -> Iterator[Found]:
    contract = job.material.report.case.contract
    if contract is not None and (contract.in_spec or contract.out_spec):
        facts: JsonObject = {"in_spec": contract.in_spec, "out_spec": contract.out_spec}
        yield Piece(name="package/call_spec.json", what="the call specification", document=facts)


def _host(job: Job) -> Iterator[Found]:
    facts = as_document(host_facts(job.material.report.case.host))
    yield Piece(name="host.json", what="the properties of this host", document=facts)


def _inputs(job: Job) -> Iterator[Found]:
    facts = inputs_facts(job.material.report.case)
    if facts is None:
        yield Absent(name="inputs.json", reason="no inputs were given")
        return
    what = "metadata of the inputs, without tensor values"
    yield Piece(name="inputs.json", what=what, document=as_document(facts))
    if "inputs" not in job.wanted.include:
        yield Absent(name="inputs' values", reason="left out by default; --include inputs sends the file")


def _outputs(job: Job) -> Iterator[Found]:
    probes = {run.id: run.request.probe for run in job.material.report.runs}
    for name, text in (job.material.outputs or {}).items():
        run, _, stream = name.partition(".")
        place = f"logs/runs/{run}.{probes.get(run, 'treatment')}.{stream}"
        yield Piece(name=f"{place}.txt", what="output of a child run", printed=text)
    for run_ in job.material.report.runs:
        if run_.debugger_output:
            place = f"logs/runs/{run_.id}.{run_.request.probe}.debugger.txt"
            yield Piece(name=place, what="output of the debugger", printed=run_.debugger_output)


def _journal(job: Job) -> Iterator[Found]:
    if job.material.journal:
        text = "\n".join(job.material.journal) + "\n"
        yield Piece(name="logs/aotidoctor.log", what="the journal of aotidoctor", text=text)


def _logs(job: Job) -> Iterator[Found]:
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
    "included files": included,
}
