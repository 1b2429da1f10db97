"""Arguments of custom operators from a run of the exported program: for machines where calls cannot be hooked.

The compiled code may lay its tensors out otherwise; the values are the same. Calls are numbered in the program's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotidoctor.worker.call import Call
from aotidoctor.worker.operators.arguments import Described, describe_values
from aotidoctor.worker.operators.ops import split_target

if TYPE_CHECKING:
    from aotidoctor.worker.operators.inputs import Keeper


def capture_from_program(path: Path, targets: Sequence[str], call: Call, keeper: Keeper) -> None:
    """Interpret the program on the inputs; ``keeper`` gets each call of one of ``targets``."""
    import torch
    from torch.export._tree_utils import reorder_kwargs

    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    program = torch.export.load(str(path))
    names = {split_target(target): target for target in targets}
    seen = 0

    class Capture(torch.fx.Interpreter):  # type: ignore[misc]
        """Saves the arguments of wanted calls before they are made."""

        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal seen
            name = names.get(_name(target))
            if name is not None:
                keeper.keep(seen, name, lambda: _arguments(target, args, kwargs))
                seen += 1
            return super().call_function(target, args, kwargs)

    kwargs = reorder_kwargs(call.kwargs, program.call_spec.in_spec)
    with torch.no_grad():
        Capture(program.module()).run(*torch.utils._pytree.tree_leaves((call.args, kwargs)))


def _name(target: Any) -> tuple[str, str]:
    """``("zoo::misbehave", "default")`` of an operator overload."""
    schema = getattr(target, "_schema", None)
    return ("", "") if schema is None else (schema.name, schema.overload_name or "default")


def _arguments(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Described, list[Any]]:
    names = [argument.name for argument in target._schema.arguments]
    return describe_values({**dict(zip(names, args, strict=False)), **kwargs})
