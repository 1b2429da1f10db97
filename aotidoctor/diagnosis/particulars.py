"""What to do, in the terms of the case: its own input, dimension and bound. Pure.

A playbook's remedy serves every case of its cause. Where the case tells more (which dimension, what it is and what it
should be, where a dimension is too many), this replaces the text, the command, or both. None leaves the playbook's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from aotidoctor.diagnosis.treat_plan import path_of, spec_at, tensor_at
from aotidoctor.diagnosis.treat_values import suspects
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.diagnosis import Remedy, compile_again
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.spec_text import describe_spec

LONGEST = 240  # of a command that is a whole call


@record
class Told:
    """None keeps what the playbook says; an empty command is none."""

    text: str | None = None
    command: str | None = None


Teller = Callable[[str, Evidence, Case, Sequence[Evidence]], Told]


def remedy_in(cause: str, remedy: Remedy, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Remedy:
    """``remedy`` of the playbook with what the case tells; ``lead`` is the evidence that names the case."""
    path = path_of(lead)
    if cause in BY_VALUE:
        told = _values(cause, lead, case, findings)
    elif cause in TELLERS and path is not None:
        told = TELLERS[cause](path, lead, case, findings)
    else:
        return remedy
    return replace(
        remedy,
        text=remedy.text if told.text is None else told.text,
        command=remedy.command if told.command is None else told.command,
    )


def _nontensor(path: str, lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> Told:
    if lead.kind != "none":
        return Told()
    return Told(text=f"Pass {_wanted(case, path)} for {path}; None was given.", command="")


def _device(path: str, lead: Evidence, _case: Case, _findings: Sequence[Evidence]) -> Told:
    if lead.kind != "meta":
        return Told()
    return Told(
        text=f"Make {path} on {lead.facts.get('expected_device') or 'a device'}: a meta tensor has no values to move.",
        command="",
    )


def _tree(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    keys = lead.facts.get("keys_expected")
    call = _call("input-tree", case, findings)
    if call is not None:
        return Told(text="Call it in the form of the export.", command=call)
    if lead.kind == "key-order" and isinstance(keys, tuple):
        return Told(text=f"Give {path} its keys in the order of the export: {', '.join(map(str, keys))}.",
                    command=f"{path} = {{key: {path}[key] for key in {keys!r}}}")  # fmt: skip
    spec = spec_at(case, path)
    if lead.kind == "nesting" and spec is not None and spec.dtype is not None and _numbers(case, path):
        made = f"{path} = torch.as_tensor({path}, dtype=torch.{spec.dtype})"
        return Told(text=f"Pass one tensor for {path}: {describe_spec(spec)} was exported.", command=made)
    given = case.inputs.args if case.inputs is not None else None
    if lead.kind == "nesting" and spec is not None and given is not None and len(given.children) == 1:
        # The arguments, all in one list.
        return Told(text=f"Pass the elements of {path} as separate arguments.", command=f"model(*{path})")
    return Told(text=f"Build {path} as at export: {lead.expected}.", command="")


def _numbers(case: Case, path: str) -> bool:
    """A nest of plain values at ``path``, which one tensor can be made of."""
    leaves = case.inputs.leaves() if case.inputs is not None else ()
    inside = [value for name, value in leaves if name.startswith(f"{path}[")]
    return bool(inside) and not any(isinstance(value, TensorDesc) for value in inside)


def _kwargs(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    call = _call("input-kwargs", case, findings)
    match lead.kind:
        case "missing":
            # A call with a made-up tensor in its place is no remedy.
            return Told(text=f"Pass {path} as well: {_wanted(case, path)}.", command="")
        case "extra":
            return Told(text=f"Leave out {path}.", command=call)
        case "renamed":
            return Told(text=f"Give {path} as {lead.expected}.", command=call)
        case _:
            return Told(text=f"Give {path} {lead.expected}.", command=call)


def _count(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    if path == "args":
        return Told()
    if lead.kind == "few":
        return Told(text=f"Pass {path} as well: {_wanted(case, path)}.", command="")
    if lead.facts.get("tensor_for_constant"):
        return Told(text=f"Leave out the tensor at {path}: it was a plain value at export.")
    return Told(text=f"Leave out {path}.", command=_call("input-count", case, findings))


def _order(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    other = lead.facts.get("swap_with")
    if not isinstance(other, str):
        return Told()
    return Told(command=_call("input-order", case, findings) or f"{path}, {other} = {other}, {path}")


def _rank(path: str, _lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> Told:
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if spec is None or tensor is None or spec.rank is None:
        return Told()
    more, both = len(tensor.shape) - spec.rank, f"{describe_spec(spec)} was exported, {_sizes(tensor.shape)} is given"
    ones = [at for at, size in enumerate(tensor.shape) if size == 1]
    if more == 1 and ones:
        text = f"Take the dimension of size 1 out of {path}"
        return Told(text=f"{text}: {both}.", command=f"{path} = {path}.squeeze({ones[0]})")
    if more == -1:
        at, text = _absent(spec, tensor.shape), f"Add the dimension that {path} lacks: {both}."
        return Told(text=text, command=f"{path} = {path}.unsqueeze({at})   # if this is one element of it")
    return Told(text=f"Give {path} {spec.rank} dimensions: {both}.", command="")


def _absent(spec: LeafSpec, shape: Sequence[int]) -> int:
    """Which dimension of the spec ``shape`` lacks: one that is dynamic rather than static, the first of several."""
    dims = spec.dims or ()
    for at in sorted(range(len(dims)), key=lambda at: dims[at].static is not None):
        rest = (*dims[:at], *dims[at + 1 :])
        if all(dim.static in (None, size) for dim, size in zip(rest, shape, strict=False)):
            return at
    return 0


def _shape(path: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    dim, size, wanted = (lead.facts.get(name) for name in ("dim", "size", "expected_size"))
    if not isinstance(dim, int) or wanted is None:
        return Told()
    order = _planned("input-shape", case, findings)
    if order is not None:
        return Told(text=f"Put the dims of {path} in the order of the export.", command=order)
    text = f"Give {path} the size {wanted} in dim {dim} (it has {size}), or export that dim as dynamic."
    return Told(text=text, command=f"torch.export.Dim({_symbol(path, dim)!r})   # for dim {dim} of {path}, at export")


def _range(path: str, lead: Evidence, _case: Case, _findings: Sequence[Evidence]) -> Told:
    dim, size = lead.facts.get("dim"), lead.facts.get("size")
    low, high = lead.facts.get("low"), lead.facts.get("high")
    if not isinstance(dim, int) or not isinstance(size, int):
        return Told()
    bounds = {"min": low if isinstance(low, int) else None, "max": high if isinstance(high, int) else None}
    inside = " and ".join(
        f"at {'least' if name == 'min' else 'most'} {value}" for name, value in bounds.items() if value is not None
    )
    wider = {"min": min(bounds["min"] or 0, size), "max": None if bounds["max"] is None else max(bounds["max"], size)}
    given = ", ".join(f"{name}={value}" for name, value in wider.items() if value is not None)
    text = f"Keep dim {dim} of {path} {inside} (it is {size}), or export with a wider range."
    return Told(
        text=text, command=f"torch.export.Dim({_symbol(path, dim)!r}, {given})   # for dim {dim} of {path}, at export"
    )


def _divisibility(path: str, lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> Told:
    dim, size, step = (lead.facts.get(name) for name in ("dim", "size", "step"))
    tensor = tensor_at(case, path)
    if not (isinstance(dim, int) and isinstance(size, int) and isinstance(step, int)) or tensor is None:
        return Told()
    up, down = -(-size // step) * step, size // step * step
    pad = (0,) * (2 * (len(tensor.shape) - dim) - 1) + (up - size,)
    text = f"Pad dim {dim} of {path} from {size} to {up}, or cut it to {down}: it must be a multiple of {step}."
    return Told(text=text, command=f"{path} = torch.nn.functional.pad({path}, {pad})")


def _weights(_path: str, lead: Evidence, case: Case, _findings: Sequence[Evidence]) -> Told:
    """With the reference there is nothing left to ask: it can be compiled."""
    reference = case.options.reference if case.reference is not None else None
    if reference is None or lead.facts.get("remedy") is not None:
        return Told()
    return Told(command=compile_again(reference))


def _disagree(path: str, _lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    """Cutting the one that is too long is what a user would do; cutting all others to it is not."""
    lines = _planned("input-shape-disagree", case, findings)
    return Told(command=lines if lines is not None and lines.startswith(f"{path} = ") and "\n" not in lines else "")


def _values(cause: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    paths = suspects(cause, case, findings)
    if not paths:
        return Told()
    if cause == "integer-division":
        return Told(command="\n".join(f"print(int(({path} == 0).sum()))   # zeros" for path in paths[:3]))
    if paths[0].endswith("]") and ".shape[" in paths[0]:
        return _positions(paths[0], lead, case, findings)
    bound = next((item.facts["bound"] for item in (lead, *findings) if _is_bound(item.facts.get("bound"))), None)
    allowed = f"   # must be in 0..{int(str(bound).rstrip('L')) - 1}" if bound is not None else ""
    return Told(command="\n".join(f"print(int({path}.min()), int({path}.max())){allowed}" for path in paths[:3]))


def _positions(place: str, lead: Evidence, case: Case, findings: Sequence[Evidence]) -> Told:
    """An index that is a position: the size is what to change."""
    path, _, dim = place.rstrip("]").rpartition(".shape[")
    most, origin = lead.facts.get("most"), lead.facts.get("origin") or "the table"
    text = f"Keep dim {dim} of {path} at most {most}, or make {origin} larger."
    return Told(text=text, command=_planned("index-out-of-range", case, findings) or "")


def _is_bound(value: object) -> bool:
    return isinstance(value, int | str) and re.fullmatch(r"\d{1,18}L?", str(value)) is not None


def _planned(cause: str, case: Case, findings: Sequence[Evidence]) -> str | None:
    """The lines of the treatment, where it is what the user would do as well."""
    from aotidoctor.diagnosis.treatments import plan_treatment  # noqa: PLC0415 - it imports every planner

    plan = plan_treatment(cause, case, findings)
    return plan.command if plan is not None and 0 < len(plan.command) <= LONGEST else None


def _call(cause: str, case: Case, findings: Sequence[Evidence]) -> str | None:
    """The whole call in the form of the export; None where it is long, or some of it would have to be made up."""
    planned = _planned(cause, case, findings)
    return planned if planned is not None and planned.startswith("model(") else None


def _wanted(case: Case, path: str) -> str:
    spec = spec_at(case, path)
    return "a tensor" if spec is None else describe_spec(spec)


def _sizes(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _symbol(path: str, dim: int) -> str:
    """A name for the dimension, from the input's own: ``input_ids_1`` of ``kwargs['input_ids']``."""
    words = re.findall(r"\w+", path)
    return "_".join([*(words[1:] if words[:1] == ["kwargs"] else words), str(dim)])


TELLERS: dict[str, Teller] = {
    "input-nontensor": _nontensor,
    "input-device": _device,
    "input-tree": _tree,
    "input-kwargs": _kwargs,
    "input-count": _count,
    "input-order": _order,
    "input-rank": _rank,
    "input-shape": _shape,
    "input-range": _range,
    "input-divisibility": _divisibility,
    "input-shape-disagree": _disagree,
    "weights-differ": _weights,
}
# What lies in values: the inputs come from the findings together, not from the evidence in front.
BY_VALUE = ("index-out-of-range", "cuda-device-assert", "integer-division")
