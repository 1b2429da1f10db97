"""The weights to be loaded do not fit the constants that the code was compiled for.

What it does
    Compares the tensors of --weights (safetensors or a state dict, read without their values) with the package's
    constants: names, dtypes, shapes, strides. It recognises names to which a wrapper added a prefix (``module.``) or
    inserted a word, on either side (``layer._orig_mod.weight`` of torch.compile), and tensor subclasses (those of
    torchao) that a package stores in parts (``layer.parametrizations.weight.original0``).

Why it matters
    load_constants checks names only. A weight of a different dtype overflows the heap or gives garbage, a smaller one
    is copied in part, a constant that is not loaded is a null pointer at the first call: none of these raises an error.
    Numbers and small vectors (a temperature, a bias of 4) are no constants: they are in the code, and only a new
    compile changes them.
    A package of torch 2.6 or 2.7 with runtime constant folding keeps using what its first call computed (a note).

Example:
    fc.weight: observed float16, expected float32

When it is wrong
    Your program casts or renames the weights before it loads them. A buffer that is not persistent is not in any state
    dict: it comes from the module itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isclose
from struct import pack, unpack

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import main_object
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import Evidence, FileSource, Severity, list_names, plural
from aotidoctor.readers.releases.torch_releases import Release, built_by

FIND = Finder("AD-LOAD-008", "weights_file")
PREFIXES = ("_orig_mod.", "module.", "model.", "_fsdp_wrapped_module.")
# The words that torch.compile, FSDP and activation checkpointing insert into names.
_WRAPPERS = re.compile(r"(?:(?<=\.)|^)(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
# The names that export gives to the parts of a tensor subclass.
_PART = re.compile(r"(?P<module>(?:[^.]+\.)*?)parametrizations\.(?P<name>[^.]+)\.original\d+")
# The names that freezing gives to what it computes from weights.
_FROZEN = re.compile(r"_frozen_param\d{1,6}")
_LISTED = 20
# From this release on, the first call after loading weights computes the folded constants again.
_FOLDS_AGAIN: Release = (2, 8)


def run(case: Case) -> Observations:
    """One finding per kind of fault and constant, of each file; nothing without --weights."""
    yield from _of_file(case)
    if (path := case.options.next_weights) is not None:
        yield from _of_file(replace(case, options=replace(case.options, weights=path), weights=case.next_weights))


def _of_file(case: Case) -> Observations:
    if case.options.weights is None:
        return
    if case.weights is None:
        yield FIND.unchecked(f"{case.options.weights} could not be read")
        return
    if case.contract is None or not case.contract.constants:
        yield FIND.unchecked("the package lists no constants to compare them with")
        return
    wanted = {spec.fqn: spec for spec in case.contract.constants if not spec.from_folded}
    given = {spec.name: spec for spec in case.weights}
    prefix = ""
    if wanted.keys().isdisjoint(given):
        prefix = next((one for one in PREFIXES if any(f"{one}{name}" in given for name in wanted)), "")
        given = {name.removeprefix(prefix): spec for name, spec in given.items()}
    # Names of the package -> names of the file that are the same except for the words of wrappers.
    theirs = {_WRAPPERS.sub("", name): name for name in given if name not in wanted}
    plain = ((name, _WRAPPERS.sub("", name)) for name in wanted if name not in given)
    renamed = {name: theirs[stripped] for name, stripped in plain if stripped in theirs}
    # Names of the file -> the constants of the package that are parts of that tensor.
    parts: dict[str, list[str]] = {}
    for name in wanted:
        match = _PART.fullmatch(name)
        if match is not None and f"{match['module']}{match['name']}" in given:
            parts.setdefault(f"{match['module']}{match['name']}", []).append(name)
    found = [*_prefix_evidence(case, wanted, prefix, renamed), *_in_parts(case, parts)]
    explained = {*renamed.values(), *parts}
    given = {
        **{name: spec for name, spec in given.items() if name not in explained},
        **{name: given[their] for name, their in renamed.items()},
    }
    yield from found
    yield from _names(case, wanted, given)
    yield from _differences(case, wanted, given)
    yield from _folded_constants(case)


def _folded_constants(case: Case) -> Iterator[Evidence]:
    """The note for constants that a package of torch 2.6 or 2.7 computes once, in its first call."""
    names = [spec.name for spec in case.contract.constants if spec.from_folded] if case.contract is not None else []
    before = built_by(case.model, main_object(case)).before if case.model is not None and names else None
    if before is not None and before <= _FOLDS_AGAIN:
        yield FIND.info(
            "folded-once",
            names[0],
            observed=f"{plural(len(names), 'constant')} computed from weights in the first call and never recomputed",
            expected="these weights loaded before the first call: later, values computed from the old ones remain",
            facts={"constants": tuple(names[:50]), "count": len(names)},
        )


def _prefix_evidence(
    case: Case, wanted: Mapping[str, ConstantSpec], prefix: str, renamed: Mapping[str, str]
) -> Iterator[Evidence]:
    """The finding for names that differ by a wrapper's prefix or word."""
    if prefix:
        word, observed, expected = prefix, f"names that begin with {prefix}", f"names like {next(iter(wanted))}"
    elif renamed:
        expected, observed = next(iter(renamed.items()))
        word = next(iter(_WRAPPERS.findall(observed) + _WRAPPERS.findall(expected)), "")
        observed, expected = f"names like {observed}", f"names like {expected}"
    else:
        return
    yield FIND.error(
        "prefix",
        word,
        observed=observed,
        expected=expected,
        source=FileSource(file=case.options.weights or ""),
        facts={"prefix": word, "found": observed.replace("names", "the names", 1)},
    )


