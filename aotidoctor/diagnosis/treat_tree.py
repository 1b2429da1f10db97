"""Treatments of the call itself: nesting, keys, keywords, order, leaves too many or too few, plain values for tensors.

The call is rebuilt from a template in the form of the call spec, whose leaves name leaves of the given call. A leaf
that nobody gave is made up where its shape is known: the run then shows that its absence was the fault, and the text
says that the tensor is a stand-in.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.treat_fit import Assignment, Hole, assign
from aotidoctor.diagnosis.treat_plan import Plan, couples, found, merged, path_of, spec_at, template, value_at
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import LeafValue, PlainValue
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.tree import Leaf, Tree, child_path


def tree(case: Case, _findings: Sequence[Evidence]) -> Plan | None:
    """Rebuild the call in the form of the call spec; None when leaves cannot be told apart."""
    contract, inputs = case.contract, case.inputs
    if contract is None or inputs is None or contract.args is None or contract.kwargs is None:
        return None
    assignment = assign(contract, inputs)
    if assignment is None:
        return None
    stand_ins = [_stand_in(case, hole) for hole in assignment.holes]
    if any(step is None for step in stand_ins):
        return None
    step: JsonObject = {"op": "tree", "args": assignment.args, "kwargs": assignment.kwargs}
    spelt = [*_spelt(assignment.args), *_spelt(assignment.kwargs)]
    as_given: list[JsonValue] = [_template(inputs.args, "args", {}), _template(inputs.kwargs, "kwargs", {})]
    form: list[JsonValue] = [assignment.args, assignment.kwargs]
    if spelt and _is_as_given(form, as_given):
        lines = [f"{path} = torch.as_tensor({path}, dtype=torch.{dtype})" for path, dtype in spelt]
        text = f"make {'a tensor' if len(spelt) == 1 else 'tensors'} of {', '.join(path for path, _ in spelt)}"
        return Plan(text=text, steps=(step,), command="\n".join(lines))
    return Plan(
        text=_text(assignment),
        steps=(step, *(item for item in stand_ins if item is not None)),
        command=_call(assignment.args, assignment.kwargs),
    )


def _spelt(form: JsonValue) -> list[tuple[str, str]]:
    """Path and dtype of the lists of numbers that a template makes tensors of."""
    match form:
        case {"tensor_of": str(path), "dtype": str(dtype)}:
            return [(path, dtype)]
        case {"dict": [*items]} | {"list": [*items]} | {"tuple": [*items]} | [*items]:
            return [found for item in items for found in _spelt(item)]
        case _:
            return []


def _is_as_given(form: JsonValue, given: JsonValue) -> bool:
    """Whether a template leaves the call as it was given but for the tensors that it makes."""
    match form, given:
        case {"tensor_of": _}, _:
            return True
        case dict(), dict() if form.keys() == given.keys():
            return all(_is_as_given(form[key], given[key]) for key in form)
        case list(), list() if len(form) == len(given):
            return all(map(_is_as_given, form, given))
        case _:
            return form == given


def _text(assignment: Assignment) -> str:
    parts = ["put the call into the form it was exported with"]
    if assignment.dropped:
        parts.append(f"without {', '.join(assignment.dropped)}")
    if assignment.holes:
        parts.append(f"with a stand-in tensor for {', '.join(hole.path for hole in assignment.holes)}")
    return ", ".join(parts)


def _stand_in(case: Case, hole: Hole) -> JsonObject | None:
    """Insert a made-up tensor for a leaf that is missing; None when its shape or dtype is unknown."""
    tensor = made_up(case, hole.spec)
    return None if tensor is None else {"op": "insert", "path": hole.path, "tensor": tensor}


def made_up(case: Case, spec: LeafSpec) -> JsonObject | None:
    """A JSON tensor leaf of the dtype and shape of ``spec``; dynamic dims as the other inputs have them."""
    if spec.dtype is None or (spec.dims is None and spec.rank != 0):
        return None
    sizes = {
        str(dim.expr): size
        for _, other, tensor in couples(case)
        for dim, size in zip(other.dims or (), tensor.shape, strict=False)
        if dim.expr is not None
    }
    shape: list[JsonValue] = []
    for dim in spec.dims or ():
        known = sizes.get(str(dim.expr)) if dim.expr is not None else None
        shape.append(dim.static if dim.static is not None else known if known is not None else max(dim.min or 2, 1))
    # Between 0 and 1: a program may round them to indices, or take their logarithm.
    bounds: JsonObject = {"low": 0.0, "high": 1.0} if "float" in spec.dtype else {}
    return {"tensor": {"dtype": spec.dtype, "shape": shape, "seed": 0, **bounds}}


def swap(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Exchange the two leaves that fit each other's place."""
    moves: dict[str, str] = {}
    for item in found(findings, "AD-IN-009", "swapped"):
        first, second = path_of(item), item.facts.get("swap_with")
        if first is None or not isinstance(second, str):
            return None
        # Of more than two that were rotated, each has a finding of its own.
        moves |= {first: second} if item.facts.get("mutual") is False else {first: second, second: first}
    if not moves or case.inputs is None:
        return None
    args = _template(case.inputs.args, "args", moves)
    kwargs = _template(case.inputs.kwargs, "kwargs", moves)
    text = "; ".join(filter(None, (_words(place, source, moves) for place, source in moves.items())))
    step: JsonObject = {"op": "tree", "args": args, "kwargs": kwargs}
    return Plan(text=text, steps=(step,), command=_call(args, kwargs))


