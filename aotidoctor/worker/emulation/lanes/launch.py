"""One launch of a Triton kernel, carried out in Triton's interpreter."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

from aotidoctor.worker.emulation.dtypes import SIZES, DtypeName
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.lanes.block_sizes import BlockSizes
from aotidoctor.worker.emulation.lanes.blocks import Block, Tiling
from aotidoctor.worker.emulation.lanes.first_nan import FirstNan
from aotidoctor.worker.emulation.lanes.interpreter import Current, current_line
from aotidoctor.worker.emulation.lanes.kernel_text import KernelText
from aotidoctor.worker.emulation.lanes.lane_findings import LaneFindings, first
from aotidoctor.worker.emulation.lanes.memory import Memory
from aotidoctor.worker.emulation.lanes.pointers import Pointer
from aotidoctor.worker.emulation.lanes.races import Races
from aotidoctor.worker.emulation.storage import Tensor


class TooLong(Exception):  # noqa: N818 - raised by the clock, not by an error
    """The launch takes longer than it is given."""


@dataclass(slots=True, kw_only=True)
class Launch:
    """A kernel with the arguments of one call.

    ``grid`` and ``blocks`` (``{"x": 256}``) are the wrapper's, ``number`` counts launches from 1, ``line`` is the
    wrapper's. ``seconds`` is what it may take. ``only`` are the numbers of the programs to carry out, None for all;
    ``dry`` writes nothing.
    """

    number: int
    kernel: KernelText
    function: Any
    arguments: Mapping[str, Any]
    grid: tuple[int, int, int]
    blocks: Mapping[str, int]
    line: int
    found: Found
    seconds: float = 60.0
    only: Sequence[int] | None = None
    dry: bool = False
    block: Block = field(default_factory=lambda: Block(start={}, count={}))
    program: tuple[int, int, int] = (0, 0, 0)
    tiling: Tiling | None = None

    @property
    def sizes(self) -> BlockSizes:
        """The sizes of its blocks."""
        return BlockSizes(kernel=self.kernel, arguments=self.arguments, launched=self.blocks)

    def run(self) -> None:
        """Carry it out. Raises ``TooLong``, and whatever the interpreter raises."""
        from triton.runtime import interpreter

        pointers = self.pointers()
        given = self._given(pointers)
        self.tiling = self.sizes.tiling(self.function.arg_names, given, self.grid)
        written = (one.tensor for name, one in pointers.items() if not name.startswith("in_ptr"))
        findings = LaneFindings(found=self.found, place=self._place)
        shared = frozenset(id(tensor.storage) for tensor in written if tensor is not None)
        memory = Memory(
            pointers={one.number: one for one in pointers.values()},
            findings=findings,
            races=Races(findings=findings, programs=self._programs, shared=shared),
            later=self._later,
            dry=self.dry,
        )
        if self.kernel.waits:
            self.found.skip(
                f"programs of {self.kernel.name} that write to one address", "they may wait for one another by atomics"
            )
        Current.memory, Current.on_assert = memory, self._on_assert
        odd = FirstNan(place=self._place)
        Current.on_overflow, Current.on_values = self._on_overflow, odd.see
        interpreter.interpreter_builder.set_grid_dim(*self.grid)
        function = self.function.rewrite()
        try:
            with alarm(self.seconds):
                for values in self._parts(given, interpreter.interpreter_builder):
                    function(**values)
        finally:
            Current.memory = None
            for kind, facts in odd.told().items():
                self.found.add(kind, **facts)

    def prepare(self) -> None:
        """Find out how the grid may be cut, without carrying anything out."""
        self.tiling = self.sizes.tiling(self.function.arg_names, self._given(self.pointers()), self.grid)

    def pointers(self) -> dict[str, Pointer]:
        """Its arguments that are pointers, by the kernel's names."""
        made: dict[str, Pointer] = {}
        for name, kind in self.kernel.signature.items():
            if kind.startswith("*"):
                tensor = self.arguments.get(name)
                made[name] = Pointer(
                    name=name,
                    number=len(made) + 1,
                    tensor=tensor if isinstance(tensor, Tensor) else None,
                    itemsize=SIZES.get(kind[1:], 1),
                    whole=self.kernel.custom,
                )
        return made

    def _given(self, pointers: Mapping[str, Pointer]) -> dict[str, Any]:
        """The arguments as the interpreter takes them, without the block sizes."""
        import numpy as np
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle, _get_np_dtype

        made: dict[str, Any] = {}
        for name, kind in self.kernel.signature.items():
            if kind == "constexpr":
                if name in self.kernel.constants:
                    value = self.kernel.constants[name]
                    made[name] = tl.str_to_ty(value, None) if isinstance(value, DtypeName) else value
            elif kind.startswith("*"):
                dtype = tl.str_to_ty(kind, None)
                data = np.array([pointers[name].address], dtype=np.uint64)
                made[name] = tl.tensor(TensorHandle(data, dtype, {"argument": pointers[name].number}), dtype)
            else:
                dtype = tl.str_to_ty(kind, None)
                data = np.array([self.arguments[name]]).astype(_get_np_dtype(dtype))
                made[name] = tl.tensor(TensorHandle(data, dtype), dtype)
        return made

    def _parts(self, given: dict[str, Any], builder: Any) -> Iterator[dict[str, Any]]:
        """The arguments of each call of the kernel that it takes."""
        if self.tiling is None:
            for number in range(prod(self.grid)) if self.only is None else self.only:
                self.program = self.place_of(number)
                builder.set_grid_idx(*self.program)
                yield given
            return
        for block in self.tiling.blocks() if self.only is None else map(self.block_of, self.only):
            self.block = block
            place = [0, 0, 0]
            values = dict(given)
            for letter, size in self.tiling.sizes.items():
                count = block.count[letter]
                place[self.tiling.axes[letter]] = block.start[letter] // count
                if f"{letter.upper()}BLOCK" in values:
                    values[f"{letter.upper()}BLOCK"] = size * count
            builder.set_grid_idx(*place)
            yield values

    def place_of(self, program: int) -> tuple[int, int, int]:
        """The place of a program in the grid by its number, x fastest."""
        return (
            program % self.grid[0],
            program // self.grid[0] % self.grid[1],
            program // (self.grid[0] * self.grid[1]),
        )

    def block_of(self, program: int) -> Block:
        """A program alone, as a block of the tiling."""
        place = self.place_of(program)
        axes = self.tiling.axes if self.tiling is not None else {}
        return Block(start={letter: place[axis] for letter, axis in axes.items()}, count=dict.fromkeys(axes, 1))

    def placed(self, program: int, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Program and lane of the element of a block of this shape."""
        return self._lane(self.block_of(program), self.place_of(program), index, shape)

    def _programs(self, shape: tuple[int, ...]) -> Any:
        if self.kernel.waits:
            return None
        if self.tiling is None:
            return self.program[0] + self.grid[0] * (self.program[1] + self.grid[1] * self.program[2])
        return self.tiling.programs(self.block, shape)

    def _later(self, shape: tuple[int, ...]) -> Callable[[], Any]:
        """``_programs`` as of now, for when it is needed."""
        if self.tiling is None:
            number = self._programs(shape)
            return lambda: number
        return partial(self.tiling.programs, self.block, shape)

    def _place(self, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Where a lane is: launch, kernel, line of its text, program and lane."""
        return {**self.here(), **self._lane(self.block, self.program, index, shape)}

    def _lane(
        self, block: Block, program: tuple[int, int, int], index: tuple[int, ...], shape: tuple[int, ...]
    ) -> dict[str, Any]:
        """Of ``block`` where the grid is cut, else of the ``program`` that is carried out alone."""
        if self.tiling is not None:
            place, lane = self.tiling.place(block, index, shape)
            return {"program": place, "lane": lane}
        alone = 0
        for at, size in zip(index, shape, strict=True):
            alone = alone * size + at
        return {"program": list(program), "lane": alone}

    def here(self, line: int | None = None) -> dict[str, Any]:
        """The launch and a line of the text: the one that is being carried out, where none is given."""
        line = line or current_line(self.function.rewriter.filename or self.function.fn.__code__.co_filename)
        lines = self.kernel.text.split("\n")
        return {
            "launch": self.number,
            "kernel": self.kernel.name,
            "grid": list(self.grid),
            "line": line,
            "wrapper_line": self.kernel.first_line + line - 1 if line is not None else None,
            "text": lines[line - 1].strip()[:300] if line is not None and line <= len(lines) else None,
        }

    def _on_assert(self, wrong: Any, message: str) -> None:
        index = first(wrong)
        self.found.add(
            "device-assert", message=str(message)[:300], count=int(wrong.sum()), **self._place(index, wrong.shape)
        )

    def _on_overflow(self, operation: str, wrong: Any, wide: Any, marks: Any, argument: int | None) -> None:
        import numpy as np

        try:
            hit = np.broadcast_to(wrong, marks.shape) & marks
            value = np.broadcast_to(wide, marks.shape)
        except ValueError:
            hit, value = wrong, wide
        if not hit.any():
            return
        index = first(hit)
        pointer = next((one for one in self.pointers().values() if one.number == argument), None)
        tensor = pointer.tensor if pointer is not None else None
        self.found.add(
            "int32-overflow",
            argument=pointer.name if pointer is not None else None,
            buffer=tensor.name if tensor is not None else None,
            operation=operation,
            value=int(value[index]),
            count=int(hit.sum()),
            **self._place(index, hit.shape),
        )


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise ``TooLong`` where what is inside takes longer."""

    def ring(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
