"""Treatments of values: NaN out, indices into bounds, zeros away. They prove whose fault it was; they are no remedy."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.treat_plan import Plan, each_leaf, found, merged, path_of, paths_of, tensor_at
from aotidoctor.diagnosis.treat_sizes import into_table
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.json_types import JsonObject

BLAME, READ_BY = "AD-RUN-022", "AD-RUN-032"
INDEX_SYMPTOMS = ("index-out-of-bounds", "cuda-assert")
_INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"})


def nan_to_num(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Finite numbers in place of NaN and Inf."""
    items = [*found(findings, "AD-IN-019", "nan"), *found(findings, "AD-IN-019", "inf")]
    return each_leaf(paths_of(items), "nan_to_num", "replace NaN and Inf in {0}", "{0} = torch.nan_to_num({0})")


def suspects(cause: str, about: Case, findings: Sequence[Evidence]) -> list[str]:
    """The inputs whose values would make the run fail as it did, for the causes that lie in values; else none."""
    match cause:
        case "index-out-of-range" | "cuda-device-assert":
            failed = _with_symptom(findings, *INDEX_SYMPTOMS)
            if failed is None or (failed.facts.get("symptom") == "cuda-assert" and "variable" not in failed.facts):
                return []
            return (
                _positions(findings)
                or _blamed(findings, "index")
                or _blamed(findings, "offsets")
                or _named(about, failed)
                or ([] if _is_position(findings) else _out_of_bounds(about, *_bounds(failed)))
            )
        case "integer-division":
            failed = _with_symptom(findings, "integer-division")
            if failed is None:
                return []
            return _blamed(findings, "division") or _named(about, failed) or _with_zeros(about)
        case "runtime-assert":
            return _blamed(findings, "assertion") or _read_alone(findings)
        case _:
            return []


def _read_alone(findings: Sequence[Evidence]) -> list[str]:
    """The only input that the call in question reads."""
    read = next((item.facts.get("inputs") for item in findings if item.code == READ_BY), None)
    return [str(path) for path in read] if isinstance(read, tuple) and len(read) == 1 else []


def _is_position(findings: Sequence[Evidence]) -> bool:
    """The index was followed to its end, and no input's value is in it."""
    return any(item.code == BLAME and item.facts.get("position") is True for item in findings)


def _positions(findings: Sequence[Evidence]) -> list[str]:
    """The sizes that an index runs along which is a position."""
    found = (item.facts.get("sizes") for item in findings if item.code == BLAME and item.facts.get("position") is True)
    return [str(place) for sizes in found if isinstance(sizes, tuple) for place in sizes]


def _chain(findings: Sequence[Evidence], kind: str) -> Evidence | None:
    """The blame chain that names inputs."""
    return next(
        (item for item in findings if (item.code, item.kind) == (BLAME, kind) and item.facts.get("paths")), None
    )


def _blamed(findings: Sequence[Evidence], kind: str) -> list[str]:
    chain = _chain(findings, kind)
    paths = chain.facts.get("paths") if chain is not None else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, tuple) else []


def _indirect(findings: Sequence[Evidence], kind: str) -> bool:
    """The kernel computes its index or divisor from the input: correcting the input's own value proves nothing."""
    chain = _chain(findings, kind)
    return chain is not None and chain.facts.get("direct") is not True


def clamp(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Clamp the integer inputs that hold the bad index into the bounds that the kernel asserts."""
    failed = _with_symptom(findings, *INDEX_SYMPTOMS)
    offsets = _chain(findings, "offsets")
    if offsets is not None:
        return _in_order(offsets)
    if _is_position(findings):
        return into_table(case, findings)
    if _indirect(findings, "index"):
        return None
    paths = suspects("index-out-of-range", case, findings)
    low, high = _bounds(failed) if failed is not None else (0, None)
    chain = _chain(findings, "index")
    bound = chain.facts.get("bound") if chain is not None else None
    if high is None and isinstance(bound, int):
        high = bound - 1
    return merged([_clamp_one(path, low, high) for path in paths]) if high is not None else None


def _in_order(chain: Evidence) -> Plan | None:
    """Offsets from 0 that do not fall and stay within the indices."""
    path, reach = chain.facts.get("path"), chain.facts.get("bound")
    if not isinstance(path, str) or not isinstance(reach, int):
        return None
    step: JsonObject = {"op": "mend_offsets", "path": path, "high": reach}
    return Plan(text=f"make {path} start at 0, never decrease, and end within {reach}", steps=(step,))


def _clamp_one(path: str, low: int, high: int) -> Plan:
    step: JsonObject = {"op": "clamp_values", "path": path, "low": low, "high": high}
    return Plan(text=f"clamp {path} to {low}..{high}", steps=(step,), command=f"{path} = {path}.clamp({low}, {high})")


def _bounds(failed: Evidence) -> tuple[int, int | None]:
    """Lowest and highest good index. The kernel says ``0 <= tmp < bound``: ``bound`` itself is out."""
    low, bound, high = (failed.facts.get(name) for name in ("low", "bound", "high"))
    size = _number(bound)
    return (low if isinstance(low, int) else 0), size - 1 if size is not None else _number(high)


def _number(value: FactValue) -> int | None:
    """``100`` of ``100`` and of the C++ literal ``100L``; None for a symbolic bound."""
    if isinstance(value, str) and value.rstrip("L").isdigit():
        return int(value.rstrip("L"))
    return value if isinstance(value, int) else None


def _named(case: Case, failed: Evidence) -> list[str]:
    """The input that the evidence itself names."""
    path = path_of(failed)
    return [path] if path is not None and tensor_at(case, path) is not None else []


def _beyond(tensor: TensorDesc, low: int, high: int | None) -> bool:
    stats = tensor.stats
    if stats is None:
        return False
    too_high = high is not None and stats.high is not None and stats.high > high
    return too_high or (stats.low is not None and stats.low < low)


def replace_zeros(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Ones in place of the zeros of integer inputs."""
    paths = [] if _indirect(findings, "division") else suspects("integer-division", case, findings)
    command = "{0} = {0}.masked_fill({0} == 0, 1)"
    return each_leaf(paths, "replace_value", "replace the zeros of {0} by ones", command, old=0, new=1)


def _with_symptom(findings: Sequence[Evidence], *symptoms: str) -> Evidence | None:
    return next((item for item in findings if item.facts.get("symptom") in symptoms), None)


def _out_of_bounds(case: Case, low: int, high: int | None) -> list[str]:
    return [path for path, tensor in _integers(case) if _beyond(tensor, low, high)]


def _with_zeros(case: Case) -> list[str]:
    return [path for path, tensor in _integers(case) if tensor.stats is not None and tensor.stats.zeros]


def _integers(case: Case) -> list[tuple[str, TensorDesc]]:
    return [(path, tensor) for path, tensor in case.tensors.items() if tensor.dtype in _INTEGERS]
