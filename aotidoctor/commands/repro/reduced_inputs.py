"""Reduce the data of a repro: no values, some elements, or whole tensors; a package without needless weights."""

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

# A copy of the package, without parts that the failure does not need.
ZEROED, RANDOM, UNCHANGED = "zeroed", "random", "kept"
# Limit in bytes: a package must fit in memory to be rewritten.
LIMIT = 2 << 30
_NOT_NEEDED = re.compile(r"(?:^|/)(?:data/sample_inputs|models|extra)/")
_WEIGHT_FILE = re.compile(r"(?:^|/)data/weights/(?!.*\.json$)")
_BLOCK = 4096
_FORMATS = {"float32": "f", "complex64": "f", "float64": "d", "complex128": "d", "float16": "e"}


def can_strip(case: Case) -> str | None:
    """The reason to copy the package unchanged; None if its weights can be replaced."""
    if case.artifact.kind is not ArtifactKind.AOTI_PACKAGE or case.model is None:
        return "it is not a package that can be rewritten"
    if case.artifact.size > LIMIT:
        return f"it is larger than {LIMIT >> 30} GiB"
    if case.model.weights_location not in ("so", "mmap", "blob", "disk", "external", "none"):
        return f"the location of its weights is unknown ({case.model.weights_location})"
    return None


def copy_package(case: Case, target: Path, weights: str) -> str:
    """Write the package with its weights zeroed, random or kept; return a phrase that describes the result.

    Raises:
        OSError, ValueError: that is impossible.
    """
    if weights == UNCHANGED:
        shutil.copyfile(case.artifact.path, target)
        return "kept"
    location = case.model.weights_location if case.model is not None else ""
    whole = b""
    if case.model is not None and location in ("so", "mmap", "blob"):
        whole = constants_bytes(case.artifact, case.model, location, LIMIT)
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


