"""Follow one run of a loaded package: what every kernel and operator call reads and writes.

Kernels get bare pointers. The code that calls them asks each tensor for its pointer just before
(``aoti_torch_get_data_ptr``), and that is where the shape behind a pointer is learnt. Constants were asked once, at
load: a pointer that nobody asked for in this run is one of them. What a call wrote is looked at when the next call
begins, or a tensor is given back: a result that nobody uses is gone before the next call, and its handle with it.

Parts of the result: ``calls`` (``symbol``, ``argument``, ``reads`` and ``writes``: statistics of each tensor;
``writer`` is the number of the call that wrote it last, None for inputs and constants, and ``agrees`` what was found of
it then), ``left_out`` (calls beyond the limits).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.worker.describe import describe, nbytes, storage
from aotidoctor.worker.hooks import Call, watch
from aotidoctor.worker.values.handles import handle_at, handles_at, tensor_of
from aotidoctor.worker.values.prototypes import Parameter, kernels_in, shims

ASKED = "aoti_torch_get_data_ptr"
PROXY = "aoti_torch_proxy_executor_call_function"
# What computes; the other shims allocate, look at handles, or give memory back.
_COMPUTING = re.compile(
    r"cpp_\w+|aoti_torch_(?:cpu|cuda|mps|xpu)_\w+|aoti_torch_\w+_out|aoti_torch_copy_|aoti_torch_tensor_copy_"
)
ALLOCATES = "aoti_torch_empty_strided"
# Of its seven arguments the last is where the new handle will be.
_NEW_HANDLE = 6
GIVES_BACK = "aoti_torch_delete_tensor_object"
_HOOKED = re.compile(rf"{_COMPUTING.pattern}|{ASKED}|{PROXY}|{ALLOCATES}|{GIVES_BACK}")
MAX_CALLS = 4096
MAX_BYTES = 64 * 1024 * 1024 * 1024

OnWritten = Callable[[Any], dict[str, Any]]
"""Further facts of a tensor that was just written."""
Place = dict[str, Any]
"""Which argument of a call: ``name`` and ``position`` in its parameter list."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """The call under way: its record, and where its results will be."""

    record: dict[str, Any]
    tensors: list[tuple[Place, Any]] = field(default_factory=list)
    results: list[tuple[Place, Callable[[], int]]] = field(default_factory=list)


class ValueWatch:
    """Watches from ``start`` to ``stop``. ``on_written`` adds facts to each written tensor."""

    def __init__(self, directory: Path, on_written: OnWritten | None = None) -> None:
        self._directory = directory
        self._on_written = on_written or (lambda _: {})
        self._signatures: dict[str, tuple[Parameter, ...]] = {}
        self._pointers: dict[int, Any] = {}
        self._writers: dict[int, tuple[int, bool | None]] = {}
        self._open: _Open | None = None
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
        self._signatures = {**shims(), **kernels_in(self._directory)}
        self._watch = watch(self._directory, _HOOKED, self._before)

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
        return self._writers.get(storage(tensor), (None, None))[0]

    def _before(self, call: Call) -> None:
        try:
            self._allocated()
            if call.symbol == ASKED:
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
            self._begin(call)
        except Exception as error:
            self.problems.append(f"{call.symbol}: {type(error).__name__}: {error}")

    def _allocated(self) -> None:
        """The allocation before this call: its memory may be that of a tensor which is gone."""
        address, self._allocating = self._allocating, None
        tensor = tensor_of(handle_at(address)) if address is not None else None
        if tensor is not None:
            self._writers.pop(storage(tensor), None)
            self._fresh.add(storage(tensor))

    def _asked(self, call: Call) -> None:
        tensor = tensor_of(call.word(0))
        if tensor is not None and tensor.numel():
            self._pointers[tensor.data_ptr()] = tensor

    def _begin(self, call: Call) -> None:
        number = call.integer(1) if call.symbol == PROXY else None
        begun = _Open(record={"symbol": call.symbol, "argument": number, "reads": [], "writes": []})
        self._open = begun
        self.calls.append(begun.record)
        if call.symbol == PROXY:
            self._operator(call, begun)
        else:
            for parameter in self._signatures.get(call.symbol, ()):
                self._argument(call, parameter, begun)
        self._pointers.clear()

    def _operator(self, call: Call, begun: _Open) -> None:
        """A custom operator's tensors: arguments, then its results, which are undefined until it has returned."""
        for index, handle in enumerate(handles_at(call.word(5), max(0, call.integer(4)))):
            place, tensor = {"name": f"tensor{index}", "position": index}, tensor_of(handle)
            if tensor is None:
                begun.results.append((place, partial(int, handle)))
            else:
                self._read(begun, place, tensor)
                begun.tensors.append((place, tensor))

    def _argument(self, call: Call, parameter: Parameter, begun: _Open) -> None:
        if parameter.word is None:
            return
        word = call.word(parameter.word)
        place = {"name": parameter.name, "position": parameter.position}
        match parameter.kind:
            case "handles" if parameter.written:
                begun.results.append((place, partial(handle_at, word)))
            case "handles":
                for index, handle in enumerate(_listed(call, parameter, word)):
                    self._read(begun, {**place, "name": f"{parameter.name}[{index}]"}, tensor_of(handle))
            case "handle" if parameter.written:
                begun.tensors.append((place, tensor_of(word)))
            case "handle":
                self._read(begun, place, tensor_of(word))
            case "pointer" if call.symbol.startswith("cpp_"):
                self._pointer(parameter, place, word, begun)

    def _pointer(self, parameter: Parameter, place: Place, word: int, begun: _Open) -> None:
        tensor = self._pointers.get(word)
        if tensor is None:
            begun.record["reads"].append({**place, "constant": True})
            return
        # A buffer that is reused in place is named as if it were read, also where it is new.
        if not parameter.written or (parameter.name.startswith("in_out") and storage(tensor) not in self._fresh):
            self._read(begun, place, tensor)
        if parameter.written:
            begun.tensors.append((place, tensor))

    def _read(self, begun: _Open, place: Place, tensor: Any) -> None:
        if tensor is not None:
            self._bytes += nbytes(tensor)
            number, agrees = self._writers.get(storage(tensor), (None, None))
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
            self._writers[storage(tensor)] = (number, facts.get("agrees"))
            self._fresh.discard(storage(tensor))
            done.record["writes"].append(facts)


def _listed(call: Call, parameter: Parameter, address: int) -> list[int]:
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
