"""The members of an archive or a directory, put together: kind, markers, models, exported programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.artifact import Artifact, ArtifactKind, ExportedFacts, ModelEntry
from aotidoctor.readers.package.item import Item
from aotidoctor.readers.package.layout import (
    common_prefix,
    marker,
    model_layout,
    models_of,
    other_contents,
    programs_of,
    zip_kind,
)
from aotidoctor.readers.package.models import Counts, build_model

# A package has a handful of models; more is an attack.
MAX_MODELS = 64


def with_contents(base: Artifact, items: Sequence[Item]) -> Artifact:
    """Add kind, prefix, markers, models and programs to an artifact whose members are known."""
    names = [item.name for item in items]
    kind = zip_kind(names)
    counts = dict(base.counts)
    models = _models(items, names, counts)
    prefix = common_prefix(names) or next((model.root for model in models if model.root), None)
    version = marker(items, prefix, "archive_version")
    if version is None and kind is ArtifactKind.AOTI_PACKAGE:
        version = marker(items, None, "version")
    return replace(
        base,
        kind=kind,
        problem=base.problem or _without_model(kind, names),
        other_contents=other_contents(names),
        prefix=prefix,
        archive_version=version,
        archive_format=marker(items, prefix, "archive_format"),
        models=models,
        exported=read_programs(items, counts),
        counts=counts,
    )


def _without_model(kind: ArtifactKind, names: Sequence[str]) -> str | None:
    """What an archive is that only looks like a package: one for another runtime."""
    if kind is ArtifactKind.ZIP and any("data/executorch/" in name for name in names):
        return "a PT2 archive for ExecuTorch"
    return None


def read_programs(items: Sequence[Item], counts: Counts) -> tuple[ExportedFacts, ...]:
    """Facts of every exported program that parses; the others are counted."""
    programs = programs_of(items)[:MAX_MODELS]
    if not programs:
        return ()
    from aotidoctor.readers.package.exported import MAX_JSON, parse_exported  # noqa: PLC0415 - a package has none

    found = []
    for name, item in programs:
        data = item.read(MAX_JSON)
        facts = parse_exported(name, data) if data is not None else None
        if facts is None:
            counts["unread_programs"] = counts.get("unread_programs", 0) + 1
        else:
            found.append(facts)
    return tuple(found)


def _models(items: Sequence[Item], names: Sequence[str], counts: Counts) -> tuple[ModelEntry, ...]:
    found = list(models_of(items).items())
    if len(found) > MAX_MODELS:
        counts["unread_models"] = len(found) - MAX_MODELS
    top = {name for name in names if "/" not in name}
    return tuple(
        build_model(name, model_layout(root, top, [item.name for item in members]), root, members, counts)
        for (root, name), members in found[:MAX_MODELS]
    )
