"""Follow the values of one run of a loaded package: inputs and results of every kernel and operator call.

Kernels get bare pointers. The code that calls them requests the pointer of each tensor just before
(``aoti_torch_get_data_ptr``), which gives the shape behind a pointer. Pointers of constants are requested once, at
load: a pointer without a request in this run is one of them. The results of a call are described when the next call
begins, or a tensor is deleted: an unused result is gone before the next call, and its handle with it.

Parts of the result: ``calls`` (``symbol``, ``argument``, ``reads`` and ``writes``: statistics of each tensor;
``writer`` is the number of the call that wrote it last, None for inputs and constants, and ``agrees`` the finding
about it then), ``left_out`` (calls beyond the limits).

Signatures are read from the source of the kernels and from PyTorch's headers: which arguments are tensors, pointers,
or numbers in other registers. An ``AtenTensorHandle`` is the address of an ``at::Tensor``. A second handle to
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

import torch

from aotidoctor.model.record import record
from aotidoctor.worker.call_hooks.package_calls import ShimCall, watch_calls
from aotidoctor.worker.tensors import describe, nbytes, storage_address

# Tensor handles of the C interface as tensors of Python, without a copy.
_POINTER = ctypes.sizeof(ctypes.c_void_p)


@cache
def _handle_functions() -> tuple[Any, Any]:
    """The shim that makes another handle of a tensor (2.6 has it under the second name only), and PyCapsule_New."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    names = ("aoti_torch_new_tensor_handle", "aoti_torch_assign_tensors_out")
    shim = next(library[name] for name in names if hasattr(library, name))
    shim.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return shim, capsule


