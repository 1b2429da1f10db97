"""Signatures of the functions that a package calls: its kernels from their source, PyTorch's shims from its headers.

Only what matters for reading a call: which arguments are tensors, pointers, or numbers that are passed elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

from aotidoctor.model.record import record

_KERNEL = re.compile(r'extern "C"\s+(?:[A-Z_]+\s+)?void\s+(\w+)\s*\(([^)]*)\)\s*\{')
_SHIM = re.compile(r"AOTITorchError\s+(aoti_torch_\w+)\(([^;]*?)\);", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADERS = ("aoti_torch/c", "aoti_torch/generated")


@record
class Parameter:
    """Parameter number ``position`` from 0.

    ``kind``: ``handle``, ``handles`` (pointer to handles), ``pointer``, ``integer`` or ``float``. ``word`` is its
    number among the integer arguments, None for a floating-point one. ``count`` is the word that holds the length of a
    list of handles; without one it is a single handle that may be absent. ``depth`` is 2 for a list of pointers to
    handles. ``written`` tells whether the function writes through it: a result, an out tensor, no pointer to const.
    """

    name: str
    position: int
    kind: str
    word: int | None
    written: bool
    count: int | None = None
    depth: int = 1


def kernels_in(directory: Path) -> dict[str, tuple[Parameter, ...]]:
    """Kernels of the C++ sources below ``directory``; of ``package_cpp_only`` packages they are in the wrapper."""
    found: dict[str, tuple[Parameter, ...]] = {}
    for path in sorted(directory.rglob("*.cpp")):
        text = path.read_text(encoding="utf-8", errors="replace")
        found.update({match[1]: _parameters(match[1], match[2]) for match in _KERNEL.finditer(text)})
    return found


def shims() -> dict[str, tuple[Parameter, ...]]:
    """The shims that the installed torch declares; empty where its headers are missing."""
    import torch

    root = Path(torch.__file__).parent / "include" / "torch" / "csrc" / "inductor"
    found: dict[str, tuple[Parameter, ...]] = {}
    for folder in _HEADERS:
        for path in sorted((root / folder).glob("*.h")):
            text = _COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))
            found.update({match[1]: _parameters(match[1], match[2]) for match in _SHIM.finditer(text)})
    return found


def _parameters(function: str, text: str) -> tuple[Parameter, ...]:
    parts = [piece.strip() for piece in text.split(",") if piece.strip()]
    names = [part.split()[-1].lstrip("*&") for part in parts]
    found: list[Parameter] = []
    words = 0
    for index, (part, name) in enumerate(zip(parts, names, strict=True)):
        kind = _kind(part)
        counted = kind == "handles" and _is_length(name, names[index + 1] if index + 1 < len(names) else "")
        found.append(
            Parameter(
                name=name,
                position=index,
                kind=kind,
                word=None if kind == "float" else words,
                written=_written(function, part, kind, name, first=index == 0),
                count=words + 1 if counted else None,
                depth=2 if "**" in part else 1,
            )
        )
        words += kind != "float"
    return tuple(found)


def _is_length(name: str, following: str) -> bool:
    return following == f"{name}_len_"


def _kind(part: str) -> str:
    if "AtenTensorHandle" in part:
        return "handles" if "*" in part else "handle"
    if "*" in part or "&" in part:
        return "pointer"
    return "float" if re.search(r"\b(?:double|float)\b", part) else "integer"


def _written(function: str, part: str, kind: str, name: str, *, first: bool) -> bool:
    match kind:
        case "handles":
            return name.startswith("ret") or name == "new_handle"
        case "handle":
            in_place = (
                function.endswith("_") or "___" in function or re.search(r"_cpu_\w+?__\w+$", function) is not None
            )
            return name.startswith("out") or (first and in_place)
        case "pointer":
            return not part.startswith("const")
        case _:
            return False
