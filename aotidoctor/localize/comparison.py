"""Compare with a reference: outputs, weights, generated code, and the arguments of a kernel.

Outputs are compared with the reference's, from a child run or from a saved report, and judged anew. Weights that differ
have a ``kind``: ``flipped-bit`` (every weight that differs does so in single bits), ``cast``, ``transposed``,
``reshaped`` (all of them), ``stale-one`` (one of several differs in most elements), ``other-checkpoint`` (most weights
differ in most elements), ``other-model`` (another shape or dtype), ``other-values`` (anything else).

Generated files name directories of the machine that compiled them and carry the compiler's command line: comments and
paths are left out of the comparison of two packages, and so are the names that the compiler derives from the content.

The arguments of a failing kernel are compared by name with what was compiled: an input, a constant, or a buffer that an
earlier call wrote. Nothing is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from aotidoctor.localize.blame.package_program import PackageProgram, program_of
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case, Tolerances, agrees_within
from aotidoctor.model.contract import LeafSpec, ModelContract
from aotidoctor.model.evidence import list_names, plural
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.localization import OutputComparison
from aotidoctor.model.record import JsonObject, JsonValue, as_list, objects, record
from aotidoctor.model.record_json import RecordError, from_json
from aotidoctor.model.run import Outcome

# Outputs.
FINE = ("agrees", "both-within", "reference-imprecise")
STRUCTURAL = ("missing", "extra", "structure", "type", "shape")
# Verdicts that a tolerance cannot change.
_FIXED = (*STRUCTURAL, "dtype")
_UNASKED = "it agreed, so no float64 run was made: run compare again for a verdict"


def read_comparison(outcome: Outcome) -> tuple[OutputComparison, ...]:
    """The comparison in the ``reference`` part of a run's result, in the reference's order; empty without one."""
    found = outcome.result.get("reference")
    if not isinstance(found, dict) or "outputs" not in found:
        return ()
    leaves = [_leaf(item) for item in objects(found.get("outputs"))]
    missing = [OutputComparison(path=path, verdict="missing") for path in _text_items(found.get("missing"))]
    extra = [OutputComparison(path=path, verdict="extra") for path in _text_items(found.get("extra"))]
    odd: list[OutputComparison] = []
    if found.get("same_structure") is False and not missing and not extra:
        ours, theirs = [*_text_items(found.get("containers")), "", ""][:2]
        reason = f"{ours} for {theirs}" if ours and theirs else "another order"
        odd = [OutputComparison(path="result", verdict="structure", reason=reason)]
    return (*odd, *leaves, *missing, *extra)


def saved_comparison(document: JsonObject) -> tuple[OutputComparison, ...]:
    """The comparison that a JSON report holds; empty where it has none."""
    place = document.get("localization")
    held = place.get("comparison") if isinstance(place, dict) else None
    return tuple(_read_saved_output(item) for item in objects(held) if isinstance(item.get("path"), str))


def judge_anew(found: Sequence[OutputComparison], tolerances: Tolerances) -> tuple[OutputComparison, ...]:
    """The comparison under other tolerances. An output without one keeps its verdict; see ``agrees_within``."""
    leaves = [item for item in found if item.verdict not in ("structure", "missing", "extra")]
    places = {item.path: index for index, item in enumerate(leaves)}
    judged: list[OutputComparison] = []
    for item in found:
        limits = tolerances.of(item.path, places.get(item.path, -1))
        if limits is None or item.verdict in _FIXED or not item.needed:
            judged.append(item)
            continue
        far = item.far if limits == (item.rtol, item.atol) else 0
        reason = item.reason if item.judged is not None or item.verdict != "agrees" else _UNASKED
        verdict = item.judged or "unknown"
        if agrees_within(item.needed, *limits):
            verdict, far, reason = "agrees", 0, None
        rtol, atol = limits
        judged.append(replace(item, verdict=verdict, rtol=rtol, atol=atol, asked=True, far=far, reason=reason))
    return tuple(judged)


def _leaf(item: JsonObject) -> OutputComparison:
    dtype, shape, nan, inf = (_pair(item.get(name)) for name in ("dtype", "shape", "nan", "inf"))
    odd = item.get("what") == "nan" or any(
        _pair(pair)[1] in ("Infinity", "inf", math.inf) for pair in as_list(item.get("needed"))
    )
    sides = {"dtype": dtype, "shape": shape, "nan": nan, "inf": inf}
    return _read_saved_output(
        {
            **{name: value for name, value in item.items() if name not in sides},
            **{name: ours for name, (ours, _) in sides.items() if ours is not None},
            **{f"reference_{name}": theirs for name, (_, theirs) in sides.items() if theirs is not None},
            "verdict": item.get("verdict") or ("agrees" if item.get("agrees") is True else "unknown"),
            "max_abs": item.get("max_abs_diff"),
            "max_rel": item.get("max_rel_diff"),
            "nan_differs": odd,
        }
    )


def _read_saved_output(item: JsonObject) -> OutputComparison:
    """The record, as the JSON report spells it; what cannot be read of it has no verdict."""
    try:
        return from_json(OutputComparison, item)
    except RecordError as error:
        return OutputComparison(path=str(item.get("path") or ""), verdict="unknown", reason=str(error))


def _pair(value: JsonValue) -> tuple[JsonValue, JsonValue]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (None, None)


def _text_items(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


# Weights. More than this part of a weight's elements differs: it is another weight, not a damaged one.
_MOST_WEIGHTS = 0.5
_ALIKE = ("flipped-bit", "cast", "transposed", "reshaped")


@record
class WeightsCompared:
    """A comparison of weights: ``names`` of those that differ, ``kind`` and ``sentence`` (empty where none does).

    ``equal`` counts the others that were compared. ``alone`` are names that only one side has: constants that were
    folded or written into the code at compile time, and what the model does not use. ``unread`` says why nothing was
    compared.
    """

    names: tuple[str, ...] = ()
    kind: str = ""
    sentence: str = ""
    equal: int = 0
    alone: tuple[str, ...] = ()
    unread: str = ""


def read_weights(outcome: Outcome) -> WeightsCompared:
    """The comparison in the ``weights`` part of a run's result."""
    found = outcome.result.get("weights")
    items = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    return judge_weights(items, unread=str(outcome.result.get("weights_unread") or "")[:300])