def _filled(whole: bytes, constants: list[ConstantSpec], weights: str) -> bytes:
    if weights == ZEROED:
        return bytes(len(whole))
    # Small random numbers for floating-point dtypes; integers are kept.
    numbers = [random.Random(at).uniform(-0.1, 0.1) for at in range(_BLOCK)]  # noqa: S311 - not a secret
    patterns = {dtype: struct.pack(f"<{_BLOCK}{letter}", *numbers) for dtype, letter in _FORMATS.items()}
    patterns["bfloat16"] = b"".join(struct.pack("<f", number)[2:] for number in numbers)
    new, sizes = bytearray(whole), [one.data_size or 0 for one in constants]
    for one, start, size in zip(constants, accumulate([0, *sizes]), sizes, strict=False):
        if pattern := patterns.get(one.dtype or ""):
            new[start : start + size] = (pattern * (size // len(pattern) + 1))[:size]
    return bytes(new)


def _blank_file(data: bytes) -> bytes:
    """Zero the storages of a file of ``torch.save``."""
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
# Most single values in a script, values of a tensor literal, and values of a tensor to search.
FEW, SMALL, MOST = 8, 64, 65536


@record
class Reduced:
    """A recipe with the same failure, and a phrase about the inputs in it."""

    recipe: Recipe
    text: str
    values: tuple[str, ...] = ()


def with_inputs(recipe: Recipe, inputs: InputSet, given: dict[str, str], patches: Sequence[str] = ()) -> Recipe:
    """Add a call to the recipe; ``given`` are expressions of leaves that are not made up."""
    args, kwargs = (tree_text(tree, name, given) for tree, name in ((inputs.args, "args"), (inputs.kwargs, "kwargs")))
    values = VALUES_FILE if any(text.startswith("given[") for text in given.values()) else None
    return replace(recipe, args=args, kwargs=kwargs, patches=tuple(patches), values=values)


def whole_tensors(inputs: InputSet, paths: Sequence[str] | None = None) -> dict[str, str]:
    """Expressions that read all tensors, or those at ``paths``, from the file of values."""
    return {path: f"given[{quote_text(path)}]" for path, _ in inputs.tensors() if paths is None or path in paths}


def reduce_inputs(
    bench: Bench, recipe: Recipe, inputs: InputSet, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> Reduced | None:
    """The first attempt with the same failure, from no values to all of them; None if there is none."""
    for attempt in _attempts(bench, recipe, inputs, diagnoses, findings):
        if bench.fails_alike(attempt.recipe, attempt.text):
            return attempt
    return None


def _attempts(
    bench: Bench, recipe: Recipe, inputs: InputSet, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> Iterator[Reduced]:
    yield Reduced(recipe=with_inputs(recipe, inputs, {}), text="generated, with the same metadata; none of your values")
    # The tensors, beginning with those that a diagnosis or its evidence names.
    texts = [diagnoses[0].subject or ""] if diagnoses else []
    texts += [str(item.facts.get("path") or item.subject or "") for item in findings]
    leaves = sorted(inputs.tensors(), key=lambda one: next((at for at, text in enumerate(texts) if one[0] in text), 99))
    for item in findings:
        # The element at the end of a chain of blame.
        place, value = item.facts.get("element"), item.facts.get("value")
        if item.code == "AD-RUN-022" and isinstance(place, str) and isinstance(value, int | float):
            patch = f"{place if item.facts.get('index') else place + '[()]'} = {value_text(value)}"
            blamed = with_inputs(recipe, inputs, {}, [patch])
            yield Reduced(recipe=blamed, text=f"made up, except for {place.removesuffix('[()]')}")
    for path, tensor in leaves[:4]:
        yield from _of_leaf(bench, recipe, inputs, path, tensor)
    for path, _ in leaves:
        given = whole_tensors(inputs, [path])
        yield Reduced(
            recipe=with_inputs(recipe, inputs, given), text=f"made up, except for {path} whole", values=(path,)
        )
    paths = tuple(path for path, _ in leaves)
    yield Reduced(recipe=with_inputs(recipe, inputs, whole_tensors(inputs)), text="all of your tensors", values=paths)


def _of_leaf(bench: Bench, recipe: Recipe, inputs: InputSet, path: str, tensor: TensorDesc) -> Iterator[Reduced]:
    """Try single elements of one tensor: its extremes, then the smallest failing half of a small tensor."""
    values = tensor.elements() if tensor.elements is not None and tensor.numel <= MOST else None
    if not values or tensor.layout != "strided" or tensor.quantized:
        return

    def attempt(chosen: Sequence[int]) -> Reduced:
        patches = [f"{path}{element_index(tensor.shape, at)} = {value_text(values[at])}" for at in chosen]
        text = f"made up, except for {len(chosen)} value{'s' if len(chosen) > 1 else ''} of {path}"
        return Reduced(recipe=with_inputs(recipe, inputs, {}, patches), text=text)

    for at in dict.fromkeys(extreme_elements(values)):
        yield attempt([at])
    if len(values) <= SMALL:
        text = f"torch.tensor({nested_list(values, tensor.shape)}, dtype=torch.{tensor.dtype})"
        if tensor.stride is not None and not (
            tensor.stride == contiguous_stride(tensor.shape) and not tensor.conj and not tensor.neg
        ):
            return
        small = Reduced(recipe=with_inputs(recipe, inputs, {path: text}), text=f"made up, except for {path}")
        if not bench.fails_alike(small.recipe, small.text):
            return
        fewer = smallest_failing_half(
            len(values), lambda chosen: bench.fails_alike(attempt(chosen).recipe, attempt(chosen).text)
        )
        yield attempt(fewer) if len(fewer) <= FEW else small


def smallest_failing_half(count: int, fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Halve the elements as long as one half fails alone; their indices."""
    left = list(range(count))
    while len(left) > 1:
        middle = len(left) // 2
        half = next((part for part in (left[:middle], left[middle:]) if fails(part)), None)
        if half is None:
            return left
        left = half
    return left


def extreme_elements(values: Sequence[int] | Sequence[float]) -> Iterator[int]:
    """Indices of the first NaN or Inf, the least and the largest finite value."""
    finite = [at for at, value in enumerate(values) if math.isfinite(value)]
    known = set(finite) if len(finite) < len(values) else None
    if known is not None:
        yield next(at for at in range(len(values)) if at not in known)
    if finite:
        yield min(finite, key=lambda at: values[at])
        yield max(finite, key=lambda at: values[at])


def element_index(shape: tuple[int, ...], flat: int) -> str:
    """The index, as code, of an element at ``flat`` in row-major order."""
    places: list[int] = []
    for size in reversed(shape):
        places.insert(0, flat % size)
        flat //= size
    return f"[{', '.join(map(str, places))}]" if places else "[()]"


def nested_list(values: Sequence[int] | Sequence[float], shape: tuple[int, ...]) -> str:
    """Nested lists, as code, of values in row-major order."""
    if not shape:
        return value_text(values[0])
    step = len(values) // shape[0] if shape[0] else 0
    return f"[{', '.join(nested_list(values[at * step : (at + 1) * step], shape[1:]) for at in range(shape[0]))}]"
