"""The steps of a treatment: a plan of them, and the Python that a user would write for each.

The worker carries the steps out (``aotidoctor.worker.treatments``); ``command`` of a plan and the script of ``repro``
have their expressions. A call is rebuilt from a template: leaves of the given call by path, tensors made of lists of
numbers, plain values, tuples, lists and dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aotidoctor.model.record import JsonObject, JsonValue, record

Step = JsonObject


@record
class TreatmentPlan:
    """A treatment: steps for the worker, a description, and lines of Python for the user.

    ``others`` are the ways that fit as well, so that no run shows which is right.
    """

    text: str
    steps: tuple[Step, ...]
    command: str = ""
    others: tuple[str, ...] = ()


def one_step(text: str, op: str, *, command: str = "", **values: JsonValue) -> TreatmentPlan:
    """The plan of one step that is not about a leaf."""
    return TreatmentPlan(text=text, steps=({"op": op, **values},), command=command)


def merge_plans(plans: Sequence[TreatmentPlan | None]) -> TreatmentPlan | None:
    """Merge several plans; None when any of them is missing, since half a treatment proves nothing."""
    whole = [plan for plan in plans if plan is not None]
    if not whole or len(whole) < len(plans):
        return None
    return TreatmentPlan(
        text="; ".join(plan.text for plan in whole),
        steps=tuple(step for plan in whole for step in plan.steps),
        command="\n".join(plan.command for plan in whole if plan.command),
        others=tuple(other for plan in whole for other in plan.others),
    )


# Steps on one leaf as expressions.
def _contiguous(leaf: str, step: Step) -> str:
    stride = step.get("stride")
    if not isinstance(stride, list):
        return f"{leaf}.contiguous()"
    return f"torch.empty_strided({leaf}.shape, {tuple(stride)}, dtype={leaf}.dtype).copy_({leaf})"


def _numbers(value: JsonValue) -> str:
    return str(tuple(value)) if isinstance(value, list) else "()"


LEAF_EXPRESSIONS: Mapping[str, Callable[[str, Step], str]] = {
    "cast": lambda leaf, step: f"{leaf}.to(torch.{step['dtype']})",
    "contiguous": _contiguous,
    "dense": lambda leaf, step: f"{leaf}.{'dequantize' if step.get('quantized') else 'to_dense'}()",
    "to": lambda leaf, step: f"{leaf}.to({step['device']!r})",
    "resolve": lambda leaf, _: f"{leaf}.resolve_conj().resolve_neg()",
    "clone": lambda leaf, _: f"{leaf}.clone()",
    "reshape": lambda leaf, step: f"{leaf}.reshape({_numbers(step['shape'])})",
    "permute": lambda leaf, step: f"{leaf}.permute{_numbers(step['dims'])}",
    "nan_to_num": lambda leaf, _: f"{leaf}.nan_to_num()",
    "clamp_values": lambda leaf, step: f"{leaf}.clamp({step['low']}, {step['high']})",
    "replace_value": lambda leaf, step: f"{leaf}.masked_fill({leaf} == {step['old']}, {step['new']})",
    "clamp_dim": lambda leaf, step: f"{leaf}.narrow({step['dim']}, 0, {step['size']}).contiguous()",
    "to_tensor": lambda leaf, step: f"torch.as_tensor({leaf}, dtype=torch.{step['dtype']})",
}


def leaf_plan(text: str, *steps: Step, command: str | None = None) -> TreatmentPlan:
    """The plan of steps on one leaf, with the statement that does the same if no other one is given."""
    path = expression = str(steps[0]["path"])
    if command is None:
        for step in steps:
            expression = LEAF_EXPRESSIONS[str(step["op"])](expression, step)
        command = f"{path} = {expression}"
    return TreatmentPlan(text=text, steps=steps, command=command)


def each_leaf(
    paths: Sequence[str], op: str, text: str, *, command: str | None = None, **more: JsonValue
) -> TreatmentPlan | None:
    """Plan the same step for every leaf; its path replaces ``{0}`` in ``text``, and in ``command`` if that is given."""
    return merge_plans(
        [
            leaf_plan(
                text.format(path),
                {"op": op, "path": path, **more},
                command=None if command is None else command.format(path),
            )
            for path in paths
        ]
    )


def resize_step(path: str, dim: int, size: int) -> Step:
    """Cut a dim, or fill it with copies of its last entry."""
    return {"op": "clamp_dim", "path": path, "dim": dim, "size": size}


# Templates of calls.
def template(kind: str, keys: Sequence[str | int], children: Sequence[JsonObject]) -> JsonObject:
    """Make a template container of the family of ``kind``, which is the type of a ``Container``."""
    items: list[JsonValue] = [*children]
    if kind.endswith("dict"):
        return {"dict": [[key, item] for key, item in zip(keys, items, strict=True)]}
    return {"list" if kind == "list" else "tuple": items}


def template_expression(form: JsonValue, leaves: Mapping[str, str] | None = None) -> str | None:
    """A template as an expression; ``leaves`` are those of the leaves, by default their paths. None without any."""
    match form:
        case {"leaf": str(path)}:
            return path if leaves is None else leaves.get(path)
        case {"tensor_of": str(path), "dtype": str(dtype)}:
            return f"torch.tensor({path}, dtype=torch.{dtype})"
        case {"value": value}:
            return repr(value)
        case {"tuple": list(items)}:
            return _joined("(", [template_expression(item, leaves) for item in items], ",)" if len(items) == 1 else ")")
        case {"list": list(items)}:
            return _joined("[", [template_expression(item, leaves) for item in items], "]")
        case {"dict": list(pairs)}:
            named = [(pair[0], template_expression(pair[1], leaves)) for pair in pairs if isinstance(pair, list)]
            return _joined("{", [None if text is None else f"{key!r}: {text}" for key, text in named], "}")
    return None


def _joined(opening: str, parts: Sequence[str | None], closing: str) -> str | None:
    known = [part for part in parts if part is not None]
    return opening + ", ".join(known) + closing if len(known) == len(parts) else None


def call_expression(args: JsonObject, kwargs: JsonObject) -> str:
    """The call as a user would write it: ``model(args[1], mask=kwargs['mask'])``."""
    positional = next((items for items in args.values() if isinstance(items, list)), [])
    named = kwargs.get("dict")
    pairs = [item for item in named if isinstance(item, list)] if isinstance(named, list) else []
    words = [template_expression(item) or "" for item in positional]
    words += [f"{key}={template_expression(value) or ''}" for key, value in pairs]
    return f"model({', '.join(words)})"