def _in_parts(case: Case, parts: Mapping[str, list[str]]) -> Iterator[Evidence]:
    """The finding for tensor subclasses: one tensor in the file, several constants in the package."""
    if not parts:
        return
    whole, names = next(iter(parts.items()))
    yield FIND.error(
        "subclass",
        whole,
        observed=f"{whole} as one tensor" + (f", and {len(parts) - 1} more" if len(parts) > 1 else ""),
        expected=f"its parts, as in the package: {list_names(names, 3)}",
        source=FileSource(file=case.options.weights or ""),
        facts={
            "constants": tuple(names[:50]),
            "count": len(parts),
            "found": f"{whole} is one tensor; the package stores its parts: {list_names(names, 3)}",
        },
    )


def _names(case: Case, wanted: Mapping[str, ConstantSpec], given: Mapping[str, ConstantSpec]) -> Iterator[Evidence]:
    source = FileSource(file=case.options.weights or "")
    frozen = [name for name in wanted if _FROZEN.fullmatch(name) and name not in given]
    missing = [name for name in wanted if name not in given and name not in frozen]
    if missing:
        yield FIND.error(
            "missing",
            missing[0],
            observed=f"{plural(len(missing), 'constant')} of the package not in the file: {list_names(missing, 3)}",
            expected="every constant of the package",
            source=source,
            facts={
                "constants": tuple(missing[:50]),
                "count": len(missing),
                "found": f"without {list_names(missing, 3)}",
            },
        )
    # Parts of modules of which the package has other parts.
    modules = {name.rpartition(".")[0] for name in wanted} - {""}
    small = {
        name: len(spec.values)
        for name, spec in given.items()
        if name not in wanted and name.rpartition(".")[0] in modules and len(spec.values) > 1
    }
    written = _written_vectors(case) if small else {}
    literals = {name: written[length] for name, length in small.items() if length in written}
    literals |= _written_numbers(case, wanted, given)
    # Notes last: the first one names the case.
    found = [_literal_evidence(case, given[name], values) for name, values in literals.items()]
    yield from sorted(found, key=lambda item: item.severity is Severity.INFO)
    other = [
        name for name, spec in given.items() if name not in wanted and name not in literals and spec.dtype is not None
    ]
    if other and frozen:
        yield FIND.error(
            "frozen",
            other[0],
            observed=f"frozen: {plural(len(frozen), 'constant')} computed from {list_names(other, 3)} at the compile",
            expected="weights that the package has under their own names: load_constants refuses these",
            source=source,
            facts={
                "constants": tuple(other[:50]),
                "count": len(other),
                "found": f"{list_names(other, 3)} cannot be loaded: the package was compiled with freezing",
                "remedy": "Compile again from these weights; and without freezing, if weights are to be loaded later.",
                "command": "aoti_compile_and_package(program, inductor_configs={'freezing': False})",
            },
        )
    elif other:
        yield FIND.warn(
            "unexpected",
            other[0],
            observed=f"{plural(len(other), 'tensor')} that the package does not have: {list_names(other, 3)}",
            expected="constants of the package only: load_constants refuses other names, and those that the compiler "
            "folded into the code change by a new compile only",
            source=source,
            facts={"constants": tuple(other[:50]), "count": len(other)},
        )


def _written_vectors(case: Case) -> dict[int, list[tuple[float, ...]]]:
    """Vectors of the generated code by their number of elements."""
    if case.model is None:
        return {}
    from aotidoctor.readers.contract.written_constants import constant_vectors

    found: dict[int, list[tuple[float, ...]]] = {}
    for vector in constant_vectors("\n".join((case.model.wrapper_cpp or "", *case.model.kernel_sources.values()))):
        found.setdefault(len(vector), []).append(vector)
    return found


