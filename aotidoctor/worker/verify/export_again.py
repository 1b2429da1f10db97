"""Run the user's function that exports a program, and tell what it did: what it raised, what it merged.

While the function runs, ``torch.export.export`` is noted: model, example inputs and dims of the call that raised, or of
the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field, replace
from typing import Any

import torch

from aotidoctor.model.case import Tolerances
from aotidoctor.model.evidence import list_names
from aotidoctor.model.record import record
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.reference_program import load_reference, users_line
from aotidoctor.worker.stages import as_module, copy_of
from aotidoctor.worker.tensors import compare_outputs, settle_verdicts
from aotidoctor.worker.user_code import attribute_replaced
from aotidoctor.worker.verify.program_view import leaf_examples, user_inputs

_LONGEST_TRACE = 64 * 1024
_SEED = 0


@record
class ExportCall:
    """A call of ``torch.export.export``. ``error`` is what it raised, ``program`` what it returned.

    ``around`` are contexts to export in, ``settings`` those of the compiler.
    """

    model: Any
    call: ModelCall
    dynamic_shapes: Any = None
    strict: bool = False
    error: Exception | None = None
    program: Any = None
    around: tuple[Callable[[], Any], ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


@record
class FunctionRun:
    """What the user's function returned or raised, and its call of ``torch.export.export``."""

    returned: Any = None
    error: Exception | None = None
    exported: ExportCall | None = None


def run_function(spec: str, channel: Channel, given: ModelCall | None = None) -> FunctionRun:
    """Run the function in ``module.py:function``.

    Of a model that it returns with example inputs, or that is called with ``given``, the export.
    """
    noted: list[ExportCall] = []
    try:
        with _note_exports(noted):
            loaded = load_reference(spec, channel)
            args, kwargs = loaded.example or ((given.args, given.kwargs) if given is not None else (None, None))
            made = loaded.program
            if made is None and args is not None:
                made = torch.export.export(as_module(loaded.call), args, kwargs)
    except Exception as error:
        return FunctionRun(error=error, exported=noted[-1] if noted else None)
    if made is None:
        return FunctionRun(error=TypeError(f"{spec} returns neither an exported program nor (model, args)"))
    return FunctionRun(returned=made, exported=noted[-1] if noted else None)


def _note_exports(noted: list[ExportCall]) -> AbstractContextManager[None]:
    original = torch.export.export

    def export(mod: Any, args: Any, kwargs: Any = None, *, dynamic_shapes: Any = None, **options: Any) -> Any:
        given = ModelCall(args=tuple(args), kwargs=dict(kwargs or {}))
        strict = bool(options.get("strict", False))
        entry = ExportCall(model=mod, call=given.copy() or given, dynamic_shapes=dynamic_shapes, strict=strict)
        try:
            made = original(mod, args, kwargs, dynamic_shapes=dynamic_shapes, **options)
        except Exception as error:
            noted.append(replace(entry, error=error))
            raise
        noted.append(replace(entry, program=made))
        return made

    return attribute_replaced(torch.export, "export", export)


def merged_leaves(run: FunctionRun) -> tuple[str, str] | None:
    """An input that the program never reads, and the one with the same example that stands in its place.

    The model itself, called with other values in each, shows that it reads both.
    """
    export = run.exported
    if export is None or export.program is None or export.program is not run.returned:
        return None
    examples = leaf_examples(export.program)
    inputs = [(item.path, item.node, one) for item, one in zip(user_inputs(export.program), examples, strict=False)]
    for path, node, one in inputs:
        if node is None or node.users:
            continue
        other = next((name for name, its, two in inputs if two is one and its is not None and its.users), None)
        if other is None or (distinct := distinct_inputs(export.call)) is None:
            continue
        theirs = call_model(export.model, distinct)
        if not compare_calls(call_once(export.program.module(), distinct), theirs)["agrees"]:
            return path, other
    return None


def describe_error(error: Exception, exported: ExportCall | None) -> dict[str, Any]:
    """The fields of ``RaisedError`` for a function that made the call ``exported``.

    ``by`` is ``model`` where plain PyTorch raises as well, ``export`` where only the export does, else ``function``.
    """
    import traceback

    by = "function"
    if exported is not None and exported.error is error:
        by = "export"
        try:
            call_model(exported.model, exported.call)
        except Exception as own:
            # As the user meets it without torch.export.
            error, by = own, "model"
    return {
        "type": type(error).__name__,
        "message": str(error)[:16384],
        "traceback": "".join(traceback.format_exception(error))[-_LONGEST_TRACE:],
        "where": users_line(error) or "",
        "by": by,
    }


def call_model(model: Any, call: ModelCall) -> Any:
    """What plain PyTorch computes, on copies of model and inputs."""
    return call_once(copy_of(model), call)


def call_once(function: Callable[..., Any], call: ModelCall) -> Any:
    """The result of a call on copies of its inputs, with the seed of all calls."""
    own = call.copy() or call
    torch.manual_seed(_SEED)
    with torch.no_grad():
        return function(*own.args, **own.kwargs)


def compare_calls(ours: Any, theirs: Any) -> dict[str, Any]:
    """``agrees``, and which outputs of the two ``differs``, in words."""
    facts = compare_outputs(ours, theirs, Tolerances())
    settle_verdicts(facts)
    wrong = [f"{leaf['path']} ({leaf['what'] or 'values'})" for leaf in facts["outputs"] if not leaf["agrees"]]
    return {
        "agrees": bool(facts["agrees"]),
        "differs": list_names(wrong, 3) or ("" if facts["agrees"] else "other outputs"),
    }


def distinct_inputs(call: ModelCall) -> ModelCall | None:
    """The call with other values in inputs that hold the same ones; None where no two do."""
    tensors = call.tensors()
    same = [
        path
        for at, (path, tensor) in enumerate(tensors)
        if any(
            other.shape == tensor.shape and other.dtype == tensor.dtype and torch.equal(other, tensor)
            for _, other in tensors[:at]
        )
    ]

    def visit(path: str, leaf: Any) -> Any:
        return leaf.flip(tuple(range(leaf.dim()))) + 1 if path in same and leaf.is_floating_point() else leaf

    return call.rebuilt(visit) if same else None
