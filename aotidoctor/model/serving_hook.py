"""MODEL_INIT_LIBRARY: a library that the server loads and calls before it loads the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.record import record

PARAMETER = "MODEL_INIT_LIBRARY"
INIT = "triton_pytorch_model_init"
RELEASE = "triton_pytorch_model_release"
# What the release function was called before the feature was merged.
OLD_RELEASE = "triton_pytorch_model_fini"
SYMBOL_PART = "triton_pytorch_model_"


@record
class HookLibrary:
    """The library as it lies on this host.

    ``path`` is as the config has it; ``target`` is where it leads when a link is on the way, else None. ``format``,
    ``machine``, ``bits`` and ``type`` are those of the file. ``symbols`` are the functions it exports whose names hold
    ``triton_pytorch_model_``, mangled ones included, and ``hidden`` those that it has and does not export.
    ``libraries`` maps everything that it needs, directly or not, to a file (None when not found). ``writable`` are the
    paths, of file and folder, that others than their owner may write to. ``problem`` says why it could not be read.
    """

    path: str
    exists: bool
    target: str | None = None
    format: str | None = None
    machine: str | None = None
    bits: int | None = None
    type: str | None = None
    symbols: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    libraries: Mapping[str, str | None] = field(default_factory=dict)
    writable: tuple[str, ...] = ()
    problem: str | None = None
