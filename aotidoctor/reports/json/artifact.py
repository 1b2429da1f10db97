"""What is in the file, as plain values for the JSON report. Long things are counted, not listed."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import Artifact, ModelEntry, SharedObject
from aotidoctor.model.case import Case

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from aotidoctor.model.stamp import StampSeen


NAMES_LISTED = 100
# Lists of members' names, of which a damaged archive may have very many.
_NAMED = "names_duplicate names_unsafe names_symlink names_directory bad_crc unread_crc oversized"


def record(value: DataclassInstance) -> dict[str, object]:
    """Field name to value, one level deep; ``dataclasses.asdict`` would copy, and fails on mapping proxies."""
    return {item.name: getattr(value, item.name) for item in fields(value)}


def picked(value: object, names: str) -> dict[str, object]:
    """The fields that ``names`` names, in that order."""
    return {name: getattr(value, name) for name in names.split()}


def artifact(case: Case) -> dict[str, object]:
    """What is in the file."""
    found: Artifact = case.artifact
    return {
        **picked(found, "path kind size sha256 prefix archive_version archive_format"),
        "n_members": len(found.members),
        "members": [picked(member, "name size crc") for member in found.members[:NAMES_LISTED]],
        "model_name": case.model.name if case.model is not None else None,
        "models": [_model(model) for model in found.models],
        "exported": [picked(facts, "name constant_inputs custom_ops ops") for facts in found.exported],
        **{name: getattr(found, name)[:NAMES_LISTED] for name in _NAMED.split()},
        **picked(found, "first_line link_target problem counts other_contents"),
        **({"stamp": _stamp(case.stamp)} if case.stamp is not None else {}),
    }


def _stamp(seen: StampSeen) -> dict[str, object]:
    """What the package states of its origin; its hashes are counted."""
    stamp = seen.stamp
    told = picked(seen, "member problem")
    if stamp is None:
        return told
    return {
        **told,
        **picked(stamp, "torch compiler python program"),
        **picked(stamp.facts, "ranges constant_inputs"),
        "sample": stamp.sample,
        "n_weights": len(stamp.weights),
        "weights_equal": seen.equal,
        "weights_differing": seen.differing[:NAMES_LISTED],
        "left_out": stamp.left_out,
    }


def _model(model: ModelEntry) -> dict[str, object]:
    return {
        **picked(model, "name layout"),
        "n_members": len(model.members),
        "size": sum(member.size for member in model.members),
        "shared_objects": [_shared_object(item) for item in model.shared_objects],
        "wrapper_member": model.wrapper_member,
        "wrapper_lines": model.wrapper_cpp.count("\n") if model.wrapper_cpp is not None else None,
        "n_kernel_sources": len(model.kernel_sources),
        "metadata": [picked(m, "member values problem") for m in model.metadata],
        **picked(model, "extern_member extern_problem"),
        "extern_ops": [picked(node, "name target") for node in model.extern_nodes[:NAMES_LISTED]],
        "n_extern_ops": len(model.extern_nodes),
        "gpu_code": model.gpu_code[:NAMES_LISTED],
        "n_gpu_code": len(model.gpu_code),
        **picked(model, "gpu_targets weights_location cpp_only"),
    }


def _shared_object(item: SharedObject) -> dict[str, object]:
    return {
        **picked(item, "member format size machine bits type needed runpath"),
        "n_undefined": len(item.undefined),
        "n_kernel_symbols": len(item.kernel_symbols),
        "entry_points": item.defined_entry_points[:NAMES_LISTED],
        **picked(item, "constants_span features has_debug_lines executable_stack truncated_at problem"),
    }
