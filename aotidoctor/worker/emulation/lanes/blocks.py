"""How a grid is cut into blocks of lanes: as launched, or with as many programs in one as fit.

A kernel whose index is ``program_id * BLOCK + arange(BLOCK)`` does the same with a block of several programs' lanes:
exactly the lanes that were launched, neither fewer nor more, each with the program and lane that it has on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from aotidoctor.model.record import record

LETTERS = ("z", "y", "x")
MOST_LANES = 1 << 20


@record
class Block:
    """A run of programs carried out as one: the first on each tiled axis, and how many."""

    start: Mapping[str, int]
    count: Mapping[str, int]


@record
class Tiling:
    """The tile of a kernel: ``sizes`` of the axes that are tiled over programs (z, y, x), ``reduced`` of the others.

    ``axes`` tells which axis of the grid a letter goes by. Empty for a kernel that is run as it was launched.
    """

    sizes: Mapping[str, int]
    axes: Mapping[str, int]
    reduced: tuple[int, ...]
    grid: tuple[int, int, int]

    @property
    def letters(self) -> tuple[str, ...]:
        """The tiled axes in the order of the dims of a block."""
        return tuple(letter for letter in LETTERS if letter in self.sizes)

    def blocks(self) -> Iterator[Block]:
        """All blocks of the grid."""
        room = MOST_LANES
        for size in (*self.sizes.values(), *self.reduced):
            room //= max(size, 1)
        runs: dict[str, list[tuple[int, int]]] = {}
        for letter in reversed(self.letters):
            programs = self.grid[self.axes[letter]]
            most = max(min(room, programs), 1)
            runs[letter] = list(_runs(programs, most))
            room //= max(count for _, count in runs[letter])
        for several in product(*(runs[letter] for letter in self.letters)):
            pairs = dict(zip(self.letters, several, strict=True))
            yield Block(
                start={letter: start for letter, (start, _) in pairs.items()},
                count={letter: count for letter, (_, count) in pairs.items()},
            )

    def rank(self) -> int:
        """Dims of a whole block."""
        return len(self.sizes) + len(self.reduced)

    def programs(self, block: Block, shape: tuple[int, ...]) -> Any:
        """The number of the program of each lane of an array of this shape; None where all have the same lanes."""
        import numpy as np

        several = [letter for letter in self.letters if block.count[letter] > 1]
        if len(shape) != self.rank():
            return None if several else self.number(block.start)
        total: Any = np.zeros((1,) * len(shape), dtype=np.int64)
        for at, letter in enumerate(self.letters):
            if shape[at] != self.sizes[letter] * block.count[letter]:
                if letter in several:
                    return None
                places: Any = np.array([block.start[letter]])
            else:
                places = block.start[letter] + np.arange(shape[at]) // self.sizes[letter]
            total = total + places.reshape([-1 if dim == at else 1 for dim in range(len(shape))]) * self.weight(letter)
        return total

    def weight(self, letter: str) -> int:
        """What a step along this axis adds to the number of the program."""
        return (1, self.grid[0], self.grid[0] * self.grid[1])[self.axes[letter]]

    def number(self, start: Mapping[str, int]) -> int:
        """The number of a program by its place."""
        return sum(start[letter] * self.weight(letter) for letter in self.letters)

    def place(
        self, block: Block, index: tuple[int, ...], shape: tuple[int, ...]
    ) -> tuple[list[int] | None, int | None]:
        """``(program, lane)`` of the lane at ``index`` of an array of this shape, as on a GPU; None where unclear."""
        program = [0, 0, 0]
        if len(shape) != self.rank():
            if any(count > 1 for count in block.count.values()):
                return None, None
            for letter in self.letters:
                program[self.axes[letter]] = block.start[letter]
            return program, 0
        lane = 0
        for at, letter in enumerate(self.letters):
            size = self.sizes[letter]
            whole = shape[at] == size * block.count[letter]
            program[self.axes[letter]] = block.start[letter] + (index[at] // size if whole else 0)
            lane = lane * size + (index[at] % size if whole else 0)
        for at, size in enumerate(self.reduced):
            lane = lane * size + index[len(self.letters) + at]
        return program, lane


def _runs(programs: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs that cover all programs, each beginning at a multiple of its length."""
    if most >= programs:
        yield 0, programs
        return
    count = 1 << (most.bit_length() - 1)
    start = 0
    while start < programs:
        while count > programs - start:
            count //= 2
        yield start, count
        start += count