def _words(place: str, source: str, moves: dict[str, str]) -> str:
    if moves.get(source) != place:
        return f"give {source} as {place}"
    return f"exchange {place} and {source}" if place < source else ""


def _template(given: Tree[LeafValue], path: str, moves: dict[str, str]) -> JsonObject:
    """The call as it is, with some leaves in each other's place."""
    if isinstance(given, Leaf):
        return {"leaf": moves.get(path, path)}
    children = [_template(child, child_path(path, given, at), moves) for at, child in enumerate(given.children)]
    return template(given.type, given.keys, children)


def nontensor(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Make tensors of numbers and arrays where a tensor belongs; a stand-in for None."""
    return merged([_to_tensor(case, item) for item in found(findings, "AD-IN-004")])


def _to_tensor(case: Case, item: Evidence) -> Plan | None:
    path = path_of(item)
    value, spec = value_at(case, path), spec_at(case, path)
    if path is None or spec is None or spec.dtype is None or not isinstance(value, PlainValue):
        return None
    if item.kind == "none":
        tensor = made_up(case, spec)
        text = f"put a stand-in tensor at {path}, to see the call return"
        return Plan(text=text, steps=({"op": "stand_in", "path": path, **tensor},)) if tensor is not None else None
    if item.kind == "number" and spec.rank not in (0, None) and not _one_element(spec):
        return None
    if item.kind not in ("number", "ndarray"):
        return None
    step: JsonObject = {"op": "to_tensor", "path": path, "dtype": spec.dtype}
    made = f"torch.as_tensor({path}, dtype=torch.{spec.dtype})"
    return Plan(text=f"make a tensor of {path}", steps=(step,), command=f"{path} = {made}")


def _one_element(spec: LeafSpec) -> bool:
    return spec.dims is not None and all(dim.static == 1 for dim in spec.dims)


def _call(args: JsonObject, kwargs: JsonObject) -> str:
    """The call as a user would write it: ``model(args[1], mask=kwargs['mask'])``."""
    positional = next((items for items in args.values() if isinstance(items, list)), [])
    named = kwargs.get("dict")
    pairs = [item for item in named if isinstance(item, list)] if isinstance(named, list) else []
    words = [_python(item) for item in positional]
    words += [f"{key}={_python(value)}" for key, value in pairs]
    return f"model({', '.join(words)})"


def _python(form: JsonValue) -> str:
    """A template as the expression that a user would write."""
    match form:
        case {"leaf": str(path)}:
            return path
        case {"tensor_of": str(path), "dtype": str(dtype)}:
            return f"torch.tensor({path}, dtype=torch.{dtype})"
        case {"dict": [*items]}:
            pairs = [(item[0], item[1]) for item in items if isinstance(item, list)]
            return "{" + ", ".join(f"{key!r}: {_python(value)}" for key, value in pairs) + "}"
        case {"list": [*items]}:
            return "[" + ", ".join(_python(item) for item in items) + "]"
        case {"tuple": [*items]}:
            inner = ", ".join(_python(item) for item in items)
            return f"({inner},)" if len(items) == 1 else f"({inner})"
        case {"value": value}:
            return repr(value)
        case _:
            return ""
