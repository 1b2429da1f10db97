"""Rule A05: dims that were meant to be dynamic and are not.

With ``dynamic_shapes`` (what was asked of torch.export) it is a comparison. Without, there are only signs: a static dim
of the size that a dynamic dim had in the sample, and that size as a constant in the graph.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.verify.graph import graphs
from aotidoctor.worker.verify.paths import UserInput, argument_names, leaf_examples, user_inputs
from aotidoctor.worker.verify.records import Records, name_of

_SHAPES = {
    "aten::view": 1,
    "aten::reshape": 1,
    "aten::expand": 1,
    "aten::_unsafe_view": 1,
    "aten::full": 0,
    "aten::zeros": 0,
    "aten::ones": 0,
    "aten::new_zeros": 1,
    "aten::new_ones": 1,
    "aten::new_full": 1,
}
"""Operator -> the argument that is a shape."""
# Sizes that many dims have for reasons of their own.
_LEAST_TELLING = 3


def check_specialized(program: Any, declared: Any, records: Records) -> list[str]:
    """Arguments of ``declared`` that the program does not have."""
    inputs = user_inputs(program)
    if declared is None:
        _look_for_signs(program, inputs, records)
        return []
    given = declared if isinstance(declared, dict) else {str(at): part for at, part in enumerate(declared)}
    names = argument_names(program)
    used: set[str] = set()
    for item in inputs:
        _compare(item, _asked(item, given, names, used), records)
    return [key for key in given if key not in used]


def _asked(item: UserInput, given: dict[str, Any], names: list[str], used: set[str]) -> Any:
    """What ``given`` holds for this leaf, by the name of its argument or by its number; None when nothing."""
    if not item.keys:
        return None
    first, *rest = item.keys
    spellings = [first] if item.is_keyword else [*(names[first : first + 1]), first]
    name = next((str(one) for one in spellings if str(one) in given), None)
    if name is None:
        return None
    used.add(name)
    found = given[name]
    for key in rest:
        if isinstance(found, list) and isinstance(key, int):
            found = found[key] if key < len(found) else None
        elif isinstance(found, dict):
            found = found.get(str(key))
    return found


def _compare(item: UserInput, asked: Any, records: Records) -> None:
    shape = getattr(item.val, "shape", None)
    if shape is None or asked is None:
        return
    marks = asked.items() if isinstance(asked, dict) else enumerate(asked) if isinstance(asked, list) else ()
    for key, mark in marks:
        dim = int(key)
        if mark is None or mark == "static" or dim >= len(shape):
            continue
        if isinstance(shape[dim], int):
            name = mark.get("name", "dynamic") if isinstance(mark, dict) else mark
            kind = "automatic" if mark == "auto" else "declared"
            _add(item, dim, kind, records, why="regardless of the inputs", expected=f"a dynamic size ({name})")


def _add(item: UserInput, dim: int, kind: str, records: Records, *, why: str, expected: str) -> None:
    """A dim of an input that has one size."""
    place, size = f"{item.path}.shape[{dim}]", item.val.shape[dim]
    observed = f"{place} is {size}, {why}"
    records.add("A05", kind, node=item.node, target=place, observed=observed, expected=expected, size=size)


def _look_for_signs(program: Any, inputs: list[UserInput], records: Records) -> None:
    examples = leaf_examples(program)
    if len(examples) != len(inputs):
        return
    dynamic: dict[int, str] = {}
    for item, example in zip(inputs, examples, strict=True):
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            if not isinstance(size, int) and example.shape[dim] >= _LEAST_TELLING:
                dynamic.setdefault(int(example.shape[dim]), f"{item.path}.shape[{dim}]")
    for item in inputs:
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            if isinstance(size, int) and size in dynamic:
                why = f"the size of {dynamic[size]} in the sample"
                expected = f"a dynamic size, if it goes with {dynamic[size]}"
                _add(item, dim, "hint", records, why=why, expected=expected)
    _constants(program, dynamic, records)


def _constants(program: Any, dynamic: dict[int, str], records: Records) -> None:
    for path, module in graphs(program):
        for node in module.graph.nodes:
            at = _SHAPES.get(getattr(getattr(node.target, "_schema", None), "name", ""))
            shape = node.args[at] if at is not None and at < len(node.args) else ()
            for size in shape if isinstance(shape, list | tuple) else ():
                if isinstance(size, int) and size in dynamic:
                    observed = (
                        f"{name_of(node.target)} with the constant {size}, the size of {dynamic[size]} in the sample"
                    )
                    expected = f"a size computed from {dynamic[size]}, if that is intended"
                    records.add(
                        "A05",
                        "hint",
                        node=node,
                        target=node.target,
                        graph=path,
                        observed=observed,
                        expected=expected,
                        size=size,
                    )
