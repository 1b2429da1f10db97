"""The first NaN and the first infinity that a launch makes of finite values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.lanes.lane_findings import first


@dataclass(slots=True, kw_only=True)
class FirstNan:
    """``place`` tells line, program and lane of the lane at an index of a block; ``made`` are facts by kind."""

    place: Callable[[tuple[int, ...], tuple[int, ...]], dict[str, Any]]
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    odd_read: bool = False

    def see(self, access: str, values: Any, dtype: Any, mask: Any) -> None:
        """Look at what a load or a store moves; ``mask`` None for all lanes."""
        import numpy as np

        data = (values.astype(np.uint32) << 16).view(np.float32) if str(dtype) == "bf16" else values
        if data.dtype.kind != "f":
            return
        odd = ~np.isfinite(data)
        if mask is not None:
            odd = odd & mask
        if not odd.any():
            return
        if access == "load":
            self.odd_read = True
            return
        nan = np.broadcast_to(np.isnan(data), odd.shape) & odd
        kind = "nan" if nan.any() else "inf"
        where = nan if kind == "nan" else odd
        self.made.setdefault(kind, {**self.place(first(where), where.shape), "count": int(where.sum())})

    def told(self) -> dict[str, dict[str, Any]]:
        """The findings by kind: none where the launch was given NaN or infinity."""
        return {} if self.odd_read else self.made
