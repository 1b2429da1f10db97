"""Write a report as strict JSON, schema ``aotidoctor.report/1``, and read a saved one with its case.

NaN and Inf become strings, lone surrogates become U+FFFD, what a terminal obeys is escaped, durations end in ``_s`` (a
run's ``seconds`` excepted) and times are RFC 3339 UTC. Sources, symbol lists and other long things are left out or
counted. Minor versions only add.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import Artifact, ArtifactKind, Metadata
from aotidoctor.model.case import Case, Host
from aotidoctor.model.contract import ConstantSpec, Dim, KernelCall, LeafSpec, ModelContract
from aotidoctor.model.evidence import FileSource, RunSource, Source
from aotidoctor.model.other_artifacts import CompiledFunction, ExecutorchFile, Parameter, Precompiled, PteMethod
from aotidoctor.model.record import JsonObject, as_object, to_json, values_of
from aotidoctor.model.report import SCHEMA, Diagnosis, Report
from aotidoctor.model.torch_names import DEBUG_SETTINGS
from aotidoctor.readers.package.blob import read_document
from aotidoctor.reports.text import escaped_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from aotidoctor.model.artifact import StampSeen
    from aotidoctor.model.run import Ending, Outcome
    from aotidoctor.model.serving_config import NameRow


# The file, as plain values.
NAMES_LISTED = 100
# Lists of members' names, of which a damaged archive may have very many.
_NAMED = "names_duplicate names_unsafe names_symlink names_directory bad_crc unread_crc oversized"


def pick_fields(value: object, names: str) -> dict[str, object]:
    """The fields that ``names`` names, in that order."""
    return {name: getattr(value, name) for name in names.split()}


# What of a record only checks read. All else is in the report, in the order of the record: a new field, too.
_UNLISTED: Mapping[type, tuple[str, ...]] = {
    Dim: ("among",),
    LeafSpec: ("stride_exprs", "mutated", "reads", "walks", "walked"),
    ConstantSpec: ("offset", "strided", "values"),
    KernelCall: ("guarded",),
    Metadata: ("stamp",),
    CompiledFunction: ("problem",),
    Parameter: ("tree",),
    PteMethod: ("external", "devices"),
    Host: ("missing_folders",),
    Diagnosis: ("stage",),
}


def listed(value: DataclassInstance) -> dict[str, object]:
    """The fields of a record that reports have."""
    unlisted = _UNLISTED.get(type(value), ())
    return {name: item for name, item in values_of(value).items() if name not in unlisted}


def artifact_json(case: Case) -> dict[str, object]:
    """Describe the contents of the artifact as plain values."""
    found: Artifact = case.artifact
    return {
        **pick_fields(found, "path kind size sha256 prefix archive_version archive_format"),
        "n_members": len(found.members),
        "members": [pick_fields(member, "name size crc") for member in found.members[:NAMES_LISTED]],
        "model_name": case.model.name if case.model is not None else None,
        "models": [
            {
                **pick_fields(model, "name layout"),
                "n_members": len(model.members),
                "size": sum(member.size for member in model.members),
                "shared_objects": [
                    {
                        **pick_fields(item, "member format size machine bits type needed runpath"),
                        "n_undefined": len(item.undefined),
                        "n_kernel_symbols": len(item.kernel_symbols),
                        "entry_points": item.defined_entry_points[:NAMES_LISTED],
                        **pick_fields(
                            item, "constants_span features has_debug_lines executable_stack truncated_at problem"
                        ),
                    }
                    for item in model.shared_objects
                ],
                "wrapper_member": model.wrapper_member,
                "wrapper_lines": model.wrapper_cpp.count("\n") if model.wrapper_cpp is not None else None,
                "n_kernel_sources": len(model.kernel_sources),
                "metadata": [listed(item) for item in model.metadata],
                **pick_fields(model, "extern_member extern_problem"),
                "extern_ops": [pick_fields(node, "name target") for node in model.extern_nodes[:NAMES_LISTED]],
                "n_extern_ops": len(model.extern_nodes),
                "gpu_code": model.gpu_code[:NAMES_LISTED],
                "n_gpu_code": len(model.gpu_code),
                **pick_fields(model, "gpu_targets weights_location cpp_only"),
            }
            for model in found.models
        ],
        "exported": [pick_fields(facts, "name constant_inputs custom_ops ops") for facts in found.exported],
        **{name: getattr(found, name)[:NAMES_LISTED] for name in _NAMED.split()},
        **pick_fields(found, "first_line link_target problem counts other_contents"),
        **({"stamp": _stamp(case.stamp)} if case.stamp is not None else {}),
        **({"executorch": _executorch(found.executorch, case)} if found.executorch is not None else {}),
        **({"precompiled": _precompiled(found.precompiled)} if found.precompiled is not None else {}),
    }


def _precompiled(found: Precompiled) -> dict[str, object]:
    """The content of an artifact of torch.compile."""
    return {
        **listed(found),
        "functions": [
            {
                **listed(one),
                "parameters": [listed(parameter) for parameter in one.parameters],
                "guards": one.guards[:NAMES_LISTED],
                "external": one.external[:NAMES_LISTED],
            }
            for one in found.functions
        ],
        "entries": found.entries[:NAMES_LISTED],
        "n_entries": len(found.entries),
    }


def _executorch(found: ExecutorchFile, case: Case) -> dict[str, object]:
    """The content of a .pte or .ptd, and the data files beside it."""
    return {
        **pick_fields(found, "program identifier version expected_size n_segments problem"),
        "methods": [
            {
                **listed(method),
                "delegates": method.delegates[:NAMES_LISTED],
                "operators": method.operators[:NAMES_LISTED],
            }
            for method in found.methods[:NAMES_LISTED]
        ],
        "named": [
            {**pick_fields(blob, "key offset size tensor sha256"), "format": blob.code.format if blob.code else None}
            for blob in found.named[:NAMES_LISTED]
        ],
        "needed_data": found.needed_data[:NAMES_LISTED],
        "data": [
            {**pick_fields(item, "path size version problem"), "keys": sorted(item.keys)[:NAMES_LISTED]}
            for item in case.data
        ],
    }


def _stamp(seen: StampSeen) -> dict[str, object]:
    """What the package states of its origin; its hashes are counted."""
    stamp = seen.stamp
    values = pick_fields(seen, "member problem")
    if stamp is None:
        return values
    return {
        **values,
        **pick_fields(stamp, "torch compiler python program"),
        **pick_fields(stamp.facts, "ranges constant_inputs"),
        "sample": stamp.sample,
        "n_weights": len(stamp.weights),
        "weights_equal": seen.equal,
        "weights_differing": seen.differing[:NAMES_LISTED],
        "left_out": stamp.left_out,
    }


# Contract, inputs and host. A report of `run` or `check` shows this many constants and kernels; `inspect` shows all.
_LISTED = 50


def contract_json(found: ModelContract | None, *, whole: bool) -> dict[str, object] | None:
    """Write the contract as plain values; ``whole`` lists all constants and kernels."""
    if found is None:
        return None
    most = None if whole else _LISTED
    return {
        **pick_fields(found, "model_name source member n_inputs n_outputs n_constants"),
        "leaves": [
            {**listed(leaf), "dims": [_dim(dim) for dim in leaf.dims] if leaf.dims is not None else None}
            for leaf in found.leaves
        ],
        **pick_fields(found, "outputs symbols"),
        "constants": [listed(item) for item in found.constants[:most]],
        "kernels": [listed(kernel) for kernel in found.kernels[:most]],
        "n_kernels": len(found.kernels),
        "bound_checks": found.bound_checks[:most],
        **pick_fields(found, "custom_ops needs weights"),
        "in_spec": found.in_spec if whole else None,
        "out_spec": found.out_spec if whole else None,
        **pick_fields(found, "unknown_lines unread problems"),
    }


def _name_row(row: NameRow) -> dict[str, object]:
    return {**values_of(row), "dims": [_dim(dim) for dim in row.dims] if row.dims is not None else None}


def _dim(dim: Dim) -> dict[str, object]:
    return {**listed(dim), "expr": str(dim.expr) if dim.expr is not None else None}


def inputs_json(case: Case) -> dict[str, object] | None:
    """Describe the inputs, or why they could not be read; None when none were given."""
    from aotidoctor.model.inputs import PlainValue

    error, found = case.inputs_error, case.inputs
    if error is not None:
        return {"path": case.inputs_path, "problem": str(error), "cause": error.cause, "leaves": []}
    if found is None:
        return None
    return {
        **pick_fields(found, "path format form sha256 trusted globals notes"),
        "leaves": [
            {
                "path": path,
                "kind": "plain" if isinstance(value, PlainValue) else "tensor",
                **{key: item for key, item in values_of(value).items() if key != "elements"},
            }
            for path, value in found.leaves()
        ],
        "problem": None,
        "cause": None,
    }


def host_json(found: Host) -> dict[str, object]:
    """Describe the host: every field of the record but those that only a check reads."""
    values = listed(found)
    if found.profile is None:
        # Without a profile, of a host that was not looked at.
        del values["profile"]
        if not found.unstated:
            del values["unstated"]
    return {
        **values,
        "missing_symbols": found.missing_symbols[:NAMES_LISTED],
        "n_missing_symbols": len(found.missing_symbols),
    }


# Child runs.
_OUTPUTS_LISTED = 64


def run_json(outcome: Outcome) -> dict[str, object]:
    """One child run, as plain values."""
    request = outcome.request
    # Descriptions of the last call's outputs, the first of them when there are very many.
    calls = outcome.result.get("outputs")
    outputs = calls[-1] if isinstance(calls, list) and calls else None
    return {
        "id": outcome.id,
        **pick_fields(request, "probe purpose"),
        "argv": outcome.argv,
        "env": request.env,
        "took_effect": "unknown" if outcome.took_effect is None else outcome.took_effect,
        "took_effect_why": outcome.took_effect_why,
        **_ending(outcome.ending),
        "stage": outcome.stage,
        "stages_s": outcome.stages,
        "seconds": outcome.seconds,
        "error": outcome.error,
        "warnings": outcome.warnings,
        "outputs": list(outputs[:_OUTPUTS_LISTED]) if isinstance(outputs, list) else [],
        "applied": outcome.result.get("applied", []),
        **pick_fields(outcome, "stdout_tail stderr_tail stdout_bytes stderr_bytes"),
        "peak_rss_bytes": outcome.peak_rss,
        "fresh_process": not outcome.forked,
    }


def _ending(ending: Ending) -> dict[str, object]:
    # Not at the top: `env` and `schema` have no runs.
    from aotidoctor.model.run import Exited, NotStarted, OutOfMemory, Signalled, TimedOut

    values: dict[str, object] = {"ending": "exited", "ending_why": "", "signal": None, "exit_code": None}
    match ending:
        case Exited(code=code, done=done):
            return values | {"exit_code": code, "ending_why": "" if done else "no done-marker"}
        case Signalled(name=name, core_dumped=core):
            return values | {"ending": "signalled", "signal": name, "ending_why": "core dumped" if core else ""}
        case TimedOut(limit=limit):
            return values | {"ending": "timed-out", "ending_why": f"limit {limit:g} s"}
        case OutOfMemory(reason=reason):
            return values | {"ending": "out-of-memory", "ending_why": reason}
        case NotStarted(reason=reason):
            return values | {"ending": "not-started", "ending_why": reason}


def render_json(report: Report) -> str:
    """``report`` as one strict JSON document that ends in a newline."""
    return dump_json(report_document(report))


def dump_json(document: Mapping[str, object]) -> str:
    """Strict JSON of any document built from plain values, records' tuples, mappings and enums."""
    text = json.dumps(to_json(document), indent=2, ensure_ascii=False, allow_nan=False)
    # A lone surrogate has no UTF-8.
    return escaped_json(text.encode("utf-8", "replace").decode("utf-8")) + "\n"


