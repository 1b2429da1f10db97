"""Apply the steps of a treatment to the payload, to the inputs, and to the loaded model.

Leaves are addressed by the user's path (``args[1]['a']``). A step that cannot be applied raises ``TreatmentError`` in
its stage: a treatment that was not applied must not look like one that did not help.

A package is repacked in the layout that the loader accepts: one top folder, no entries for directories, its marks.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import LoadedModel
from aotidoctor.worker.tensors import walk_call
from aotidoctor.worker.treatments.input_steps import LEAF_STEPS, TREE_STEPS, TreatmentError, describe_change
from aotidoctor.worker.weights import load_from_file, load_from_package, load_state

# A copy of the package.
TOP_FOLDER = "model"
_MARKS = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
_ROOTS = ("data/", ".data/", "extra/", "models/")


def repack(package: Path, target: Path) -> str:
    """Write a copy of the package with the proper layout; its path.

    Raises:
        TreatmentError: it cannot be read, has no compiled model, or there is no room for a copy.
    """
    try:
        with zipfile.ZipFile(package) as archive:
            members = {_tail(item.filename): item for item in reversed(archive.infolist()) if not item.is_dir()}
            if not any(name.startswith("data/aotinductor/") for name in members):
                raise TreatmentError("the archive has no compiled model in any folder")
            size = sum(item.file_size for item in members.values())
            if size > shutil.disk_usage(target.parent).free // 2:
                raise TreatmentError(f"a copy takes {size >> 20} MiB, too much for {target.parent}")
            with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
                for name, data in _MARKS.items():
                    copy.writestr(f"{TOP_FOLDER}/{name}", data)
                for name, item in members.items():
                    if name not in _MARKS:
                        with (
                            archive.open(item) as source,
                            copy.open(f"{TOP_FOLDER}/{name}", "w", force_zip64=True) as sink,
                        ):
                            shutil.copyfileobj(source, sink, 1 << 20)
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise TreatmentError(f"the package cannot be copied: {error}") from error
    return str(target)


def _tail(name: str) -> str:
    """The part of a member's name that has the same meaning in every package."""
    places = [at for root in _ROOTS if (at := f"/{name}".find(f"/{root}")) >= 0]
    return name[min(places) :] if places else name.rpartition("/")[2]


_RESULTS = frozenset({"put_nodes", "put_zeros"})
_WEIGHTS = frozenset({"load_weights", "fit_weights", "fill_weights"})
# Steps that are applied to the inputs, or once the setup or the model has been loaded.
_LATER = frozenset({"stand_in_operator", *_WEIGHTS, *_RESULTS, *LEAF_STEPS, *TREE_STEPS})

Step = dict[str, Any]


def _steps(payload: Run) -> Sequence[Step]:
    """The steps in order, typed by the fields that each is known to have."""
    return payload.treatment


def prepare_payload(payload: Run, channel: Channel) -> tuple[Run, list[str]]:
    """Apply the steps that change the payload or the process: the new payload, and notes of the steps."""
    applied: list[str] = []
    for step in _steps(payload):
        if step.get("op") not in _LATER:
            payload, note = _prepare_step(step, payload, channel)
            applied.append(note)
    return payload, applied


def _prepare_step(step: Step, payload: Run, channel: Channel) -> tuple[Run, str]:
    """The payload after one step, and a note."""
    package, code = channel.user_cwd / payload.package, payload.code
    match step.get("op"):
        case "threads":
            return replace(payload, threads=step["n"]), f"threads {step['n']}"
        case "model_name":
            return replace(payload, model_name=step["name"]), f"model_name {step['name']}"
        case "device":
            return replace(payload, device=step["device"], device_index=-1), f"device {step['device']}"
        case "setup":
            return replace(payload, code=replace(code, setup=step["path"])), f"setup {step['path']}"
        case "import":
            modules = step["modules"]
            code = replace(code, imports=(*code.imports, *modules))
            return replace(payload, code=code), f"import {', '.join(modules)}"
        case "tmpdir":
            os.environ["TMPDIR"] = str(channel.run_dir / "tmp")
            return payload, "tmpdir (a private, working one)"
        case "headers":
            _add_torch_folders()
            return payload, "headers (CPATH, LIBRARY_PATH)"
        case "global_libtorch":
            # It is loaded anyway; now its symbols are visible to all libraries.
            import ctypes

            library = Path(torch.__file__).parent / "lib" / "libtorch.so"
            try:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                raise TreatmentError(f"libtorch could not be loaded globally: {error}") from error
            return payload, "global_libtorch (RTLD_GLOBAL)"
        case "clear_execstack" | "repack" as op:
            target = channel.run_dir / (package.name if op == "clear_execstack" else f"repacked-{package.name}")
            copy = (_copy_without_execstack if op == "clear_execstack" else repack)(package, target)
            return replace(payload, package=copy), f"{op} (a copy of the package)"
        case name:
            raise TreatmentError(f"unknown treatment step: {name}")


