"""Constants of a loaded model: read them back, load them from where they were left, compare them with a reference.

The package loader has no way to read constants. They are read from the file of the library that the loader has just
unpacked (``stored_constants``) or, where that cannot be done, from a second container made of it; both show what the
package ships, not what was loaded afterwards.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.describe import describe, dtype_name, storage
from aotidoctor.worker.library import exports
from aotidoctor.worker.load import LoadedModel, load_library
from aotidoctor.worker.safetensors_file import load_safetensors
from aotidoctor.worker.stored_constants import StoredConstants, stored_constants
from aotidoctor.worker.weight_differences import difference

MAX_LIBRARY_BYTES = 2 * 1024 * 1024 * 1024


def read_constants(model: LoadedModel, payload: Run, *, loaded: bool = False) -> tuple[Mapping[str, Any], Any]:
    """Original name -> tensor, and the runner that owns the memory (keep it as long as the tensors).

    They are those that the package ships; those that a setup loaded stand in their stead. Where they can be read from
    the file each is read when it is asked for, unless they are to be ``loaded`` again.

    Raises:
        LookupError: there is no way to read them; the text says why.
    """
    try:
        shipped, owner = _read_shipped(model, payload, loaded=loaded)
    except (LookupError, RuntimeError, OSError):
        if not model.given:
            raise
        return dict(model.given), None
    return ChainMap(model.given, shipped), owner  # type: ignore[arg-type]  # Nobody writes to it.


def compare_shipped(model: LoadedModel, payload: Run, theirs: dict[str, Any]) -> list[dict[str, Any]]:
    """``compare_weights`` with the constants of the package; raises what ``read_constants`` does.

    What the file says to be other weights is looked at again in a container: only that knows for sure how they lie.
    """
    constants, owner = read_constants(model, payload)
    try:
        facts = compare_weights(constants, theirs)
    except (TypeError, ValueError, AttributeError, OSError, RuntimeError):
        if owner is not None:
            raise
        facts = [{"equal": False}]
    if owner is None and any(fact["equal"] is False for fact in facts):
        constants, owner = read_constants(model, payload, loaded=True)
        facts = compare_weights(constants, theirs)
    del constants, owner
    return facts


def _read_shipped(
    model: LoadedModel, payload: Run, *, loaded: bool
) -> tuple[MutableMapping[str, Any] | StoredConstants, Any]:
    bare = hasattr(model.loader, "extract_constants_map")
    library = _library(model, payload)
    if not exports(library, "ExtractConstantsMap"):
        raise LookupError("a library of a torch before 2.8 does not hand out its constants")
    if bare:
        return dict(model.loader.extract_constants_map(False)), model.loader
    stored = None if loaded else stored_constants(library, model.get_constant_fqns(), payload.stored)
    if stored is not None:
        return stored, None
    if library.stat().st_size > MAX_LIBRARY_BYTES:
        raise LookupError("the library is too big to be opened twice")
    device = model.get_metadata().get("AOTI_DEVICE_KEY", "cpu")
    runner = load_library(library, device, payload.device_index, library.parent)
    if not hasattr(runner, "extract_constants_map"):
        raise LookupError("this torch cannot read constants back: 2.8 and later can")
    return dict(runner.extract_constants_map(False)), runner


def describe_constants(model: LoadedModel, payload: Run) -> dict[str, Any]:
    """Part of the result: ``constants`` (one object each, with value counts), none where they cannot be read."""
    try:
        constants, owner = read_constants(model, payload)
    except (LookupError, RuntimeError, OSError):
        return {"constants": []}
    facts = [_constant(name, tensor) for name, tensor in constants.items()]
    del constants, owner
    return {"constants": facts}


def load_from_package(model: LoadedModel, package: Path, model_name: str) -> int:
    """Load the weights that lie beside the library in the package, as ``load_weights_from_disk=True`` does."""
    import torch

    files = _read_members(package)
    configs = [name for name in files if name.endswith("weights_config.json") and f"/{model_name}/" in name]
    if not configs:
        raise LookupError(f"the package has no weights_config.json for model {model_name}")
    loaded: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for name, (file, shape, stride, offset) in json.loads(files[configs[0]]()).items():
        if file not in loaded:
            member = next(known for known in files if known.endswith(f"/data/weights/{file}"))
            loaded[file] = torch.load(io.BytesIO(files[member]()), weights_only=True)
        weights[name] = loaded[file].as_strided(shape, stride, offset)
    model.load_constants(weights, check_full_update=True, user_managed=True)
    return len(weights)


def load_from_file(model: LoadedModel, path: Path) -> int:
    """Load the model's constants out of an exported program or a state dict."""
    source = state_of(path)
    weights = {name: source[name].detach() for name in model.get_constant_fqns() if name in source}
    model.load_constants(weights, check_full_update=True, user_managed=True)
    return len(weights)


