"""The sizes of a kernel's blocks: fixed in its text, as launched, or, along a reduction, as long as that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.lanes.blocks import Tiling
from aotidoctor.worker.emulation.lanes.kernel_text import KernelText

# The block along a looped reduction: it makes no difference to the result.
LONGEST_LOOP = 4096
# Kernels that work together over the grid must all be there, one by one.
_PLAIN = ("Grid1D", "Grid2D", "Grid3D", "Grid2DWithYZOverflow")


@record
class BlockSizes:
    """Of one launch with these ``arguments``; ``launched`` are the wrapper's (``{"x": 256}``)."""

    kernel: KernelText
    arguments: Mapping[str, Any]
    launched: Mapping[str, int]

    def of(self, name: str, longest: int) -> int:
        """A block by the name of its parameter; ``longest`` is the most along a looped reduction."""
        return self._reduction(name, longest) if name.startswith("R") else self.launched.get(name[0].lower(), 1)

    def fixed(self, name: str, otherwise: int = 1) -> int:
        """A block size that stands in the text: ``R0_BLOCK: tl.constexpr = 64``."""
        found = re.search(rf"^\s*{name}: tl\.constexpr = (\d+)", self.kernel.text, re.MULTILINE)
        return int(found[1]) if found is not None else otherwise

    def _reduction(self, name: str, longest: int) -> int:
        fixed = self.fixed(name, 0)
        if fixed:
            return fixed
        length = self.arguments.get(f"{name.partition('_')[0].lower()}_numel")
        if length is None:
            found = re.search(rf"^\s*{name.partition('_')[0].lower()}_numel = (\d+)", self.kernel.text, re.MULTILINE)
            length = int(found[1]) if found is not None else 64
        return min(1 << max(int(length) - 1, 0).bit_length(), longest)

    def tiling(self, parameters: list[str], given: dict[str, Any], grid: tuple[int, int, int]) -> Tiling | None:
        """How the grid may be cut; None for a kernel that is run program after program.

        ``given`` gets the blocks that the launch leaves open.
        """
        for name in parameters:
            # A user's own block may be anything: what the package does not tell is not guessed.
            if name.endswith("BLOCK") and name not in given and not self.kernel.custom:
                given[name] = self.of(name, LONGEST_LOOP)
        tiles = self.kernel.tiles
        if (
            not tiles
            or self.kernel.grid_type not in _PLAIN
            or self.kernel.template
            or (grid[2] > 1 and "z" not in tiles)
        ):
            return None
        reduced = [name for name in ("R0_BLOCK", "R1_BLOCK") if name in parameters or self.fixed(name, 0)]
        names = {letter: f"{letter.upper()}BLOCK" for letter in tiles}
        return Tiling(
            sizes={letter: int(given.get(name, self.fixed(name))) for letter, name in names.items()},
            axes=tiles,
            reduced=tuple(self.of(name, LONGEST_LOOP) for name in reduced),
            grid=grid,
        )
