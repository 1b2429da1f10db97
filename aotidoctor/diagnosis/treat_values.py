"""Plan treatments of sizes, values and results of calls, with look-ups that all planners use.

A size is changed for its symbol, hence in every input that shows the symbol: cutting one tensor of a batch would only
move the disagreement. Tensors are cut (into a range, to a common size, to a multiple), never padded: what to pad with
is the caller's knowledge.

Values: replace NaN, clamp indices, replace zero divisors. Results: other values in place of those of one call of the
compiled code or of an operator. Both prove which call is at fault, and are no remedy. Where the call itself writes the
outputs nothing comes after it, so nothing can be proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aotidoctor.diagnosis.playbooks import leaf_of
from aotidoctor.diagnosis.treatment_steps import TreatmentPlan, each_leaf, leaf_plan, merge_plans, one_step, resize_step
from aotidoctor.localize.call_overlay import overlay_call
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.expr import evaluate, solve
from aotidoctor.model.inputs import LeafValue, TensorDesc


# Look-ups for planners.
def evidence_of_code(findings: Sequence[Evidence], code: str, *kinds: str) -> list[Evidence]:
    """Evidence of one code: the errors if there are any, else the warnings; notes only where ``kinds`` are given."""
    hits = [item for item in findings if item.code == code and (not kinds or item.kind in kinds)]
    errors = [item for item in hits if item.severity is Severity.ERROR]
    return errors or [item for item in hits if item.severity is Severity.WARN] or (hits if kinds else [])


def path_of(item: Evidence) -> str | None:
    """User's path of the leaf that the evidence is about."""
    path = item.facts.get("path")
    return path if isinstance(path, str) else leaf_of(item.subject)


def paths_of(items: Sequence[Evidence]) -> list[str]:
    """Paths of the leaves of several findings, each once, in order."""
    return list(dict.fromkeys(path for item in items if (path := path_of(item)) is not None))


def value_at(case: Case, path: str | None) -> LeafValue | None:
    """Value given at ``path``; None when there is none."""
    leaves = case.inputs.leaves() if case.inputs is not None else ()
    return next((value for name, value in leaves if name == path), None)


def tensor_at(case: Case, path: str | None) -> TensorDesc | None:
    """Tensor given at ``path``; None when there is none."""
    value = value_at(case, path)
    return value if isinstance(value, TensorDesc) else None


def spec_at(case: Case, path: str | None) -> LeafSpec | None:
    """Leaf of the contract at the user's ``path``."""
    leaves = case.contract.leaves if case.contract is not None else ()
    return next((leaf for leaf in leaves if leaf.path == path), None)


def exported_program(case: Case) -> str | None:
    """Path of the exported program that is the reference; None without one."""
    reference = case.options.reference
    return reference if reference is not None and reference.endswith(".pt2") else None


def couples(case: Case) -> Iterator[tuple[str, LeafSpec, TensorDesc]]:
    """Yield ``(path, leaf of the contract, tensor)`` wherever both trees have a tensor at the same place."""
    contract, inputs = case.contract, case.inputs
    if contract is None or inputs is None:
        return
    for pair in overlay_call(contract, inputs).pairs:
        if isinstance(pair.value, TensorDesc):
            yield pair.path, pair.spec, pair.value


# Sizes.
DimPlace = tuple[str, int]
SIZES_BLAME = "AD-RUN-022"