def judge_weights(items: Sequence[JsonObject], *, unread: str = "") -> WeightsCompared:
    """The comparison from pairs of weights, each as ``worker.weight_differences`` describes it."""
    differing = [item for item in items if item.get("equal") is False]
    equal = sum(item.get("equal") is True for item in items)
    kind = _kind(differing, equal) if differing else ""
    return WeightsCompared(
        names=tuple(str(item.get("name")) for item in differing),
        kind=kind,
        sentence=_sentence(kind, differing, equal) if differing else "",
        equal=equal,
        alone=tuple(str(item.get("name")) for item in items if item.get("equal") is None),
        unread=unread,
    )


def _kind(differing: list[JsonObject], equal: int) -> str:
    kinds = {str(item.get("what")) for item in differing}
    if len(kinds) == 1 and (only := kinds.pop()) in _ALIKE:
        return only
    if any(item.get("what") in ("shape", "dtype") for item in differing):
        return "other-model"
    shares = [item.get("share") for item in differing if item.get("what") == "values"]
    broad = [share for share in shares if isinstance(share, int | float) and share > _MOST_WEIGHTS]
    if len(differing) == 1 and broad and equal:
        return "stale-one"
    return "other-checkpoint" if broad and len(broad) * 2 >= len(differing) + equal else "other-values"