def _written_numbers(
    case: Case, wanted: Mapping[str, ConstantSpec], given: Mapping[str, ConstantSpec]
) -> dict[str, list[tuple[float, ...]]]:
    """Numbers of the generated code for each tensor of one element that is no constant, its own first.

    A number that comes from such a tensor is a float32, written with all its digits: 0.7310585975646973. Constants of
    the compiler (0.7071067811865476) have digits that a float32 has not. Where the code has no number to spare for a
    tensor, nothing uses it, as far as can be seen.
    """
    modules = {name.rpartition(".")[0] for name in wanted} | {""}
    single = {
        name: spec.values[0]
        for name, spec in given.items()
        if name not in wanted
        and len(spec.values) == 1
        and (spec.dtype or "").startswith(("float", "bfloat"))
        and name.rpartition(".")[0] in modules
    }
    if not single or case.model is None:
        return {}
    from aotidoctor.readers.contract.written_constants import constant_numbers, is_typed

    found = constant_numbers("\n".join((case.model.wrapper_cpp or "", *case.model.kernel_sources.values())))
    same = {name: [one for one in found if _is_close(one, value)] for name, value in single.items()}
    taken = {one for values in same.values() for one in values}
    spare = [one for one in found if one not in taken and not is_typed(one) and one == _as_float32(one)]
    return {name: [(one,) for one in values or spare] for name, values in same.items() if values or spare}


def _is_close(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-6, abs_tol=1e-30)


def _as_float32(number: float) -> float:
    try:
        (rounded,) = unpack("f", pack("f", number))
    except OverflowError:
        return inf
    return float(rounded)


def _literal_evidence(case: Case, spec: ConstantSpec, found: Sequence[tuple[float, ...]]) -> Evidence:
    """An error where the code holds other numbers, a note where it holds those of the file."""
    name, source = spec.name, FileSource(file=case.options.weights or "")
    same = any(all(_is_close(one, other) for one, other in zip(vector, spec.values, strict=True)) for vector in found)
    if same:
        return FIND.info(
            "literal",
            name,
            observed=f"no constant of the package: {_its_numbers(spec)} in the code, the same as here",
            expected="not loaded: load_constants refuses this name",
            source=source,
            facts={"constant": name},
        )
    numbers = ", ".join(f"{value:.4g}" for value in found[0])
    return FIND.error(
        "literal",
        name,
        observed=f"{_its_numbers(spec)} in the code with another value ({numbers})",
        expected="what is in this file, which only a new compile puts there",
        source=source,
        facts={
            "constant": name,
            "found": f"{name} is not loadable: the code holds {numbers} for it",
            "remedy": f"Compile again from these weights: {name} is so small that the compiler wrote its numbers into "
            "the code. load_constants refuses it, and leaving it out keeps the old numbers without a message.",
            "command": f"model.load_state_dict(torch.load({case.options.weights!r}))   # then export and compile again",
        },
    )


def _its_numbers(spec: ConstantSpec) -> str:
    return "its number is" if len(spec.values) == 1 else f"its {len(spec.values)} numbers are"


def _differences(case: Case, wanted: Mapping[str, ConstantSpec], given: Mapping[str, ConstantSpec]) -> Observations:
    pairs = ((name, spec, given[name]) for name, spec in wanted.items() if name in given)
    found = [(name, other) for name, spec, one in pairs if (other := difference(spec, one)) is not None]
    for name, (kind, observed, expected) in found[:_LISTED]:
        yield FIND.error(
            kind,
            name,
            observed=observed,
            expected=expected,
            source=FileSource(file=case.options.weights or ""),
            facts={"constant": name, "count": len(found), "found": f"{name} has {observed}, expected {expected}"},
        )


def difference(spec: ConstantSpec, one: ConstantSpec) -> tuple[str, str, str] | None:
    """``(kind, observed, expected)`` of the first property that differs: dtype, shape, stride."""
    if one.dtype is None:
        return None
    if spec.dtype is not None and one.dtype != spec.dtype:
        return "dtype", str(one.dtype), spec.dtype
    if spec.shape is None or one.shape is None:
        return None
    if one.shape != spec.shape:
        return "shape", str(one.shape), str(spec.shape)
    if spec.stride is None or one.stride is None or 0 in spec.shape:
        return None
    used = [at for at, size in enumerate(spec.shape) if size != 1]
    if any(one.stride[at] != spec.stride[at] for at in used):
        return "stride", f"strides {one.stride}", f"strides {spec.stride}"
    return None


CHECK = FIND.check(
    run, cause="weights-mismatch", needs=("artifact_missing", "artifact_wrong_kind"), facts=("constant",)
)