def plan_into_range(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Cut each dim above its maximum down to it; else fill each below its minimum up to that."""
    items = evidence_of_code(findings, "AD-IN-017", "high")
    if items:
        return _shorten(case, _sizes_by_place(items, "high"))
    # The last entry is repeated (zeros where there is none), which is a proof and no remedy: no command.
    low = _sizes_by_place(evidence_of_code(findings, "AD-IN-017", "low"), "low") or {}
    symbols = {str(dim.expr): low[path, at] for path, at, _, dim in _dims(case) if (path, at) in low and dim.expr}
    grown = [
        (path, at, symbols[str(dim.expr)], size)
        for path, at, size, dim in _dims(case)
        if size < symbols.get(str(dim.expr), 0)
    ]
    return _resize_plan("fill", grown)


def plan_into_grid(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Cut each dim that makes a launch grid too large down to what the GPU takes."""
    items = [item for item in evidence_of_code(findings, "AD-HOST-014", "grid-large") if item.facts.get("high")]
    wanted: dict[DimPlace, int] = {}
    for item in items:
        place, high = _dim_place(item), _int(item, "high")
        if place is not None and high is not None:
            wanted[place] = min(high, wanted.get(place, high))
    return _shorten(case, wanted)


def plan_into_table(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Cut each dim that positions run along to as many as their table has."""
    items = [item for item in findings if item.code == SIZES_BLAME and _int(item, "most") and item.facts.get("sizes")]
    wanted: dict[DimPlace, int] = {}
    for item in items:
        sizes, most = item.facts.get("sizes"), _int(item, "most")
        for place in sizes if isinstance(sizes, tuple) else ():
            path, _, dim = str(place).rstrip("]").rpartition(".shape[")
            if dim.isdigit() and most is not None:
                wanted[path, int(dim)] = most
    return _shorten(case, wanted)


def plan_agree(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Cut all dims that share a symbol to the smallest size that one of them has."""
    return _shorten(case, _sizes_by_place(evidence_of_code(findings, "AD-IN-016", "symbol"), "size"))


def plan_divisible(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Drop the remainder of each dim that must be a multiple."""
    return _shorten(case, _sizes_by_place(evidence_of_code(findings, "AD-IN-015", "remainder"), "expected_size"))


def _sizes_by_place(items: Sequence[Evidence], name: str) -> dict[DimPlace, int] | None:
    """The size that each finding has under ``name``, by its place; None where one lacks either."""
    sizes = {place: size for item in items if (place := _dim_place(item)) and (size := _int(item, name)) is not None}
    return sizes if len(sizes) == len(items) else None


def _shorten(case: Case, wanted: Mapping[DimPlace, int] | None) -> TreatmentPlan | None:
    """Cut ``wanted`` dims to these sizes, and with them every dim of the same symbols."""
    if not wanted:
        return None
    sizes = {**wanted, **_follow(case, wanted)}
    cuts = [
        (path, at, sizes[path, at], size)
        for path, at, size, _ in _dims(case)
        if (path, at) in sizes and sizes[path, at] < size
    ]
    return _resize_plan("cut", cuts)


def _resize_plan(verb: str, changes: Sequence[tuple[str, int, int, int]]) -> TreatmentPlan | None:
    """The plan of ``(path, dim, size, size before)``; None without any. Only a cut is a remedy, with a command."""
    plan = merge_plans([leaf_plan("", resize_step(path, at, new)) for path, at, new, _ in changes])
    if plan is None:
        return None
    text = ", ".join(f"{path}.shape[{at}] from {old} to {new}" for path, at, new, old in changes)
    return replace(plan, text=f"{verb} {text}", command=plan.command if verb == "cut" else "")


def _follow(case: Case, wanted: Mapping[DimPlace, int]) -> dict[DimPlace, int]:
    """The sizes that all dims then must have, from the smallest value that each symbol takes anywhere."""
    values: dict[str, int] = {}
    dims = list(_dims(case))
    for path, at, size, dim in dims:
        solved = solve(dim.expr, min(size, wanted.get((path, at), size))) if dim.expr is not None else None
        if solved is not None:
            symbol, value = solved
            values[symbol] = min(value, values.get(symbol, value))
    touched = {symbol for path, at, _, dim in dims if (path, at) in wanted and dim.expr for symbol in dim.expr.symbols}
    return {
        (path, at): new
        for path, at, _, dim in dims
        if dim.expr is not None and dim.expr.symbols & touched and (new := evaluate(dim.expr, values)) is not None
    }


def _dims(case: Case) -> Iterator[tuple[str, int, int, Dim]]:
    """``(path, dim, size given, compiled dim)`` of every dynamic dim."""
    for path, spec, tensor in couples(case):
        for at, (dim, size) in enumerate(zip(spec.dims or (), tensor.shape, strict=False)):
            if dim.static is None:
                yield path, at, size, dim


def _dim_place(item: Evidence) -> DimPlace | None:
    path, dim = path_of(item), _int(item, "dim")
    return None if path is None or dim is None else (path, dim)


def _int(item: Evidence, name: str) -> int | None:
    value = item.facts.get(name)
    return value if isinstance(value, int) else None


# Values.
VALUES_BLAME, READ_BY = "AD-RUN-022", "AD-RUN-032"
INDEX_SYMPTOMS = ("index-out-of-bounds", "cuda-assert")
_INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"})


def plan_nan_to_num(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Replace NaN by zero; Inf only where no input has NaN: -inf in a mask is meant so."""
    if nan := paths_of(evidence_of_code(findings, "AD-IN-019", "nan")):
        return each_leaf(nan, "nan_to_num", "replace NaN in {0}", command="{0} = {0}.masked_fill({0}.isnan(), 0)")
    infinite = paths_of(evidence_of_code(findings, "AD-IN-019", "inf"))
    return each_leaf(infinite, "nan_to_num", "replace Inf in {0}", command="{0} = torch.nan_to_num({0})")


def suspects(cause: str, about: Case, findings: Sequence[Evidence]) -> list[str]:
    """Inputs whose values would make the run fail as it did, for causes in values; none for other causes."""
    match cause:
        case "index-out-of-range" | "cuda-device-assert":
            failed = _with_symptom(findings, *INDEX_SYMPTOMS)
            if failed is None or (failed.facts.get("symptom") == "cuda-assert" and "variable" not in failed.facts):
                return []
            # The sizes that an index runs along which is a position.
            found = (
                item.facts.get("sizes")
                for item in findings
                if item.code == VALUES_BLAME and item.facts.get("position") is True
            )
            return (
                [str(place) for sizes in found if isinstance(sizes, tuple) for place in sizes]
                or _blamed_inputs(findings, "index")
                or _blamed_inputs(findings, "offsets")
                or _named_input(about, failed)
                or [
                    path
                    for path, tensor in _integers(about)
                    if not _is_position(findings) and _beyond(tensor, *_bounds(failed))
                ]
            )
        case "integer-division":
            failed = _with_symptom(findings, "integer-division")
            if failed is None:
                return []
            return (
                _blamed_inputs(findings, "division")
                or _named_input(about, failed)
                or [path for path, tensor in _integers(about) if tensor.stats is not None and tensor.stats.zeros]
            )
        case "runtime-assert":
            # Else the only input that the call in question reads.
            read = next((item.facts.get("inputs") for item in findings if item.code == READ_BY), None)
            alone = [str(path) for path in read] if isinstance(read, tuple) and len(read) == 1 else []
            return _blamed_inputs(findings, "assertion") or alone
        case _:
            return []


def _is_position(findings: Sequence[Evidence]) -> bool:
    """Whether the index depends on no input's value."""
    return any(item.code == VALUES_BLAME and item.facts.get("position") is True for item in findings)


def _chain(findings: Sequence[Evidence], kind: str) -> Evidence | None:
    """The blame chain that names inputs."""
    return next(
        (item for item in findings if (item.code, item.kind) == (VALUES_BLAME, kind) and item.facts.get("paths")), None
    )


def _blamed_inputs(findings: Sequence[Evidence], kind: str) -> list[str]:
    chain = _chain(findings, kind)
    paths = chain.facts.get("paths") if chain is not None else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, tuple) else []


def _indirect(findings: Sequence[Evidence], kind: str) -> bool:
    """Whether the kernel computes its index or divisor from the input: a corrected input then proves nothing."""
    chain = _chain(findings, kind)
    return chain is not None and chain.facts.get("direct") is not True


def plan_clamp(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Clamp the integer inputs that hold the bad index into the bounds that the kernel asserts."""
    failed = _with_symptom(findings, *INDEX_SYMPTOMS)
    offsets = _chain(findings, "offsets")
    if offsets is not None:
        # Offsets from 0 that do not fall and stay within the indices.
        path, reach = offsets.facts.get("path"), offsets.facts.get("bound")
        if not isinstance(path, str) or not isinstance(reach, int):
            return None
        text = f"make {path} start at 0, never decrease, and end within {reach}"
        return one_step(text, "mend_offsets", path=path, high=reach)
    if _is_position(findings):
        return plan_into_table(case, findings)
    if _indirect(findings, "index"):
        return None
    paths = suspects("index-out-of-range", case, findings)
    low, high = _bounds(failed) if failed is not None else (0, None)
    chain = _chain(findings, "index")
    bound = chain.facts.get("bound") if chain is not None else None
    if high is None and isinstance(bound, int):
        high = bound - 1
    if high is None:
        return None
    return each_leaf(paths, "clamp_values", f"clamp {{0}} to {low}..{high}", low=low, high=high)


def _bounds(failed: Evidence) -> tuple[int, int | None]:
    """Lowest and highest valid index. The kernel asserts ``0 <= tmp < bound``."""
    low, bound, high = (failed.facts.get(name) for name in ("low", "bound", "high"))
    size = _number(bound)
    return (low if isinstance(low, int) else 0), size - 1 if size is not None else _number(high)


def _number(value: FactValue) -> int | None:
    """``100`` of ``100`` and of the C++ literal ``100L``; None for a symbolic bound."""
    if isinstance(value, str) and value.rstrip("L").isdigit():
        return int(value.rstrip("L"))
    return value if isinstance(value, int) else None


def _named_input(case: Case, failed: Evidence) -> list[str]:
    """The input that the evidence itself names."""
    path = path_of(failed)
    return [path] if path is not None and tensor_at(case, path) is not None else []


def _beyond(tensor: TensorDesc, low: int, high: int | None) -> bool:
    stats = tensor.stats
    if stats is None:
        return False
    too_high = high is not None and stats.high is not None and stats.high > high
    return too_high or (stats.low is not None and stats.low < low)


def plan_replace_zeros(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Replace the zeros of integer inputs by ones."""
    paths = [] if _indirect(findings, "division") else suspects("integer-division", case, findings)
    return each_leaf(paths, "replace_value", "replace the zeros of {0} by ones", old=0, new=1)


def _with_symptom(findings: Sequence[Evidence], *symptoms: str) -> Evidence | None:
    return next((item for item in findings if item.facts.get("symptom") in symptoms), None)


def _integers(case: Case) -> list[tuple[str, TensorDesc]]:
    return [(path, tensor) for path, tensor in case.tensors.items() if tensor.dtype in _INTEGERS]


# Results.
VALUES, ALONE = "AD-RUN-016", "AD-RUN-015"
_ENDS_ALONE = ("signalled", "raised", "exited", "timed-out", "bad-return", "fake-kernel")


def plan_nodes(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Put the values of the exported program in place of those that the first diverging call wrote."""
    if exported_program(case) is None:
        return None
    return _plan(case, evidence_of_code(findings, VALUES, "diverges"), "put_nodes", "the program's values in place of")


def plan_operator_nodes(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """As ``plan_nodes``, for a custom operator that the exported program replaces by operators of PyTorch."""
    custom = [item for item in evidence_of_code(findings, VALUES, "diverges") if item.facts.get("custom") is True]
    return plan_nodes(case, custom)


def plan_zeros(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Put zeros in place of the NaN and Inf that the first such call wrote."""
    return _plan(
        case, evidence_of_code(findings, VALUES, "nan", "inf"), "put_zeros", "zeros in place of the NaN and Inf in"
    )


def plan_stand_in(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Replace the result of the one operator that fails when called alone by zeros of the form of its fake kernel."""
    names = list(dict.fromkeys(item.subject for item in evidence_of_code(findings, ALONE, *_ENDS_ALONE)))
    if len(names) != 1 or names[0] is None:
        return None
    text = f"put zeros of the promised form in place of what {names[0]} returns, to see the call return"
    return one_step(text, "stand_in_operator", target=names[0])


def _plan(case: Case, items: Sequence[Evidence], name: str, text: str) -> TreatmentPlan | None:
    """Plan one step for a call; None where values come from emulation, as the package cannot be called there."""
    facts = items[0].facts if len(items) == 1 else {}
    symbol, index = facts.get("symbol"), facts.get("index")
    if facts.get("beyond") is not True or not isinstance(symbol, str) or not isinstance(index, int):
        return None
    if case.needs.device_type not in (None, "cpu"):
        return None
    words = f"put {text} what {facts.get('kernel')} wrote, and leave the rest as it is"
    return one_step(words, name, call=index, symbol=symbol)
