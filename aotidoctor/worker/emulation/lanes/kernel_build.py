"""A kernel's text executed, in a namespace of its own: the function that Triton's interpreter runs.

No chain of attributes leads from a module that is let in to one that is not.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotidoctor.worker.emulation.lanes.kernel_text import BUILTINS, SINGLE, KernelText, Refused


def build(kernel: KernelText, folder: Path, libdevice: Any) -> Any:
    """Execute the definitions; the kernel as Triton's interpreter has it. Raises ``Refused``."""
    import triton

    # The interpreter reads the text of a function from its file.
    path = folder / f"{kernel.name[:100]}.py"
    source = kernel.executable
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"__builtins__": {name: getattr(builtins, name) for name in BUILTINS}}
    names["__builtins__"]["__import__"] = _import
    names["__name__"] = f"emulated_{kernel.name}"
    _check_reach(kernel.module, names)
    exec(compile(source, str(path), "exec"), names)  # noqa: S102 - in the child, after what was checked above
    if "libdevice" in names:
        names["libdevice"] = libdevice
    found = names.get(kernel.name)
    if not hasattr(found, "rewrite"):
        raise Refused(f"Triton {triton.__version__} does not interpret it: TRITON_INTERPRET has no effect here")
    for value in list(names.values()):
        if hasattr(value, "rewrite"):
            value.fn.__globals__["libdevice"] = libdevice
    return found


def _import(name: str, namespace: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """``import`` of the modules that a kernel needs."""
    known = name in ("triton", "triton.language", "math") or name.startswith("torch._inductor.runtime")
    if level or not (known or SINGLE.fullmatch(name)):
        raise Refused(f"its source imports {name}")
    module = __import__(name, {}, {}, tuple(fromlist or ()), 0)
    foreign = [one for one in fromlist or () if not known and not _is_of_triton(getattr(module, one, None))]
    if foreign:
        raise Refused(f"its source imports {foreign[0]} of {name}")
    return module


def _is_of_triton(value: Any) -> bool:
    """A function or a type of Triton's own, or a stand-in for one, and none that a module of it imports."""
    home = getattr(value, "__module__", None) or type(value).__module__
    return not inspect.ismodule(value) and home.startswith(
        ("triton.language", "triton.runtime.interpreter", __name__.rpartition(".")[0])
    )


def _check_reach(module: ast.Module, names: Mapping[str, Any]) -> None:
    """No chain of attributes may lead from a module that is let in to one that is not."""
    import triton
    import triton.language as tl
    from torch._inductor.runtime import triton_helpers

    roots = {"triton": triton, "tl": tl, "triton_helpers": triton_helpers, "tl_math": tl.math}
    for node in ast.walk(module):
        chain = _chain(node)
        if chain is None or chain[0] not in roots:
            continue
        value = roots[chain[0]]
        for attribute in chain[1:]:
            value = getattr(value, attribute, None)
            if inspect.ismodule(value) and not value.__name__.startswith(("triton.language", "triton.tools")):
                raise Refused(f"its source reaches for {'.'.join(chain)}")


def _chain(node: ast.AST) -> list[str] | None:
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    return [inner.id, *reversed(parts)] if parts and isinstance(inner, ast.Name) else None
