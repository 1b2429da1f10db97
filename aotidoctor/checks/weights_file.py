"""The weights that are to be loaded do not fit the constants that the code was compiled for.

What it does
    Compares the tensors of --weights (safetensors or a state dict, read without their values) with the package's
    constants: names, dtypes, shapes, strides. Names that a wrapper has put a prefix before (``_orig_mod.``,
    ``module.``) are recognised.

Why it matters
    load_constants checks names only. A weight of another dtype overflows the heap or gives garbage, a smaller one is
    copied in part, a constant that nobody loads is a null pointer at the first call: none of it is an error message.

Example:
    fc.weight: observed float16, expected float32

When it is wrong
    Your program casts or renames the weights before it loads them. A buffer that is not persistent is in no state dict:
    it comes from the module itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.checks.check import Check, Finder
from aotidoctor.checks.package.facts import listed, plural
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked

FIND = Finder("AD-LOAD-008", "weights_file")
PREFIXES = ("_orig_mod.", "module.", "model.", "_fsdp_wrapped_module.")
_SHOWN = 20


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """One finding per kind of fault and constant; nothing without --weights."""
    if case.options.weights is None:
        return []
    if case.weights is None:
        return FIND.unchecked(f"{case.options.weights} could not be read")
    if case.contract is None or not case.contract.constants:
        return FIND.unchecked("the package lists no constants to compare them with")
    wanted = {spec.original_fqn or spec.name: spec for spec in case.contract.constants if not spec.from_folded}
    given = {spec.name: spec for spec in case.weights}
    prefix = _prefix(wanted, given)
    if prefix:
        given = {name.removeprefix(prefix): spec for name, spec in given.items()}
    return [*_names(case, wanted, given, prefix), *_differences(case, wanted, given)]


def _prefix(wanted: Mapping[str, ConstantSpec], given: Mapping[str, ConstantSpec]) -> str:
    """The prefix that keeps the names from fitting, empty where they fit or nothing helps."""
    if any(name in given for name in wanted):
        return ""
    return next((one for one in PREFIXES if any(f"{one}{name}" in given for name in wanted)), "")


def _names(
    case: Case, wanted: Mapping[str, ConstantSpec], given: Mapping[str, ConstantSpec], prefix: str
) -> Iterator[Evidence]:
    source = FileSource(file=case.options.weights or "")
    if prefix:
        yield FIND.error(
            "prefix",
            prefix,
            observed=f"names that begin with {prefix}",
            expected=f"names like {next(iter(wanted))}",
            source=source,
            facts={"prefix": prefix, "found": f"the names begin with {prefix}"},
        )
    missing = [name for name in wanted if name not in given]
    if missing:
        yield FIND.error(
            "missing",
            missing[0],
            observed=f"{plural(len(missing), 'constant')} of the package not in the file: {listed(missing, 3)}",
            expected="every constant of the package",
            source=source,
            facts={"constants": tuple(missing[:50]), "count": len(missing), "found": f"without {listed(missing, 3)}"},
        )
    other = [name for name in given if name not in wanted]
    if other:
        yield FIND.warn(
            "unexpected",
            other[0],
            observed=f"{plural(len(other), 'tensor')} that the package does not have: {listed(other, 3)}",
            expected="constants of the package only: load_constants refuses other names",
            source=source,
            facts={"constants": tuple(other[:50]), "count": len(other)},
        )


def _differences(case: Case, wanted: Mapping[str, ConstantSpec], given: Mapping[str, ConstantSpec]) -> list[Evidence]:
    pairs = ((name, spec, given[name]) for name, spec in wanted.items() if name in given)
    found = [(name, told) for name, spec, one in pairs if (told := difference(spec, one)) is not None]
    return [
        FIND.error(
            kind,
            name,
            observed=observed,
            expected=expected,
            source=FileSource(file=case.options.weights or ""),
            facts={"constant": name, "count": len(found), "found": f"{name} has {observed}, expected {expected}"},
        )
        for name, (kind, observed, expected) in found[:_SHOWN]
    ]


def difference(spec: ConstantSpec, one: ConstantSpec) -> tuple[str, str, str] | None:
    """``(kind, observed, expected)`` of the first property that differs: dtype, shape, stride."""
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


CHECK = Check(
    code=FIND.code,
    name=FIND.name,
    cause="weights-mismatch",
    stage="load",
    needs=("artifact_missing", "artifact_wrong_kind"),
    run=run,
    facts=("constant",),
)