def state_of(path: Path) -> dict[str, Any]:
    """Name -> tensor of an exported program (parameters, buffers, constants) or of a saved state dict."""
    import torch

    if path.suffix == ".safetensors":
        return load_safetensors(path)
    try:
        saved = torch.load(path, weights_only=True)
    except Exception:
        program = torch.export.load(str(path))
        return tensors_of(program)
    return {str(name): value for name, value in saved.items() if isinstance(value, torch.Tensor)}


def tensors_of(program: Any) -> dict[str, Any]:
    """Name -> tensor of all that an exported program holds."""
    import torch

    held = {**program.state_dict, **program.constants}
    return {name: value for name, value in held.items() if isinstance(value, torch.Tensor)}


def compare_weights(ours: Mapping[str, Any], theirs: dict[str, Any]) -> list[dict[str, Any]]:
    """One object per constant of either side: ``name``, ``equal`` (None if only one side has it), ``what`` differs.

    The kinds of ``what`` are those of ``weight_differences``, and "not in the reference", "not in the package".
    """
    only = [{"name": name, "equal": None, "what": "not in the reference"} for name in ours if name not in theirs]
    only += [{"name": name, "equal": None, "what": "not in the package"} for name in theirs if name not in ours]
    return [*(difference(name, ours[name], theirs[name]) for name in ours if name in theirs), *only]


def _constant(name: str, tensor: Any) -> dict[str, Any]:
    facts = describe(name, tensor, values=True)
    return {"name": facts.pop("path"), **facts}


def _library(model: LoadedModel, payload: Run) -> Path:
    """The library of the model: the unpacked one of a package."""
    if payload.kind == "bare-so":
        return model.directory / Path(payload.package).name
    found = sorted(model.directory.glob(f"**/data/aotinductor/{payload.model_name}/*.so"))
    if not found:
        raise LookupError("the unpacked library was not found")
    return found[0]


def _read_members(package: Path) -> dict[str, Any]:
    """Member name (with a leading slash) -> a function that reads it, of an archive or a directory."""
    if package.is_dir():
        return {f"/{item.relative_to(package)}": item.read_bytes for item in package.rglob("*") if item.is_file()}
    archive = zipfile.ZipFile(package)
    return {f"/{name}": (lambda name=name: archive.read(name)) for name in archive.namelist()}


def describe_given(constants: dict[str, Any]) -> list[dict[str, Any]]:
    """Metadata of weights that somebody is about to load: name, dtype, shape, stride, device.

    ``same_as`` are the other names under which the very same memory is given: tied weights.
    """
    names: dict[tuple[int, int], list[str]] = {}
    for name, value in constants.items():
        # What has no memory, as on the meta device, shares none.
        if hasattr(value, "stride") and value.numel() and storage(value):
            names.setdefault((storage(value), value.data_ptr()), []).append(str(name))
    return [
        {
            "name": str(name),
            "same_as": [one for one in names.get((storage(value), value.data_ptr()), []) if one != str(name)],
            "dtype": dtype_name(value),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "device": str(value.device),
        }
        for name, value in constants.items()
        if hasattr(value, "stride")
    ]