def _sentence(kind: str, differing: list[JsonObject], equal: int) -> str:
    first, count, total = differing[0], len(differing), len(differing) + equal
    name = str(first.get("name"))
    names = list_names([str(item.get("name")) for item in differing], 3)
    match kind:
        case "flipped-bit":
            more = sum(_int(item.get("differing")) for item in differing) - 1
            return f"{_element(first)}{f', and {more} more such' if more > 0 else ''}"
        case "cast":
            return f"{names}: the reference's values cast from {first.get('expected')} to {first.get('observed')}"
        case "transposed" | "reshaped":
            return f"{names}: the reference's values, {kind}"
        case "stale-one":
            part = f"{_int(first.get('differing'))} of {_int(first.get('numel'))} elements"
            return f"only {name} differs ({part}), {equal} others are equal: it was changed later in one of the two"
        case "other-checkpoint":
            return f"{count} of {total} weights differ, most of their elements: a different checkpoint ({names})"
        case "other-model":
            odd = next(item for item in differing if item.get("what") in ("shape", "dtype"))
            return (
                f"{odd.get('name')} has {odd.get('what')} {odd.get('observed')}, the reference's {odd.get('expected')}"
            )
        case _:
            part = f"{_int(first.get('differing'))} of {_int(first.get('numel'))} elements"
            return f"{count} of {total} weights differ ({names}); {name} in {part}, {_element(first)}"


def _element(item: JsonObject) -> str:
    """``l.weight[0, 3]: bit 30 is flipped: 4.3e+37 in the package, 0.126 in the reference``."""
    elements = item.get("elements")
    first = elements[0] if isinstance(elements, list) and elements and isinstance(elements[0], dict) else {}
    index, bits = first.get("index"), first.get("bits")
    place = ", ".join(map(str, index)) if isinstance(index, list) else ""
    which = f"bit {bits[0]} is flipped: " if isinstance(bits, list) and len(bits) == 1 else ""
    values = f"{_value(first.get('observed'))} in the package, {_value(first.get('expected'))} in the reference"
    return f"{item.get('name')}{f'[{place}]' if place else ''}: {which}{values}"


