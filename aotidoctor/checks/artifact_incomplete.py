"""A member that the loader or the model needs is not in the package.

What it does
    For the model that would be loaded, looks for a shared object (or sources to compile), the metadata file that the
    loader opens, the list of custom operator calls, and the file with the weights.

Why it matters
    The messages name something else: without the .so the loader tries to compile and reports a missing
    kernel_compile_flags.json; without the list of operator calls the load succeeds and the first run fails.

Example:
    data/aotinductor/model: observed no .so, expected one shared object

When it is wrong
    An older torch may look for a different metadata file from the one named here.
"""

from __future__ import annotations

import re

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, is_package, loader_metadata
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource, plural, shorten
from aotidoctor.model.other_artifacts import FORMS, ExecutorchFile, Precompiled

FIND = Finder("AD-ART-008", "artifact_incomplete")
PROXY = "aoti_torch_proxy_executor_call_function"
_CALL = re.compile(PROXY + r"\(\s*proxy_executor\s*,\s*(\d+)")


def run(case: Case) -> Observations:
    """One finding per missing member."""
    if case.artifact.executorch is not None:
        yield from _code(case.artifact.executorch)
        return
    if case.artifact.precompiled is not None:
        yield from _precompiled(case.artifact.path, case.artifact.precompiled)
        return
    if case.model is None or not is_package(case):
        yield FIND.unchecked(NO_MODEL)
        return
    model = case.model
    if not model.shared_objects and not model.cpp_only:
        sources = ", and sources without the flags to compile them" if model.wrapper_cpp else ""
        yield FIND.error(
            "no-so",
            _folder(model),
            observed=f"no .so{sources}",
            expected="one shared object",
            source=at_member(case, model.wrapper_member),
            facts={"model": model.name},
        )
    wanted, metadata = loader_metadata(model)
    if metadata is None and wanted is not None:
        yield FIND.error(
            "no-metadata",
            wanted,
            observed="no such member",
            expected="the metadata that the loader reads first",
            source=at_member(case, None),
            facts={"model": model.name, "others": len(model.metadata)},
        )
    yield from _extern(case, model)
    yield from _weights(case, model)


def _code(program: ExecutorchFile) -> Observations:
    """The code of AOTInductor is always in the .pte itself."""
    wanted = dict.fromkeys(delegate.code_key for delegate in program.delegates)
    missing = [] if program.problem else [key for key in wanted if key is not None and key not in program.keys]
    for key in missing:
        yield FIND.error(
            "no-code",
            shorten(key, 90),
            observed="no data with this key in the .pte",
            expected="the code of the delegate",
            message=f"{program.path}: a delegate names the code {shorten(key, 90)}, which the file does not hold: "
            "ExecuTorch cannot initialize it (0x20)",
            source=FileSource(file=program.path),
            facts={"key": key, "what": "program"},
        )


def _precompiled(path: str, found: Precompiled) -> Observations:
    """Parts of an artifact of torch.compile that are not there, and paths that lead out of it."""
    source, what = FileSource(file=path), FORMS[found.form]
    for name in found.missing[:20]:
        yield FIND.error(
            "no-part",
            shorten(name, 90),
            observed="not there" if ": " not in name else name.partition(": ")[2],
            expected=f"what the loader of {what} reads",
            message=f"{path}: {name}",
            source=source,
            facts={"what": "artifact", "form": found.form},
        )
    if found.stale:
        yield FIND.warn(
            "stale-path",
            shorten(found.stale[0], 90),
            observed=f"{plural(len(found.stale), 'path')} that lead out of this folder",
            expected="paths within it: the folder was moved, and vLLM loads by the old path",
            source=source,
            facts={"what": "folder", "paths": found.stale[:20]},
        )


def _folder(model: ModelEntry) -> str:
    return f"data/aotinductor/{model.name}"


def _extern(case: Case, model: ModelEntry) -> Observations:
    calls = [int(number) for number in _CALL.findall(model.wrapper_cpp or "")]
    linked = any(ref.name == PROXY for item in model.shared_objects for ref in item.undefined)
    needed = max(calls) + 1 if calls else int(linked and model.wrapper_cpp is None)
    if not needed or (len(model.extern_nodes) >= needed and not model.extern_problem):
        return
    if model.extern_problem:
        observed = model.extern_problem
    else:
        observed = "no such member" if model.extern_member is None else f"{len(model.extern_nodes)} operator calls"
    stem = (model.wrapper_member or f"{_folder(model)}/wrapper.cpp").rpartition(".")[0]
    yield FIND.error(
        "no-extern-json",
        model.extern_member or f"{stem}.json",
        observed=observed,
        expected=f"at least {needed} operator call{'s' if needed > 1 else ''} for the proxy executor",
        source=at_member(case, model.wrapper_member),
        facts={"model": model.name, "calls": needed, "nodes": len(model.extern_nodes)},
    )


def _weights(case: Case, model: ModelEntry) -> Observations:
    names = [member.name for member in case.artifact.members]
    blob = any(name.endswith(".blob") for name in names)
    if model.weights_location == "disk" and not any("data/weights/" in name for name in names):
        wanted = "data/weights/"
    elif (
        model.weights_location in {"blob", "external"}
        and not blob
        and any(item.constants_span == 8 for item in model.shared_objects)
    ):
        wanted = f"{_folder(model)}/*.blob"
    else:
        return
    yield FIND.error(
        "no-weights-file",
        wanted,
        observed="no such member",
        expected="the weights that the package was built to read from there",
        source=at_member(case, None),
        facts={"model": model.name, "weights": model.weights_location},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
