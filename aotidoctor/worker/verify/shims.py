"""The C shims of the installed torch: which operators are on its list, and which the header of a device declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Shims:
    """``listed`` are operators (``aten.sort.stable``) that Inductor takes to have a shim."""

    def __init__(self) -> None:
        from torchgen.aoti.fallback_ops import inductor_fallback_ops

        # A set before torch 2.9, a dict of versions since.
        self.listed = inductor_fallback_ops
        self._headers: dict[str, str] = {}

    def declares(self, name: str, device: str) -> bool:
        """Whether the header for ``device`` has a function for the operator; True where there is no header to read."""
        text = self._header(device)
        symbols = (f"aoti_torch_{kind}_{self._function(name)}(" for kind in (device, "aten"))
        return not text or any(symbol in text for symbol in symbols)

    def _function(self, name: str) -> str:
        """``sort_stable`` of ``aten.sort.stable``, with the newest version of it."""
        _, operator, overload = name.split(".")
        versions: Any = self.listed.get(name, {}) if isinstance(self.listed, dict) else {}
        newest = max((int(text[1:]) for text in versions if text[:1] == "v" and text[1:].isdigit()), default=1)
        short = operator if overload == "default" else f"{operator}_{overload}"
        return short if newest == 1 else f"{short}_v{newest}"

    def _header(self, device: str) -> str:
        if device not in self._headers:
            import torch

            folder = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch/generated"
            own = folder / f"c_shim_{device}.h"
            both = (own, folder / "c_shim_aten.h")
            texts = [path.read_text(encoding="utf-8", errors="replace") for path in both if path.is_file()]
            self._headers[device] = "\n".join(texts) if own.is_file() else ""
        return self._headers[device]
