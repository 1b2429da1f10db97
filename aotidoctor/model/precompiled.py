"""Describe a precompiled artifact of torch.compile as far as it is read without unpickling it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.inputs import Tree
from aotidoctor.model.record import record

FORMS: Mapping[str, str] = {
    "aot-compile": "a function of torch.compile(...).aot_compile",
    "aot-compile-module": "a module of torch.compile(...)._aot_compile",
    "standalone-cache": "an artifact of torch._inductor.standalone_compile",
    "standalone-aot": "an artifact of torch._inductor.standalone_compile(aot=True)",
    "standalone-unpacked": "an unpacked artifact of torch._inductor.standalone_compile",
    "mega-cache": "a cache of torch.compiler.save_cache_artifacts",
    "precompile-code": "the Python file of torch.compiler.precompile",
    "precompile-cache": "the cache of torch.compiler.precompile",
    "vllm-cache": "a compile cache of vLLM",
}
"""What each ``form`` is called."""
CALLABLE_FORMS = frozenset(
    ("aot-compile", "aot-compile-module", "standalone-cache", "standalone-aot", "standalone-unpacked")
)
"""Forms that can be loaded and called with tensors alone."""


@record
class Parameter:
    """One parameter of a compiled function.

    ``kind`` is the number of ``inspect.Parameter``: 0 and 1 by position, 2 ``*args``, 3 by keyword, 4 ``**kwargs``.
    ``default`` is the text of its default value, None without one. ``tree`` is what it was compiled for, and the leaves
    are its tensors and values; None where the file does not tell.
    """

    name: str
    kind: int = 1
    default: str | None = None
    tree: Tree[LeafSpec] | None = None


@record
class CompiledFunction:
    """One compiled function or graph.

    ``python``, ``torch``, ``toolkit``, ``triton`` and ``gpu`` are those of the process that made it, None where the
    file states none. ``threads`` and ``grad_mode`` are the state of that process that its guards hold: every process
    that calls it must have the same. ``guards`` are the conditions that it states as text, ``baked`` the values that a
    call must have, by source (``L['n']``), ``requires_grad`` that of each guarded tensor. ``external`` are the names of
    objects that the loader must be given, ``graph`` the inputs of the compiled graph. ``problem`` says what is unread.
    """

    name: str
    source: str | None = None
    parameters: tuple[Parameter, ...] = ()
    backend: str | None = None
    device_type: str | None = None
    python: str | None = None
    torch: str | None = None
    toolkit: str | None = None
    triton: str | None = None
    gpu: str | None = None
    threads: int | None = None
    grad_mode: bool | None = None
    guards: tuple[str, ...] = ()
    baked: Mapping[str, str] = field(default_factory=dict)
    requires_grad: Mapping[str, bool] = field(default_factory=dict)
    external: tuple[str, ...] = ()
    graph: str | None = None
    problem: str | None = None


@record
class CacheEntry:
    """One entry of a cache; ``type`` is as the file calls it (``inductor``, ``aot_autograd``)."""

    type: str
    key: str
    size: int


@record
class Precompiled:
    """A precompiled artifact. ``form`` is a key of ``FORMS``.

    ``damage`` says what of the file is not as it was written, ``kind`` how: ``truncated``, ``malformed``, ``checksum``,
    ``header`` (a version that no release reads). ``missing`` are parts that its loader needs and that are not there,
    ``stale`` are paths in it that lie outside of it. ``torch_key`` is a hash of the sources of the torch that made it.
    Of a module's ``functions`` the first is the one that the inputs fit best.
    ``magic`` tells an aot_compile file of torch 2.15 and later. ``unread`` says what was not looked at.
    """

    form: str
    functions: tuple[CompiledFunction, ...] = ()
    entries: tuple[CacheEntry, ...] = ()
    torch_key: str | None = None
    key: str | None = None
    magic: bool = False
    kind: str | None = None
    damage: str | None = None
    missing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def function(self) -> CompiledFunction | None:
        """The function that a call is compared with; a cache is not called, and of several graphs none alone."""
        called = self.form == "standalone-cache" or not self.form.endswith("-cache")
        several = len(self.functions) > 1 and self.form != "aot-compile-module"
        return self.functions[0] if called and self.functions and not several else None
