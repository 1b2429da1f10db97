"""Where the weights are, as far as member names, the shared object and the wrapper's constructor tell.

``so`` inside the shared object, ``mmap`` appended to it, ``blob`` in a ``.blob`` member, ``disk`` as tensors that the
caller must load, ``none`` no constants at all, ``external`` constants that nothing here holds, ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aotidoctor.model.artifact import SharedObject
from aotidoctor.readers.package.shared_object import MMAP_SPAN

_BASE_CALL = re.compile(r"AOTInductorModelBase\(([^;{]{1,2000}?)\)\s*\{")
_BLOB_SPAN = 8


def weights_location(names: Iterable[str], shared: SharedObject | None, wrapper: str | None) -> str:
    """Location from the names in the model's directory, the (first) shared object and the text of the wrapper."""
    listed = tuple(names)
    if any(name.endswith("weights_config.json") for name in listed):
        return "disk"
    if any(name.endswith(".blob") for name in listed):
        return "blob"
    count, included = _constructor(wrapper)
    span = shared.constants_span if shared is not None else None
    if span is not None and span > 1:
        return _embedded(span, shared)
    if count == 0:
        return "none"
    if span is None:
        built_in = any(name.endswith((".weights.o", "_serialized_weights.bin")) for name in listed)
        return "so" if built_in and count and included is not False else "unknown"
    if count is None:
        return "unknown"
    return "so" if included else "external"


def _embedded(span: int, shared: SharedObject | None) -> str:
    if span == MMAP_SPAN:
        return "mmap"
    # The span of a package whose weights are in a separate blob is their size, 8 bytes. Without the blob: nobody has
    # them. (8 bytes of real constants exist on CUDA only, where they are not padded.)
    if span == _BLOB_SPAN and shared is not None and "libtorch_cuda.so" not in shared.needed:
        return "external"
    return "so"


def _constructor(wrapper: str | None) -> tuple[int | None, bool | None]:
    """Number of constants and ``include_weights`` of the constructor call; None for what it does not tell."""
    match = _BASE_CALL.search(wrapper) if wrapper is not None else None
    if match is None:
        return None, None
    arguments = [argument.strip() for argument in match.group(1).split(",")]
    count = int(arguments[2]) if len(arguments) > 2 and arguments[2].isdecimal() else None
    included = {"true": True, "false": False}.get(arguments[-1])
    return count, included