def report_document(report: Report) -> dict[str, object]:
    """``report`` as plain values, before ``to_json``."""
    case = report.case
    further: dict[str, object] = {"debug_settings": DEBUG_SETTINGS} if report.command == "env" else {}
    if report.names is not None:
        further["names"] = {
            **pick_fields(report.names, "release servable"),
            "inputs": [_name_row(row) for row in report.names.inputs],
            "outputs": [_name_row(row) for row in report.names.outputs],
            "obstacles": report.names.obstacles,
        }
    further |= {
        name: value for name, value in pick_fields(report, "compat history samples").items() if value is not None
    }
    return {
        "schema": SCHEMA,
        "tool": {"name": "aotidoctor", "version": report.version, "argv": report.argv},
        "command": report.command,
        "started": report.started,
        "duration_s": report.seconds,
        **pick_fields(report, "verdict stage"),
        "diagnoses": [listed(diagnosis) for diagnosis in report.diagnoses],
        "findings": [{**listed(finding), "source": _source(finding.source)} for finding in report.findings],
        "not_checked": report.not_checked,
        "runs": [run_json(outcome) for outcome in report.runs],
        **pick_fields(report, "plan localization"),
        "artifact": artifact_json(case) if case.artifact.path else None,
        "contract": contract_json(case.contract, whole=report.command == "inspect"),
        "inputs": inputs_json(case),
        "host": host_json(case.host),
        **pick_fields(report, "signature fingerprint log interrupted out_of_time cannot_examine internal_error extra"),
        **further,
    }


def _source(source: Source | None) -> dict[str, object] | None:
    match source:
        case FileSource(file=file, line=line, column=column):
            return {"file": file, "line": line, **({"column": column} if column is not None else {})}
        case RunSource(run=run, stream=stream, line=line):
            return {"run": run, "stream": stream, "line": line}
        case None:
            return None


# A report that was written before, read back.
def read_saved_report(path: str) -> JsonObject:
    """The document. Raises CannotExamineError where the file is no report of ours."""
    return read_document(path, "a report of aotidoctor", SCHEMA)


def saved_case(report: JsonObject) -> Case:
    """Read the artifact and the host of a saved report, as far as they are well-formed."""
    from aotidoctor.model.record_json import read_fitting

    artifact = as_object(report.get("artifact"))
    named: JsonObject = {name: artifact.get(name) for name in ("path", "kind", "size")}
    texts = dict.fromkeys(("system", "machine", "python"), "")
    return Case(
        artifact=read_fitting(Artifact, named, {"path": "", "kind": ArtifactKind.OTHER, "size": 0}),
        host=read_fitting(Host, as_object(report.get("host")), texts),
    )