def tensor_of(handle: int) -> Any:
    """The tensor of ``handle``; None for a null handle or one that cannot be followed (undefined tensor)."""
    from torch._C import _aoti

    if handle == 0:
        return None
    copy = ctypes.c_void_p()
    second_handle, capsule = _handle_functions()
    if second_handle(handle, ctypes.byref(copy)) != 0 or not copy.value:
        return None
    try:
        return _aoti.alloc_tensor_by_stealing_from_void_ptr(capsule(copy.value, None, None))
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
    """A parameter of a kernel or a shim; ``position`` is its number from 0.

    ``kind``: ``handle``, ``handles`` (pointer to handles), ``pointer``, ``integer`` or ``float``. ``word`` is its
    number among the integer arguments, None for a floating-point one. ``count`` is the word that holds the length of a
    list of handles; without one it is a single handle that may be absent. ``depth`` is 2 for a list of pointers to
    handles. ``written``: the function writes through it (a result, an out tensor, a pointer that is not const).
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
    """Shims that the installed torch declares; empty where its headers are missing."""
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
        if "AtenTensorHandle" in part:
            kind = "handles" if "*" in part else "handle"
        elif "*" in part or "&" in part:
            kind = "pointer"
        else:
            kind = "float" if re.search(r"\b(?:double|float)\b", part) else "integer"
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
POINTER_REQUEST = "aoti_torch_get_data_ptr"
PROXY = "aoti_torch_proxy_executor_call_function"
# Functions that compute; the other shims allocate, inspect handles, or free memory.
_COMPUTING = re.compile(
    r"cpp_\w+|aoti_torch_(?:cpu|cuda|mps|xpu)_\w+|aoti_torch_\w+_out|aoti_torch_copy_|aoti_torch_tensor_copy_"
)
ALLOCATES = "aoti_torch_empty_strided"
# The last of its seven arguments is the place of the new handle.
_NEW_HANDLE = 6
DELETES_TENSOR = "aoti_torch_delete_tensor_object"
_HOOKED = re.compile(rf"{_COMPUTING.pattern}|{POINTER_REQUEST}|{PROXY}|{ALLOCATES}|{DELETES_TENSOR}")
MAX_CALLS = 4096
MAX_BYTES = 64 * 1024 * 1024 * 1024

OnWritten = Callable[[Any], dict[str, Any]]
"""Further facts of a tensor that was just written."""
ValuePlace = dict[str, Any]
"""An argument of a call: its ``name`` and ``position`` in the parameter list."""


@dataclass(slots=True, kw_only=True)
class _OpenCall:
    """The call in progress: its record, and the places of its results."""

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
        # Memory without a write so far.
        self._fresh: set[int] = set()
        self._bytes = 0
        self.calls: list[dict[str, Any]] = []
        self.left_out = 0
        self.problems: list[str] = []
        self._remove_hooks: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin to watch.

        Raises:
            HooksUnavailableError: as ``watch_calls``.
        """
        self._signatures = {**shim_prototypes(), **kernels_in(self._directory)}
        self._remove_hooks = watch_calls(self._directory, _HOOKED, self._before)

    def stop(self) -> None:
        """End the watch: describe the results of the last call, and remove the hooks."""
        if self._open is not None:
            # The handles of results were on the package's stack, which is gone.
            self._open.results.clear()
        self._close()
        self._remove_hooks()
        self._pointers.clear()

    def writer(self, tensor: Any) -> int | None:
        """Number of the call that wrote the memory of ``tensor`` last; None for inputs and constants."""
        return self._writers.get(storage_address(tensor), (None, None))[0]

    def _before(self, call: ShimCall) -> None:
        try:
            # The allocation before this call: it may reuse the memory of a deleted tensor.
            address, self._allocating = self._allocating, None
            tensor = tensor_of(handle_at(address)) if address is not None else None
            if tensor is not None:
                self._writers.pop(storage_address(tensor), None)
                self._fresh.add(storage_address(tensor))
            if call.symbol == POINTER_REQUEST:
                if (tensor := tensor_of(call.word(0))) is not None and tensor.numel():
                    self._pointers[tensor.data_ptr()] = tensor
                return
            self._close()
            if call.symbol == DELETES_TENSOR:
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

    def _operator(self, call: ShimCall, begun: _OpenCall) -> None:
        """Tensors of a custom operator: arguments, then results, which are undefined until it has returned."""
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
                # Of a list, of a list of optional ones, or of one optional argument.
                handles = handles_at(word, 1 if parameter.count is None else min(call.word(parameter.count), 1024))
                if parameter.count is not None and parameter.depth == 2:
                    handles = [handle_at(one) for one in handles if one]
                for index, handle in enumerate(handles):
                    self._read(begun, {**place, "name": f"{parameter.name}[{index}]"}, tensor_of(handle))
            case "handle" if parameter.written:
                begun.tensors.append((place, tensor_of(word)))
            case "handle":
                self._read(begun, place, tensor_of(word))
            case "pointer" if call.symbol.startswith("cpp_"):
                tensor = self._pointers.get(word)
                if tensor is None:
                    begun.record["reads"].append({**place, "constant": True})
                    return
                # A buffer that is reused in place has the name of an input even when it is new.
                in_place = parameter.name.startswith("in_out") and storage_address(tensor) not in self._fresh
                if not parameter.written or in_place:
                    self._read(begun, place, tensor)
                if parameter.written:
                    begun.tensors.append((place, tensor))

    def _read(self, begun: _OpenCall, place: ValuePlace, tensor: Any) -> None:
        if tensor is not None:
            self._bytes += nbytes(tensor)
            number, agrees = self._writers.get(storage_address(tensor), (None, None))
            begun.record["reads"].append({**place, **value_facts(tensor), "writer": number, "agrees": agrees})

    def _close(self) -> None:
        """Describe the results of the open call, which has returned."""
        done, self._open = self._open, None
        if done is None:
            return
        number = len(self.calls) - 1
        fresh = [(place, tensor_of(handle())) for place, handle in done.results]
        for place, tensor in [*done.tensors, *fresh]:
            if tensor is None:
                continue
            facts = {**place, **value_facts(tensor)}
            known = next((item for item in done.record["reads"] if item["name"] == facts["name"]), None)
            unchanged = known is not None and all(facts[key] == known.get(key) for key in facts)
            # An argument of an operator with the same statistics as before was only read.
            if done.record["symbol"] == PROXY and unchanged:
                continue
            self._bytes += nbytes(tensor)
            facts |= self._on_written(tensor)
            self._writers[storage_address(tensor)] = (number, facts.get("agrees"))
            self._fresh.discard(storage_address(tensor))
            done.record["writes"].append(facts)


def value_facts(tensor: Any) -> dict[str, Any]:
    """The description of a tensor without a path."""
    facts = describe("", tensor, values=True)
    del facts["path"]
    return facts
