"""Rules G06 to G08: what the graph reads from its module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aotidoctor.worker.verify.records import Records


def check_attribute(node: Any, module: Any, path: str, verifiers: Sequence[Any], records: Records) -> None:
    """The attribute that a ``get_attr`` node of ``module`` reads."""
    add = partial(records.add, node=node, target=node.target, graph=path)
    if not isinstance(node.target, str):
        kind = type(node.target).__name__
        add(
            "G06",
            "attribute-name",
            target=kind,
            observed=f"a target that is a {kind}",
            expected="the attribute's name, as text",
        )
        return
    try:
        attribute = module
        for name in node.target.split("."):
            attribute = getattr(attribute, name)
    except AttributeError:
        observed = f"no attribute {node.target} in {path or 'the graph module'}"
        add("G06", "attribute-absent", observed=observed, expected="an existing attribute")
        return
    kind = type(attribute).__name__
    if kind == "LoweredBackendModule":
        _check_lowered(attribute, add)
        return
    if kind in ("AOTInductorEPModule", "AOTInductorRunnerWrapper"):
        return
    for verifier in verifiers:
        allowed = _allowed_attributes(verifier, is_top=not path)
        if not isinstance(attribute, allowed):
            names = ", ".join(item.__name__ for item in allowed)
            add("G07", "attribute-type", observed=f"{node.target} is a {kind}", expected=f"one of {names}")
            return


def _allowed_attributes(verifier: Any, *, is_top: bool) -> tuple[type, ...]:
    """Subgraphs may hold parameters and tensors (torch 2.8 and later), the top may not: there they are inputs."""
    inner = getattr(verifier, "allowed_getattr_types_for_subgm", verifier.allowed_getattr_types)
    return tuple(verifier.allowed_getattr_types() if is_top else inner())


def _check_lowered(module: Any, add: Callable[..., None]) -> None:
    backend = getattr(module, "backend_id", None)
    if backend == "aoti" and hasattr(module, "original_module") and hasattr(module, "module_name"):
        return
    wanted = (("backend_id", str), ("processed_bytes", bytes), ("compile_specs", list))
    fields = [(name, getattr(module, name, None), kind) for name, kind in wanted]
    wrong = [f"{name} is a {type(value).__name__}" for name, value, kind in fields if not isinstance(value, kind)]
    if not hasattr(module, "original_module"):
        wrong.append("original_module does not exist")
    if wrong:
        observed = f"a lowered module of backend {backend!r} in which {', '.join(wrong)}"
        expected = "backend_id (str), processed_bytes (bytes), compile_specs (list) and original_module"
        add("G08", "lowered-module", observed=observed, expected=expected)