def _value(value: JsonValue) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _int(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0


# Generated code of two packages of one program.
_PATH = re.compile(r"(?:/[\w.+@-]+){2,}")
_HASHED = re.compile(r"\bc[a-z2-7]{40,}\b")
_FUNCTION = re.compile(r"\b((?:cpp|triton)_fused\w*|cpp_\w+?_\d+)\(")
_LONGEST = 160

CodeLines = list[tuple[int, str]]


@record
class CodeComparison:
    """A comparison of generated code.

    ``same_kernels``: the same names in the same order of calls; ``same_sources``: the same code as well.
    Both are None where a package has no sources. ``where``, ``ours`` and ``theirs`` are the first line that differs:
    of the kernels, else of the wrapper (``ours`` is the package under examination).
    """

    kernels: tuple[str, ...] = ()
    other_kernels: tuple[str, ...] = ()
    same_kernels: bool | None = None
    same_sources: bool | None = None
    where: str | None = None
    ours: str | None = None
    theirs: str | None = None


def compare_code(
    ours: ModelEntry | None,
    our_contract: ModelContract | None,
    theirs: ModelEntry | None,
    their_contract: ModelContract | None,
) -> CodeComparison:
    """Compare a package with one that was made from the same program."""
    mine, other = _kernels(ours, our_contract), _kernels(theirs, their_contract)
    if ours is None or theirs is None or ours.wrapper_cpp is None or theirs.wrapper_cpp is None:
        named = bool(mine and other)
        return CodeComparison(kernels=mine, other_kernels=other, same_kernels=mine == other if named else None)
    found = _first(_kernel_lines(ours.kernel_sources), _kernel_lines(theirs.kernel_sources), "kernel.cpp")
    found = found or _first(_lines(ours.wrapper_cpp), _lines(theirs.wrapper_cpp), "wrapper.cpp")
    where, left, right = found or (None, None, None)
    return CodeComparison(
        kernels=mine,
        other_kernels=other,
        same_kernels=mine == other,
        same_sources=found is None,
        where=where,
        ours=left,
        theirs=right,
    )


def _kernels(model: ModelEntry | None, contract: ModelContract | None) -> tuple[str, ...]:
    """Names in the order of calls; those of the symbol table where there is no source."""
    if contract is not None and contract.kernels:
        return tuple(call.name for call in contract.kernels)
    objects = model.shared_objects if model is not None else ()
    return tuple(sorted(name for item in objects for name in item.kernel_symbols))


def _kernel_lines(sources: Mapping[str, str]) -> CodeLines:
    """Kernel files in the order of the functions they define: file names are hashes."""
    ordered = sorted(sources.values(), key=_FUNCTION.findall)
    return [line for text in ordered for line in _lines(text)]


def _lines(text: str) -> CodeLines:
    """``(number, text)`` of the lines that are code, without what depends on the machine."""
    return [
        (number, _HASHED.sub("<hash>", _PATH.sub("<path>", line)))
        for number, line in enumerate(map(str.strip, text.splitlines()), start=1)
        if line and not line.startswith("//")
    ]


def _first(ours: CodeLines, theirs: CodeLines, file: str) -> tuple[str, str | None, str | None] | None:
    for left, right in zip_longest(ours, theirs):
        if left is None or right is None or left[1] != right[1]:
            number = left[0] if left is not None else ours[-1][0] if ours else 1
            return f"{file}:{number}", _short(left), _short(right)
    return None


def _short(line: tuple[int, str] | None) -> str | None:
    return None if line is None else line[1][:_LONGEST]


# Arguments of a kernel.
@record
class KernelInput:
    """One tensor argument.

    ``differs`` says what of it does not fit the contract; ``source`` is ``input``, ``constant`` or ``buffer``, ``name``
    the user's name of it, or the call that wrote it; ``takes`` is the element type in the kernel's own signature.
    """

    parameter: str
    source: str
    name: str
    takes: str | None = None
    differs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``in_ptr0 (*i64) = args[0]``, with what does not fit."""
        kind = f" (*{self.takes})" if self.takes else ""
        wrong = f", which does not fit: {'; '.join(self.differs)}" if self.differs else ""
        return f"{self.parameter}{kind} = {self.name}{wrong}"


def kernel_inputs(case: Case, kernel: str) -> Iterator[KernelInput]:
    """The tensors that the first call of ``kernel`` is handed; empty where the package does not tell."""
    program = program_of(case)
    if program is None:
        return
    at = next(iter(program.calls(kernel)), None)
    if at is None:
        return
    pairs = [(one.name, one.type, text) for one, text in program.arguments(at).values() if one.pointer]
    if not pairs:
        # A shim names its tensors in order; an operator of ATen has no parameters that the package knows.
        pairs = [(f"argument {number}", "", text) for number, text in enumerate(program.call(at).arguments)]
    for parameter, takes, text in pairs:
        root = program.root(text)
        leaf, constant = program.leaves.get(root), program.constants.get(root)
        writer = program.writer(text, at)
        differs: tuple[str, ...] = ()
        if leaf is not None:
            source, name = "input", leaf.path
            differs = _differences(leaf, program.tensors.get(leaf.path), program)
        elif constant is not None:
            source, name = "constant", constant.fqn
        elif writer is not None:
            source, name = "buffer", f"what {program.call(writer).name} wrote"
        else:
            continue
        yield KernelInput(parameter=parameter, source=source, name=name, takes=takes or None, differs=differs)


def _differences(leaf: LeafSpec, tensor: TensorDesc | None, program: PackageProgram) -> tuple[str, ...]:
    if tensor is None:
        return ()
    found = []
    if leaf.dtype not in (None, tensor.dtype):
        found.append(f"dtype {tensor.dtype}, expected {leaf.dtype}")
    if leaf.device_type not in (None, tensor.device.partition(":")[0]):
        found.append(f"device {tensor.device}, expected {leaf.device_type}")
    if leaf.rank not in (None, len(tensor.shape)):
        return (*found, f"{plural(len(tensor.shape), 'dim')}, expected {leaf.rank}")
    for number, (dim, size) in enumerate(zip(leaf.dims or (), tensor.shape, strict=False)):
        expected = dim.size(program.sizes)
        low, high = dim.min or 0, dim.max
        if expected not in (None, size):
            found.append(f"shape[{number}] {size}, expected {expected}")
        elif dim.static is None and (size < low or (high is not None and size > high)):
            found.append(f"shape[{number}] {size}, expected {low}..{'' if high is None else high}")
    pairs = zip(leaf.strides or (), tensor.stride or (), tensor.shape, strict=False)
    if any(expected not in (None, step) and size > 1 for expected, step, size in pairs):
        found.append(f"strides {tensor.stride}, expected {leaf.strides}")
    return tuple(found)
