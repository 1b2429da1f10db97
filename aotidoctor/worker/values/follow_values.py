"""Follow the values of one run of a loaded package: what every kernel and operator call reads and writes.

Kernels get bare pointers. The code that calls them asks each tensor for its pointer just before
(``aoti_torch_get_data_ptr``), and that is where the shape behind a pointer is learnt. Constants were asked once, at
load: a pointer that nobody asked for in this run is one of them. What a call wrote is looked at when the next call
begins, or a tensor is given back: a result that nobody uses is gone before the next call, and its handle with it.

Parts of the result: ``calls`` (``symbol``, ``argument``, ``reads`` and ``writes``: statistics of each tensor;
``writer`` is the number of the call that wrote it last, None for inputs and constants, and ``agrees`` what was found
of it then), ``left_out`` (calls beyond the limits).

Signatures are read from the source of the kernels and from PyTorch's headers: which arguments are tensors, pointers,
or numbers that are passed elsewhere. An ``AtenTensorHandle`` is the address of an ``at::Tensor``. A second handle to
the same tensor is made and given to Python, which then owns it; the first one stays as it was.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.call_hooks.package_calls import ShimCall, watch_calls
from aotidoctor.worker.tensors import describe, nbytes, storage_address

# Tensor handles of the C interface as tensors of Python, without a copy.

_POINTER = ctypes.sizeof(ctypes.c_void_p)


@cache
def _second_handle() -> Any:
    """The shim that makes another handle of a tensor; 2.6 has it under the second name only."""
    import torch

    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    names = ("aoti_torch_new_tensor_handle", "aoti_torch_assign_tensors_out")
    shim = next(library[name] for name in names if hasattr(library, name))
    shim.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return shim


@cache
def _capsule() -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new


def tensor_of(handle: int) -> Any:
    """The tensor of ``handle``; None for a null handle or one that cannot be followed (undefined tensor)."""
    from torch._C import _aoti

    if handle == 0:
        return None
    copy = ctypes.c_void_p()
    if _second_handle()(handle, ctypes.byref(copy)) != 0 or not copy.value:
        return None
    try:
        return _aoti.alloc_tensor_by_stealing_from_void_ptr(_capsule()(copy.value, None, None))
    except RuntimeError:
        return None


def handle_at(address: int) -> int:
    """The handle stored at ``address``; 0 for a null address."""
    return ctypes.c_uint64.from_address(address).value if address else 0


def handles_at(address: int, count: int) -> list[int]:
    """``count`` handles stored one after the other."""
    return [handle_at(address + index * _POINTER) for index in range(count)] if address else []


# Signatures of kernels and shims.

_KERNEL = re.compile(r'extern "C"\s+(?:[A-Z_]+\s+)?void\s+(\w+)\s*\(([^)]*)\)\s*\{')
_SHIM = re.compile(r"AOTITorchError\s+(aoti_torch_\w+)\(([^;]*?)\);", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADERS = ("aoti_torch/c", "aoti_torch/generated")


@record
class PrototypeParameter:
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


def kernels_in(directory: Path) -> dict[str, tuple[PrototypeParameter, ...]]:
    """Kernels of the C++ sources below ``directory``; of ``package_cpp_only`` packages they are in the wrapper."""
    found: dict[str, tuple[PrototypeParameter, ...]] = {}
    for path in sorted(directory.rglob("*.cpp")):
        text = path.read_text(encoding="utf-8", errors="replace")
        found.update({match[1]: _parameters(match[1], match[2]) for match in _KERNEL.finditer(text)})
    return found


def shim_prototypes() -> dict[str, tuple[PrototypeParameter, ...]]:
    """The shims that the installed torch declares; empty where its headers are missing."""
    import torch

    root = Path(torch.__file__).parent / "include" / "torch" / "csrc" / "inductor"
    found: dict[str, tuple[PrototypeParameter, ...]] = {}
    for folder in _HEADERS:
        for path in sorted((root / folder).glob("*.h")):
            text = _COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))
            found.update({match[1]: _parameters(match[1], match[2]) for match in _SHIM.finditer(text)})
    return found


def _parameters(function: str, text: str) -> tuple[PrototypeParameter, ...]:
    parts = [piece.strip() for piece in text.split(",") if piece.strip()]
    names = [part.split()[-1].lstrip("*&") for part in parts]
    found: list[PrototypeParameter] = []
    words = 0
    for index, (part, name) in enumerate(zip(parts, names, strict=True)):
        kind = _kind(part)
        counted = kind == "handles" and ((names[index + 1] if index + 1 < len(names) else "") == f"{name}_len_")
        found.append(
            PrototypeParameter(
                name=name,
                position=index,
                kind=kind,
                word=None if kind == "float" else words,
                written=_is_written(function, part, kind, name, first=index == 0),
                count=words + 1 if counted else None,
                depth=2 if "**" in part else 1,
            )
        )
        words += kind != "float"
    return tuple(found)


def _kind(part: str) -> str:
    if "AtenTensorHandle" in part:
        return "handles" if "*" in part else "handle"
    if "*" in part or "&" in part:
        return "pointer"
    return "float" if re.search(r"\b(?:double|float)\b", part) else "integer"


def _is_written(function: str, part: str, kind: str, name: str, *, first: bool) -> bool:
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


# The run.

POINTER_ASKED = "aoti_torch_get_data_ptr"
PROXY = "aoti_torch_proxy_executor_call_function"
# What computes; the other shims allocate, look at handles, or give memory back.
_COMPUTING = re.compile(
    r"cpp_\w+|aoti_torch_(?:cpu|cuda|mps|xpu)_\w+|aoti_torch_\w+_out|aoti_torch_copy_|aoti_torch_tensor_copy_"
)
ALLOCATES = "aoti_torch_empty_strided"
# Of its seven arguments the last is where the new handle will be.
_NEW_HANDLE = 6
GIVES_BACK = "aoti_torch_delete_tensor_object"
_HOOKED = re.compile(rf"{_COMPUTING.pattern}|{POINTER_ASKED}|{PROXY}|{ALLOCATES}|{GIVES_BACK}")
MAX_CALLS = 4096
MAX_BYTES = 64 * 1024 * 1024 * 1024

OnWritten = Callable[[Any], dict[str, Any]]
"""Further facts of a tensor that was just written."""
ValuePlace = dict[str, Any]
"""Which argument of a call: ``name`` and ``position`` in its parameter list."""


@dataclass(slots=True, kw_only=True)
class _OpenCall:
    """The call under way: its record, and where its results will be."""

    record: dict[str, Any]
    tensors: list[tuple[ValuePlace, Any]] = field(default_factory=list)
    results: list[tuple[ValuePlace, Callable[[], int]]] = field(default_factory=list)


class ValueWatch:
    """Watches from ``start`` to ``stop``. ``on_written`` adds facts to each written tensor."""

    def __init__(self, directory: Path, on_written: OnWritten | None = None) -> None:
        self._directory = directory
        self._on_written = on_written or (lambda _: {})
        self._signatures: dict[str, tuple[PrototypeParameter, ...]] = {}
        self._pointers: dict[int, Any] = {}
        self._writers: dict[int, tuple[int, bool | None]] = {}
        self._open: _OpenCall | None = None
        self._allocating: int | None = None
        # Memory that nobody has written to yet.
        self._fresh: set[int] = set()
        self._bytes = 0
        self.calls: list[dict[str, Any]] = []
        self.left_out = 0
        self.problems: list[str] = []
        self._watch: Any = None

    def start(self) -> None:
        """Begin to watch.

        Raises:
            HooksUnavailableError: as ``hooks.watch``.
        """
        self._signatures = {**shim_prototypes(), **kernels_in(self._directory)}
        self._watch = watch_calls(self._directory, _HOOKED, self._before)

    def stop(self) -> None:
        """The run is over: look at what the last call wrote, take the hooks away."""
        if self._open is not None:
            # Where the package kept the handles of results was its stack, which is gone.
            self._open.results.clear()
        self._close()
        if self._watch is not None:
            self._watch.stop()
        self._pointers.clear()

    def writer(self, tensor: Any) -> int | None:
        """Number of the call that wrote the memory of ``tensor`` last."""
        return self._writers.get(storage_address(tensor), (None, None))[0]

    def _before(self, call: ShimCall) -> None:
        try:
            # The allocation before this call: its memory may be that of a tensor which is gone.
            address, self._allocating = self._allocating, None
            tensor = tensor_of(handle_at(address)) if address is not None else None
            if tensor is not None:
                self._writers.pop(storage_address(tensor), None)
                self._fresh.add(storage_address(tensor))
            if call.symbol == POINTER_ASKED:
                self._asked(call)
                return
            self._close()
            if call.symbol == GIVES_BACK:
                return
            if call.symbol == ALLOCATES:
                self._allocating = call.word(_NEW_HANDLE)
                return
            if len(self.calls) >= MAX_CALLS or self._bytes > MAX_BYTES:
                self.left_out += 1
                return
            number = call.integer(1) if call.symbol == PROXY else None
            begun = _OpenCall(record={"symbol": call.symbol, "argument": number, "reads": [], "writes": []})
            self._open = begun
            self.calls.append(begun.record)
            if call.symbol == PROXY:
                self._operator(call, begun)
            else:
                for parameter in self._signatures.get(call.symbol, ()):
                    self._argument(call, parameter, begun)
            self._pointers.clear()
        except Exception as error:
            self.problems.append(f"{call.symbol}: {type(error).__name__}: {error}")

    def _asked(self, call: ShimCall) -> None:
        tensor = tensor_of(call.word(0))
        if tensor is not None and tensor.numel():
            self._pointers[tensor.data_ptr()] = tensor

    def _operator(self, call: ShimCall, begun: _OpenCall) -> None:
        """A custom operator's tensors: arguments, then its results, which are undefined until it has returned."""
        for index, handle in enumerate(handles_at(call.word(5), max(0, call.integer(4)))):
            place, tensor = {"name": f"tensor{index}", "position": index}, tensor_of(handle)
            if tensor is None:
                begun.results.append((place, partial(int, handle)))
            else:
                self._read(begun, place, tensor)
                begun.tensors.append((place, tensor))

    def _argument(self, call: ShimCall, parameter: PrototypeParameter, begun: _OpenCall) -> None:
        if parameter.word is None:
            return
        word = call.word(parameter.word)
        place = {"name": parameter.name, "position": parameter.position}
        match parameter.kind:
            case "handles" if parameter.written:
                begun.results.append((place, partial(handle_at, word)))
            case "handles":
                for index, handle in enumerate(_handles_of_list(call, parameter, word)):
                    self._read(begun, {**place, "name": f"{parameter.name}[{index}]"}, tensor_of(handle))
            case "handle" if parameter.written:
                begun.tensors.append((place, tensor_of(word)))
            case "handle":
                self._read(begun, place, tensor_of(word))
            case "pointer" if call.symbol.startswith("cpp_"):
                self._pointer(parameter, place, word, begun)

    def _pointer(self, parameter: PrototypeParameter, place: ValuePlace, word: int, begun: _OpenCall) -> None:
        tensor = self._pointers.get(word)
        if tensor is None:
            begun.record["reads"].append({**place, "constant": True})
            return
        # A buffer that is reused in place is named as if it were read, also where it is new.
        if not parameter.written or (
            parameter.name.startswith("in_out") and storage_address(tensor) not in self._fresh
        ):
            self._read(begun, place, tensor)
        if parameter.written:
            begun.tensors.append((place, tensor))

    def _read(self, begun: _OpenCall, place: ValuePlace, tensor: Any) -> None:
        if tensor is not None:
            self._bytes += nbytes(tensor)
            number, agrees = self._writers.get(storage_address(tensor), (None, None))
            begun.record["reads"].append({**place, **_facts(tensor), "writer": number, "agrees": agrees})

    def _close(self) -> None:
        """The open call has returned: what did it write?"""
        done, self._open = self._open, None
        if done is None:
            return
        number = len(self.calls) - 1
        fresh = [(place, tensor_of(handle())) for place, handle in done.results]
        for place, tensor in [*done.tensors, *fresh]:
            if tensor is None:
                continue
            facts = {**place, **_facts(tensor)}
            if done.record["symbol"] == PROXY and _same(facts, done.record["reads"]):
                continue
            self._bytes += nbytes(tensor)
            facts |= self._on_written(tensor)
            self._writers[storage_address(tensor)] = (number, facts.get("agrees"))
            self._fresh.discard(storage_address(tensor))
            done.record["writes"].append(facts)


def _handles_of_list(call: ShimCall, parameter: PrototypeParameter, address: int) -> list[int]:
    """Handles of a list, of a list of optional ones, or of one optional argument."""
    if parameter.count is None:
        return [handle_at(address)] if address else []
    found = handles_at(address, min(call.word(parameter.count), 1024))
    return [handle_at(one) for one in found if one] if parameter.depth == 2 else found


def _facts(tensor: Any) -> dict[str, Any]:
    facts = describe("", tensor, values=True)
    del facts["path"]
    return facts


def _same(facts: dict[str, Any], before: list[dict[str, Any]]) -> bool:
    """Whether a tensor given to an operator still has the statistics it had: then it was read only."""
    known = next((item for item in before if item["name"] == facts["name"]), None)
    return known is not None and all(facts[key] == known.get(key) for key in facts)
