"""The least of the user's inputs that the failure needs: nothing, some elements, or whole tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from aotidoctor.commands.repro.bench import VALUES, Bench
from aotidoctor.commands.repro.script import Recipe, quoted
from aotidoctor.commands.repro.tensors import tree_text, value_text
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import InputSet, TensorDesc
from aotidoctor.model.record import record

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
    values = VALUES if any(text.startswith("given[") for text in given.values()) else None
    return replace(recipe, args=args, kwargs=kwargs, patches=tuple(patches), values=values)


def whole(inputs: InputSet, paths: Sequence[str] | None = None) -> dict[str, str]:
    """All tensors, or those named, out of the file of values."""
    return {path: f"given[{quoted(path)}]" for path, _ in inputs.tensors() if paths is None or path in paths}


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
    leaves = _ranked(inputs, diagnoses, findings)
    for elements in _blamed(findings):
        patches = [f"{place} = {value_text(value)}" for place, value in elements]
        said = f"made up, except for {elements[0][0].removesuffix('[()]')}"
        yield Reduced(recipe=with_inputs(recipe, inputs, {}, patches), said=said)
    for path, tensor in leaves[:4]:
        yield from _of_leaf(bench, recipe, inputs, path, tensor)
    for path, _ in leaves:
        given = whole(inputs, [path])
        yield Reduced(
            recipe=with_inputs(recipe, inputs, given), said=f"made up, except for {path} whole", values=(path,)
        )
    paths = tuple(path for path, _ in leaves)
    yield Reduced(recipe=with_inputs(recipe, inputs, whole(inputs)), said="all of your tensors", values=paths)


def _ranked(
    inputs: InputSet, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> list[tuple[str, TensorDesc]]:
    """The tensors, those that a diagnosis or its evidence names first."""
    texts = [diagnoses[0].subject or ""] if diagnoses else []
    texts += [str(item.facts.get("path") or item.subject or "") for item in findings]
    return sorted(inputs.tensors(), key=lambda one: next((at for at, text in enumerate(texts) if one[0] in text), 99))


def _blamed(findings: Sequence[Evidence]) -> Iterator[list[tuple[str, float | bool]]]:
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
        patches = [f"{path}{element(tensor.shape, at)} = {value_text(values[at])}" for at in chosen]
        said = f"made up, except for {len(chosen)} value{'s' if len(chosen) > 1 else ''} of {path}"
        return Reduced(recipe=with_inputs(recipe, inputs, {}, patches), said=said)

    for at in dict.fromkeys(extremes(values)):
        yield attempt([at])
    if len(values) <= SMALL:
        text = f"torch.tensor({nested(values, tensor.shape)}, dtype=torch.{tensor.dtype})"
        if tensor.stride is not None and not _is_plain(tensor):
            return
        small = Reduced(recipe=with_inputs(recipe, inputs, {path: text}), said=f"made up, except for {path}")
        if not bench.fails_alike(small.recipe, small.said):
            return
        fewer = halved(len(values), lambda chosen: bench.fails_alike(attempt(chosen).recipe, attempt(chosen).said))
        yield attempt(fewer) if len(fewer) <= FEW else small


def _is_plain(tensor: TensorDesc) -> bool:
    return tensor.stride == contiguous_stride(tensor.shape) and not tensor.conj and not tensor.neg


def halved(count: int, fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """The smallest half of a half that still fails alone."""
    kept = list(range(count))
    while len(kept) > 1:
        middle = len(kept) // 2
        half = next((part for part in (kept[:middle], kept[middle:]) if fails(part)), None)
        if half is None:
            return kept
        kept = half
    return kept


def extremes(values: Sequence[int] | Sequence[float]) -> Iterator[int]:
    """Where NaN, Inf, the least and the largest stand."""
    finite = [at for at, value in enumerate(values) if math.isfinite(value)]
    known = set(finite) if len(finite) < len(values) else None
    if known is not None:
        yield next(at for at in range(len(values)) if at not in known)
    if finite:
        yield min(finite, key=lambda at: values[at])
        yield max(finite, key=lambda at: values[at])


def element(shape: tuple[int, ...], flat: int) -> str:
    """The index of an element that is known by its place in row-major order."""
    places: list[int] = []
    for size in reversed(shape):
        places.insert(0, flat % size)
        flat //= size
    return f"[{', '.join(map(str, places))}]" if places else "[()]"


def nested(values: Sequence[int] | Sequence[float], shape: tuple[int, ...]) -> str:
    """Values in row-major order as nested lists."""
    if not shape:
        return value_text(values[0])
    step = len(values) // shape[0] if shape[0] else 0
    return f"[{', '.join(nested(values[at * step : (at + 1) * step], shape[1:]) for at in range(shape[0]))}]"
