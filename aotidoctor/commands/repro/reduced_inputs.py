"""Reduce what a repro needs: no values, some elements, or whole tensors; a package without needless weights."""

from __future__ import annotations

import io
import math
import random
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from aotidoctor.commands.repro.attempts import VALUES_FILE, Bench
from aotidoctor.commands.repro.repro_script import Recipe, quote_text, tree_text, value_text
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import InputSet, TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis
from aotidoctor.model.torch_names import contiguous_stride
from aotidoctor.readers.package.constants import constants_bytes

# A copy of the package, without what the failure does not need.

ZEROED, RANDOM, UNCHANGED = "zeroed", "random", "kept"
# Larger ones are not taken apart: they would have to be in memory whole.
LIMIT = 2 << 30
_NOT_NEEDED = re.compile(r"(?:^|/)(?:data/sample_inputs|models|extra)/")
_WEIGHT_FILE = re.compile(r"(?:^|/)data/weights/(?!.*\.json$)")
_BLOCK = 4096


def can_strip(case: Case) -> str | None:
    """Why the package is copied as it is; None where its weights can be taken out."""
    if case.artifact.kind is not ArtifactKind.AOTI_PACKAGE or case.model is None:
        return "it is not a package that can be rewritten"
    if case.artifact.size > LIMIT:
        return f"it is larger than {LIMIT >> 30} GiB"
    if case.model.weights_location not in ("so", "mmap", "blob", "disk", "external", "none"):
        return f"the location of its weights is unknown ({case.model.weights_location})"
    return None


