"""Describe artifacts that are no package of AOTInductor, as far as they are read without unpickling or ExecuTorch.

They are programs of ExecuTorch (``.pte``) with their data files (``.ptd``), and precompiled artifacts of torch.compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.inputs import Tree
from aotidoctor.model.record import record

# Programs of ExecuTorch and their data.
AOTI_BACKENDS = frozenset({"CudaBackend", "MetalBackend", "mps"})
"""Backends whose delegates hold code of AOTInductor."""

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@record
class PlanTensor:
    """A tensor of a method's plan. ``shape`` holds upper bounds where ``dynamic``; ``fqn`` is set for a constant.

    ``unbounded`` tells a dynamic one whose sizes are only those of the export.
    ``external`` tells that its data are in a ``.ptd`` file, ``device`` is the one that it is on (``cuda:0``).
    """

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...] = ()
    dynamic: bool = False
    unbounded: bool = False
    fqn: str | None = None
    external: bool = False
    device: str = "cpu"


@record
class Delegate:
    """A part of a method that a backend executes.

    ``code_key`` and ``weights_key`` are the names of its AOTInductor code and weights, ``other_keys`` those of other
    data it names. ``problem`` says what is wrong with its payload.
    """

    backend: str
    compile_specs: Mapping[str, str] = field(default_factory=dict)
    code_key: str | None = None
    weights_key: str | None = None
    other_keys: tuple[str, ...] = ()
    problem: str | None = None


@record
class PteMethod:
    """A method; an input or output that is no tensor is the name of its type (``Int``).

    ``devices`` are those beside the CPU that tensors of its plan are on.
    """

    name: str
    inputs: tuple[PlanTensor | str, ...] = ()
    outputs: tuple[PlanTensor | str, ...] = ()
    delegates: tuple[Delegate, ...] = ()
    operators: tuple[str, ...] = ()
    external: tuple[PlanTensor, ...] = ()
    devices: tuple[str, ...] = ()


@record
class NamedBlob:
    """Data under a key. ``offset`` is in the file; ``tensor`` is its layout, None for bytes of a backend.

    ``promised`` is the sha256 in its key, ``sha256`` that of its bytes, None where they were not read. ``code``
    is the library that it is, where it is code. ``nan`` counts the elements of ``tensor`` that are NaN, None where they
    were not read.
    """

    key: str
    offset: int
    size: int
    tensor: PlanTensor | None = None
    promised: str | None = None
    sha256: str | None = None
    code: SharedObject | None = None
    nan: int | None = None


@record
class ExecutorchFile:
    """A ``.pte`` (``program`` is True) or ``.ptd``.

    ``expected_size`` is the least size that its header and segments state. ``problem`` says why reading stopped:
    ``kind`` is ``identifier``, ``foreign`` (no such file at all), ``truncated`` or ``malformed``. ``unhashed`` counts
    the bytes whose sha256 was not taken.
    """

    path: str
    program: bool
    size: int
    identifier: str
    version: int | None = None
    expected_size: int = 0
    n_segments: int = 0
    methods: tuple[PteMethod, ...] = ()
    named: tuple[NamedBlob, ...] = ()
    kind: str | None = None
    problem: str | None = None
    unhashed: int = 0

    @property
    def keys(self) -> frozenset[str]:
        """Keys of its data."""
        return frozenset(blob.key for blob in self.named)

    def method(self, name: str | None) -> PteMethod | None:
        """The method called ``name`` (default ``forward``), else the only one there is, else None."""
        found = next((one for one in self.methods if one.name == (name or "forward")), None)
        return self.methods[0] if found is None and name is None and len(self.methods) == 1 else found

    def code_of(self, method: PteMethod) -> tuple[NamedBlob, ...]:
        """The AOTInductor code that the method runs, as far as it is in this file."""
        keys = {delegate.code_key for delegate in method.delegates}
        return tuple(blob for blob in self.named if blob.key in keys and blob.code is not None)

    @property
    def delegates(self) -> tuple[Delegate, ...]:
        """Delegates of all methods, in order."""
        return tuple(delegate for method in self.methods for delegate in method.delegates)

    @property
    def needed_data(self) -> tuple[str, ...]:
        """Keys that the methods need and that this file does not hold, so that a ``.ptd`` has to; code excepted."""
        found = [tensor.fqn for method in self.methods for tensor in method.external if tensor.fqn is not None]
        for delegate in self.delegates:
            weights = delegate.weights_key
            if weights is not None and not weights.startswith(EMPTY_SHA256):
                found.append(weights)
            found += delegate.other_keys
        return tuple(key for key in dict.fromkeys(found) if key not in self.keys)


# Precompiled artifacts of torch.compile.
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
USES: Mapping[str, str] = {
    "mega-cache": "a program gives its bytes to torch.compiler.load_cache_artifacts before it compiles the same model",
    "precompile-code": "a program loads both files of the pair together, with the weights of its model",
    "precompile-cache": "a program loads both files of the pair together, with the weights of its model",
    "vllm-cache": "vLLM reads it when it serves the same model in the same configuration",
}
"""How a program uses each of the others."""


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