def _add_torch_folders() -> None:
    """Add torch's headers and libraries to the folders that a compiler searches last."""
    folder = Path(torch.__file__).parent
    headers = folder / "include"
    own = {"CPATH": [headers, headers / "torch/csrc/api/include"], "LIBRARY_PATH": [folder / "lib"]}
    for name, folders in own.items():
        os.environ[name] = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get(name)])])


def _copy_without_execstack(package: Path, target: Path) -> str:
    """Copy the package without its request for an executable stack; the path of the copy."""
    from aotidoctor.readers.package.patched_copy import copy_patched, stack_patches

    patches = stack_patches(str(package))
    if not patches:
        raise TreatmentError("no shared object of the package requests an executable stack")
    copy_patched(str(package), str(target), patches)
    return str(target)


def replace_operators(payload: Run) -> list[str]:
    """Apply the steps that replace an operator, once the setup has registered it; notes of the steps."""
    steps = [step for step in _steps(payload) if step["op"] == "stand_in_operator"]
    if not steps:
        return []
    from aotidoctor.worker.operators.op_calls import stand_in_operator

    return [stand_in_operator(step["target"], payload.device) for step in steps]


def apply_steps(steps: Sequence[Step], call: ModelCall, applied: list[str]) -> ModelCall:
    """Apply the steps that change the inputs, in order; add a note of each to ``applied``."""
    for step in steps:
        if step["op"] in TREE_STEPS:
            args, kwargs, note = TREE_STEPS[step["op"]](step, call.args, call.kwargs)
            call = ModelCall(args=args, kwargs=kwargs)
        elif step["op"] in LEAF_STEPS:
            call, note = _apply_to_leaves(step, call)
        else:
            continue
        applied.append(note)
    return call


def changes_results(payload: Run) -> bool:
    """Whether a step replaces the results of a call of the compiled code."""
    return any(step["op"] in _RESULTS for step in _steps(payload))


def loads_weights_of(payload: Run) -> bool:
    """Whether a step loads the weights of the reference into the model."""
    return any(step["op"] == "load_weights" and step.get("from") == payload.reference for step in _steps(payload))


def load_weights(payload: Run, model: LoadedModel, channel: Channel) -> list[str]:
    """Apply the steps that load weights into the model; notes of the steps."""
    applied = []
    if payload.weights:
        load_from_file(model, channel.user_cwd / payload.weights)
    for step in _steps(payload):
        if step["op"] == "load_weights":
            source = step.get("from", "disk")
            if source == "disk":
                count = load_from_package(model, channel.user_cwd / payload.package, payload.model_name)
            else:
                count = load_from_file(model, channel.user_cwd / source)
            applied.append(f"loaded {count} weights from {source}")
        elif step["op"] == "fill_weights":
            zeros = {item["name"]: _zeros(item) for item in step["constants"]}
            model.load_constants(zeros, check_full_update=False)
            applied.append(f"loaded zeros for {', '.join(zeros)}")
    return applied


def _zeros(item: dict[str, Any]) -> Any:
    return torch.zeros(item["shape"], dtype=getattr(torch, item["dtype"]))


def fit_weights(payload: Run, given: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Weights to load instead of ``given``: without unknown names, cast, contiguous, from another file, or complete."""
    for step in _steps(payload):
        if step["op"] == "fit_weights":
            given = {name: value for name, value in given.items() if name not in step.get("drop", [])}
            given |= {name: given[name].to(getattr(torch, dtype)) for name, dtype in step.get("cast", {}).items()}
            given |= {name: given[name].contiguous() for name in step.get("contiguous", [])}
            if step.get("take"):
                source = load_state(channel.user_cwd / step["from"])
                given |= {name: source[name].detach() for name in step["take"] if name in source}
        elif step["op"] == "fill_weights":
            # A setup with a full update would be refused before the rest could be loaded.
            given = {**{item["name"]: _zeros(item) for item in step["constants"]}, **given}
    return given


def _apply_to_leaves(step: Step, call: ModelCall) -> tuple[ModelCall, str]:
    """Apply one step to the leaf at ``step["path"]``; ``*`` means each tensor."""
    wanted, change = step["path"], LEAF_STEPS[step["op"]]
    leaves = call.tensors() if wanted == "*" else walk_call(call.args, call.kwargs)
    paths = [path for path, _ in leaves if wanted in ("*", path)]
    if not paths:
        raise TreatmentError(f"no such leaf: {wanted}")
    notes: list[str] = []

    def visit(path: str, leaf: Any) -> Any:
        if path not in paths:
            return leaf
        new = change(step, leaf)
        notes.append(f"{step['op']} {path} {describe_change(leaf, new)}".rstrip())
        return new

    # Evaluated in this order: the notes are made on the way.
    return call.rebuilt(visit), "; ".join(notes)