def copy_package(case: Case, target: Path, weights: str) -> str:
    """Write the package with its weights zeroed, random or kept; what was done, in words.

    Raises:
        OSError, ValueError: it cannot be done.
    """
    if weights == UNCHANGED:
        shutil.copyfile(case.artifact.path, target)
        return "kept"
    location = case.model.weights_location if case.model is not None else ""
    whole = _constants(case, location)
    if location in ("so", "mmap", "blob") and not whole and _own(case):
        raise ValueError("the bytes of its weights were not found")
    new = _filled(whole, _own(case), weights)
    done = 0
    with zipfile.ZipFile(case.artifact.path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as made:
        for info in source.infolist():
            if _NOT_NEEDED.search(info.filename):
                continue
            data = source.read(info)
            if whole and info.filename.endswith((".so", ".blob")):
                done += data.count(whole)
                data = data.replace(whole, new)
            elif location == "disk" and _WEIGHT_FILE.search(info.filename):
                data, done = _blank_file(data), done + 1
            made.writestr(zipfile.ZipInfo(info.filename), data)
    if whole and not done:
        raise ValueError("the bytes of its weights were not found in it")
    if not done:
        return "it ships none"
    return "zeroed" if weights == ZEROED else "random floating-point values; integers kept"


def _own(case: Case) -> list[ConstantSpec]:
    constants = case.contract.constants if case.contract is not None else ()
    return [one for one in constants if not one.from_folded]


def _constants(case: Case, location: str) -> bytes:
    if case.model is None or location not in ("so", "mmap", "blob"):
        return b""
    return constants_bytes(case.artifact, case.model, location, LIMIT)


def _filled(whole: bytes, constants: list[ConstantSpec], weights: str) -> bytes:
    if weights == ZEROED:
        return bytes(len(whole))
    new, sizes = bytearray(whole), [one.data_size or 0 for one in constants]
    for one, start, size in zip(constants, accumulate([0, *sizes]), sizes, strict=False):
        pattern = _pattern(one.dtype or "")
        if pattern:
            new[start : start + size] = (pattern * (size // len(pattern) + 1))[:size]
    return bytes(new)


def _pattern(dtype: str) -> bytes:
    """Small random numbers of a floating-point dtype; empty for others."""
    numbers = [random.Random(at).uniform(-0.1, 0.1) for at in range(_BLOCK)]  # noqa: S311 - no secret
    match dtype:
        case "float32" | "complex64":
            return struct.pack(f"<{_BLOCK}f", *numbers)
        case "float64" | "complex128":
            return struct.pack(f"<{_BLOCK}d", *numbers)
        case "float16":
            return struct.pack(f"<{_BLOCK}e", *numbers)
        case "bfloat16":
            return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return b""


def _blank_file(data: bytes) -> bytes:
    """A file of ``torch.save`` with zeros for its storages."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return data
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        for info in source.infolist():
            content = source.read(info)
            blank = re.search(r"(?:^|/)data/\d+$", info.filename) is not None
            made.writestr(zipfile.ZipInfo(info.filename), bytes(len(content)) if blank else content)
    return out.getvalue()


# The fewest values of the inputs.

# More single values than this in a script are better read as a tensor.
FEW, SMALL, MOST = 8, 64, 65536


@record
class Reduced:
    """A recipe that fails alike, and what of the inputs is in it, in words."""

    recipe: Recipe
    said: str
    values: tuple[str, ...] = ()


def with_inputs(recipe: Recipe, inputs: InputSet, given: dict[str, str], patches: Sequence[str] = ()) -> Recipe:
    """The recipe with a call; ``given`` are expressions of leaves that are not made up."""
    args, kwargs = (tree_text(tree, name, given) for tree, name in ((inputs.args, "args"), (inputs.kwargs, "kwargs")))
    values = VALUES_FILE if any(text.startswith("given[") for text in given.values()) else None
    return replace(recipe, args=args, kwargs=kwargs, patches=tuple(patches), values=values)


def whole_tensors(inputs: InputSet, paths: Sequence[str] | None = None) -> dict[str, str]:
    """All tensors, or those named, out of the file of values."""
    return {path: f"given[{quote_text(path)}]" for path, _ in inputs.tensors() if paths is None or path in paths}


def reduce_inputs(
    bench: Bench, recipe: Recipe, inputs: InputSet, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> Reduced | None:
    """The first of the attempts that fails alike, from nothing to everything; None when none does."""
    for attempt in _attempts(bench, recipe, inputs, diagnoses, findings):
        if bench.fails_alike(attempt.recipe, attempt.said):
            return attempt
    return None


def _attempts(
    bench: Bench, recipe: Recipe, inputs: InputSet, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> Iterator[Reduced]:
    yield Reduced(recipe=with_inputs(recipe, inputs, {}), said="generated, with the same metadata; none of your values")
    # The tensors, those that a diagnosis or its evidence names first.
    texts = [diagnoses[0].subject or ""] if diagnoses else []
    texts += [str(item.facts.get("path") or item.subject or "") for item in findings]
    leaves = sorted(inputs.tensors(), key=lambda one: next((at for at, text in enumerate(texts) if one[0] in text), 99))
    for elements in _blamed_elements(findings):
        patches = [f"{place} = {value_text(value)}" for place, value in elements]
        said = f"made up, except for {elements[0][0].removesuffix('[()]')}"
        yield Reduced(recipe=with_inputs(recipe, inputs, {}, patches), said=said)
    for path, tensor in leaves[:4]:
        yield from _of_leaf(bench, recipe, inputs, path, tensor)
    for path, _ in leaves:
        given = whole_tensors(inputs, [path])
        yield Reduced(
            recipe=with_inputs(recipe, inputs, given), said=f"made up, except for {path} whole", values=(path,)
        )
    paths = tuple(path for path, _ in leaves)
    yield Reduced(recipe=with_inputs(recipe, inputs, whole_tensors(inputs)), said="all of your tensors", values=paths)


def _blamed_elements(findings: Sequence[Evidence]) -> Iterator[list[tuple[str, float | bool]]]:
    """The element that the blame chain ends at."""
    for item in findings:
        place, value = item.facts.get("element"), item.facts.get("value")
        if item.code == "AD-RUN-022" and isinstance(place, str) and isinstance(value, int | float):
            yield [(f"{place}[()]" if not item.facts.get("index") else place, value)]


def _of_leaf(bench: Bench, recipe: Recipe, inputs: InputSet, path: str, tensor: TensorDesc) -> Iterator[Reduced]:
    """Single elements of one tensor: its extremes, then what halving leaves of it; then all of a small one."""
    values = tensor.elements() if tensor.elements is not None and tensor.numel <= MOST else None
    if not values or tensor.layout != "strided" or tensor.quantized:
        return

    def attempt(chosen: Sequence[int]) -> Reduced:
        patches = [f"{path}{element_index(tensor.shape, at)} = {value_text(values[at])}" for at in chosen]
        said = f"made up, except for {len(chosen)} value{'s' if len(chosen) > 1 else ''} of {path}"
        return Reduced(recipe=with_inputs(recipe, inputs, {}, patches), said=said)

    for at in dict.fromkeys(extreme_elements(values)):
        yield attempt([at])
    if len(values) <= SMALL:
        text = f"torch.tensor({nested_list(values, tensor.shape)}, dtype=torch.{tensor.dtype})"
        if tensor.stride is not None and not (
            tensor.stride == contiguous_stride(tensor.shape) and not tensor.conj and not tensor.neg
        ):
            return
        small = Reduced(recipe=with_inputs(recipe, inputs, {path: text}), said=f"made up, except for {path}")
        if not bench.fails_alike(small.recipe, small.said):
            return
        fewer = smallest_failing_half(
            len(values), lambda chosen: bench.fails_alike(attempt(chosen).recipe, attempt(chosen).said)
        )
        yield attempt(fewer) if len(fewer) <= FEW else small


def smallest_failing_half(count: int, fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """The smallest half of a half that still fails alone."""
    kept = list(range(count))
    while len(kept) > 1:
        middle = len(kept) // 2
        half = next((part for part in (kept[:middle], kept[middle:]) if fails(part)), None)
        if half is None:
            return kept
        kept = half
    return kept


def extreme_elements(values: Sequence[int] | Sequence[float]) -> Iterator[int]:
    """Where NaN, Inf, the least and the largest stand."""
    finite = [at for at, value in enumerate(values) if math.isfinite(value)]
    known = set(finite) if len(finite) < len(values) else None
    if known is not None:
        yield next(at for at in range(len(values)) if at not in known)
    if finite:
        yield min(finite, key=lambda at: values[at])
        yield max(finite, key=lambda at: values[at])


def element_index(shape: tuple[int, ...], flat: int) -> str:
    """The index of an element that is known by its place in row-major order."""
    places: list[int] = []
    for size in reversed(shape):
        places.insert(0, flat % size)
        flat //= size
    return f"[{', '.join(map(str, places))}]" if places else "[()]"


def nested_list(values: Sequence[int] | Sequence[float], shape: tuple[int, ...]) -> str:
    """Values in row-major order as nested lists."""
    if not shape:
        return value_text(values[0])
    step = len(values) // shape[0] if shape[0] else 0
    return f"[{', '.join(nested_list(values[at * step : (at + 1) * step], shape[1:]) for at in range(shape[0]))}]"
